"""Subscriptions compiled once, as one file that every worker of a machine maps.

    SubscriptionSet ─▶ StandingFilters ─┐
                       ids ─────────────┴─▶ index.sieve ─▶ mapped: arrays of engines, owners and ids, nothing copied

A subscription's number is its place among the ids, counted from 1. Ids are text, or whole numbers if all are.
"""

import hashlib
import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from pyspark_pathsieve.match_errors import BadSubscriptionsError, MatchSetupError, RefusedSubscription
from pyspark_pathsieve.subscription_sets import Id, SubscriptionSet, read_subscriptions
from sievecore.storage import MAGIC, load_arrays, save_arrays
from sievefilters import Extractors, Handle, StandingFilters
from sievefilters.parts import FILE_VERSION
from xpathfilter import DocumentLimits

__all__ = [
    "CompiledSubscriptions",
    "Part",
    "compile_subscriptions",
    "digest_of",
    "is_saved",
    "load_subscriptions",
]

FILE_KIND = "pathsieve.subscriptions"
CHUNK = 1 << 20

logger = logging.getLogger("pathsieve.spark")


class Part:
    """Filters, and the ids and places of their subscriptions: of all of them, or of one shard."""

    def __init__(self, filters: StandingFilters, ids: pa.Array, places: np.ndarray) -> None:
        self.filters = filters
        self.ids = ids
        self.places = places

    def __len__(self) -> int:
        return len(self.ids)

    def save(self, path: str | os.PathLike[str]) -> None:
        arrays, metadata = self.filters.stored()
        own = _id_arrays(self.ids) | {"places": self.places}
        save_arrays(path, FILE_KIND, FILE_VERSION, arrays | own, metadata)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        extractors: Extractors | None = None,
        limits: DocumentLimits | None = None,
        verify: bool = True,
    ) -> "Part":
        """The part that was saved, mapped into memory; `StorageError` if the file is not one or has changed."""
        arrays, metadata = load_arrays(path, FILE_KIND, FILE_VERSION, verify=verify)
        filters = StandingFilters.from_stored(arrays, metadata, extractors, limits)
        return cls(filters, _ids_from(arrays), arrays["places"])


@dataclass(frozen=True)
class CompiledSubscriptions:
    """Compiled subscriptions, in one part or in several shards; `refused` are those that were left out."""

    parts: tuple[Part, ...]
    refused: tuple[RefusedSubscription, ...] = field(default=())

    def __len__(self) -> int:
        return sum(len(part) for part in self.parts)

    @property
    def id_type(self) -> str:
        """Of which type ids are, in the words of Spark: string or bigint."""
        return "bigint" if pa.types.is_int64(self.parts[0].ids.type) else "string"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write them to one file, which can be given wherever subscriptions can."""
        if len(self.parts) != 1:
            raise MatchSetupError(f"expected subscriptions in one part to save, found {len(self.parts)} shards")
        self.parts[0].save(path)


def compile_subscriptions(subscriptions: Any, *, shards: int = 1, on_bad: str = "fail") -> CompiledSubscriptions:
    """Compile subscriptions, given in any form, a saved file included.

    >>> compiled = compile_subscriptions({"ibm": "//quote[@symbol='IBM']", "oops": "//["}, on_bad="skip")
    >>> len(compiled), compiled.id_type, compiled.refused[0].id
    (1, 'string', 'oops')
    """
    if on_bad not in ("fail", "skip"):
        raise MatchSetupError(f"on_bad: expected 'fail' or 'skip', found {on_bad!r}")
    if not isinstance(shards, int) or shards < 1:
        raise MatchSetupError(f"shards: expected a whole number from 1 on, found {shards!r}")
    if isinstance(subscriptions, CompiledSubscriptions):
        return _as_asked(subscriptions, shards)
    if isinstance(subscriptions, str | os.PathLike) and is_saved(subscriptions):
        return _as_asked(load_subscriptions(subscriptions), shards)
    given = read_subscriptions(subscriptions)
    compiled = [_compiled(given, shard, shards) for shard in range(shards)]
    refused = [*given.refused, *(one for _, bad in compiled for one in bad)]
    if refused and on_bad == "fail":
        raise BadSubscriptionsError(refused)
    if refused:
        logger.warning("%d of %d subscriptions are left out: %s", len(refused), len(given), refused[0])
    return CompiledSubscriptions(tuple(part for part, _ in compiled), tuple(refused))


def load_subscriptions(path: str | os.PathLike[str]) -> CompiledSubscriptions:
    """What `CompiledSubscriptions.save` wrote."""
    return CompiledSubscriptions((Part.load(path),))


def digest_of(path: str | os.PathLike[str]) -> str:
    """The version that a file is: a digest of what is in it."""
    digest = hashlib.blake2b(digest_size=16)
    with open(path, "rb") as file:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def _as_asked(compiled: CompiledSubscriptions, shards: int) -> CompiledSubscriptions:
    if shards in (1, len(compiled.parts)):
        return compiled
    raise MatchSetupError(
        f"shards: {shards} are asked for, and these subscriptions are compiled in {len(compiled.parts)};"
        " give the subscriptions themselves, or compile them with so many shards"
    )


def is_saved(path: str | os.PathLike[str]) -> bool:
    """Whether a file is a saved one, and not a list of subscriptions."""
    if not Path(path).is_file():
        return False
    with open(path, "rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def _compiled(given: SubscriptionSet, shard: int, shards: int) -> tuple[Part, list[RefusedSubscription]]:
    """Every so manyth subscription, compiled."""
    filters = StandingFilters()
    places = range(shard, len(given), shards)
    prepared = filters.prepare_many([given.filters[place] for place in places])
    outcomes = list(zip(places, prepared, strict=True))
    good = [(place, outcome) for place, outcome in outcomes if isinstance(outcome, Handle)]
    filters.reveal_many([handle for _, handle in good], range(1, len(good) + 1))
    refused = [
        RefusedSubscription(given.ids[place], str(outcome))
        for place, outcome in outcomes
        if not isinstance(outcome, Handle)
    ]
    ids = _id_array([given.ids[place] for place, _ in good], given.ids)
    return Part(filters, ids, np.array([place for place, _ in good], np.int64)), refused


def _id_array(ids: Sequence[Id], all_ids: Sequence[Id]) -> pa.Array:
    """Whole numbers if all are, those that were refused included, so that no refusal changes the type."""
    are_numbers = bool(all_ids) and all(isinstance(one, int) for one in all_ids)
    return pa.array(ids, pa.int64() if are_numbers else pa.string())


def _id_arrays(ids: pa.Array) -> dict[str, np.ndarray]:
    if pa.types.is_int64(ids.type):
        return {"ids.numbers": ids.to_numpy()}
    texts = [one.encode() for one in ids.to_pylist()]
    start = np.zeros(len(texts) + 1, np.int32)
    np.cumsum([len(text) for text in texts], out=start[1:])
    return {"ids.start": start, "ids.text": np.frombuffer(b"".join(texts) or b"\0", np.uint8)}


def _ids_from(arrays: Mapping[str, np.ndarray]) -> pa.Array:
    if "ids.numbers" in arrays:
        return pa.array(arrays["ids.numbers"])
    start, text = arrays["ids.start"], arrays["ids.text"]
    return pa.StringArray.from_buffers(len(start) - 1, pa.py_buffer(start), pa.py_buffer(text))
