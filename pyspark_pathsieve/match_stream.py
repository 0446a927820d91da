"""Matching a stream with subscriptions that change between its micro-batches.

    matching = MatchStream("subscriptions.jsonl", lambda matched, batch_id: matched.write…, body="body")
    df.writeStream.foreachBatch(matching).start()

    micro-batch n    subscriptions as they are when it starts ─▶ version 4 ─▶ every task of it
    micro-batch n+1  looked at again: the same ─▶ still version 4, nothing compiled or sent
    micro-batch n+2  changed ─▶ compiled, sent ─▶ version 5

What is promised: all documents of one micro-batch, retried tasks included, meet exactly one version, and it is the one
that the source had at some moment between the start of the micro-batch and its first task. A micro-batch that is run
again after the query was restarted may meet a newer one. If the source cannot be read, or has subscriptions that
cannot be compiled, the micro-batch fails, unless `on_refresh_error="keep"`: then it goes on with the version before.
"""

import hashlib
import logging
import os
import time
from collections.abc import Callable
from typing import Any

from pyspark_pathsieve.compiled import CompiledSubscriptions, compile_subscriptions, is_saved, load_subscriptions
from pyspark_pathsieve.match_errors import MatchSetupError
from pyspark_pathsieve.matching import match_documents
from pyspark_pathsieve.subscription_sets import SubscriptionSet, read_subscriptions

__all__ = ["MatchStream"]

logger = logging.getLogger("pathsieve.spark")

Write = Callable[[Any, int], None]


class MatchStream:
    """A function for `foreachBatch`, which gives matched documents to `write(matched, batch_id)`.

    `subscriptions` may have any form that `match_documents` takes. A file is read again when it has changed; a
    DataFrame, a Client and a function are asked anew each micro-batch, or every `refresh_seconds`. All other arguments
    are those of `match_documents`.
    """

    def __init__(
        self,
        subscriptions: Any,
        write: Write,
        *,
        refresh_seconds: float = 0.0,
        on_refresh_error: str = "fail",
        shards: int = 1,
        on_bad: str = "fail",
        **matching: Any,
    ) -> None:
        if on_refresh_error not in ("fail", "keep"):
            raise MatchSetupError(f"on_refresh_error: expected 'fail' or 'keep', found {on_refresh_error!r}")
        self._given = subscriptions
        self._write = write
        self._refresh_seconds = refresh_seconds
        self._on_refresh_error = on_refresh_error
        self._shards, self._on_bad, self._matching = shards, on_bad, matching
        self._seen: object = None
        self._digest = ""
        self._looked = float("-inf")
        self._compiled: CompiledSubscriptions | None = None
        self.version = 0

    def __call__(self, batch: Any, batch_id: int) -> None:
        """What Spark calls for each micro-batch."""
        self._write(match_documents(batch, self.current(), shards=self._shards, **self._matching), batch_id)

    def current(self) -> CompiledSubscriptions:
        """The subscriptions as they are now, compiled; `version` counts how often they were new."""
        if self._compiled is not None and time.monotonic() - self._looked < self._refresh_seconds:
            return self._compiled
        try:
            self._look()
        except Exception as error:
            if self._compiled is None or self._on_refresh_error == "fail":
                raise
            logger.error("the subscriptions are not refreshed, version %d stays: %s", self.version, error)
        self._looked = time.monotonic()
        assert self._compiled is not None
        return self._compiled

    def _look(self) -> None:
        seen = _stamp(self._given)  # before reading: what changes meanwhile is seen the next time
        if self._compiled is not None and seen is not None and seen == self._seen:
            return
        given, digest = _read(self._given, seen)
        if digest != self._digest or self._compiled is None:
            compiled = compile_subscriptions(given, shards=self._shards, on_bad=self._on_bad)
            self._check_type(compiled)
            self._compiled, self._digest = compiled, digest
            self.version += 1
        self._seen = seen

    def _check_type(self, compiled: CompiledSubscriptions) -> None:
        """What is written has columns of one type from the first micro-batch to the last."""
        before = self._compiled
        if before is not None and len(before) and len(compiled) and before.id_type != compiled.id_type:
            raise MatchSetupError(
                f"subscriptions: ids were {before.id_type} and are {compiled.id_type} now; give all of them an id"
            )


def _stamp(given: Any) -> object:
    """Something that changes whenever the subscriptions may have; None if only reading them tells."""
    if isinstance(given, str | os.PathLike):
        found = os.stat(given)
        return found.st_mtime_ns, found.st_size, found.st_ino
    return None


def _read(given: Any, stamp: object) -> tuple[Any, str]:
    """What is to be compiled, and what it is recognised by."""
    if isinstance(given, CompiledSubscriptions):
        return given, "compiled"
    if isinstance(given, str | os.PathLike) and is_saved(given):
        return load_subscriptions(given), repr(stamp)
    found = read_subscriptions(given)
    return found, _digest(found)


def _digest(found: SubscriptionSet) -> str:
    digest = hashlib.blake2b()
    for own, filter in zip(found.ids, found.filters, strict=True):
        digest.update(repr((own, filter.kind, filter.expression, filter.namespaces)).encode(errors="surrogatepass"))
    digest.update(repr(found.refused).encode(errors="surrogatepass"))
    return digest.hexdigest()
