"""XPathIndex: which of many standing XPath subscriptions want this document?

add, add_many, remove ──▶ Overlay ──▶ Snapshot of frozen segments ─┐
                                                                  ├─▶ scheduler ──▶ ids
match, match_many ────▶ document ──▶ flat document ───────────────┘
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from sievecore.breathing import breathing
from sievecore.overlay import Overlay
from sievecore.snapshots import Layer, Snapshot
from sievecore.storage import load_arrays, save_arrays
from xpathfilter.algorithms import ALGORITHMS, Algorithm
from xpathfilter.bulk import BulkReader
from xpathfilter.compiler import compile_expression
from xpathfilter.document import DocumentLimits
from xpathfilter.draft import Draft
from xpathfilter.errors import AddManyError, UnknownSubscription, XPathSyntaxError
from xpathfilter.explanation import Explanation, explain
from xpathfilter.parser import parse
from xpathfilter.plan import Plan
from xpathfilter.scheduler import MODES, Result, match_alone, match_events
from xpathfilter.segment import Segment, Verified

__all__ = ["XPathIndex"]

FILE_KIND = "xpathfilter.index"
FILE_VERSION = 2

Namespaces = Mapping[str, str]
Compiled = tuple[int, Plan, Verified]


class XPathIndex:
    """Standing XPath subscriptions, matched against documents.

    A document matches an expression if XPath 1.0's boolean(expression) is true with the document node as context.
    Every method may be called from any thread. A match sees one version of the subscriptions: all that was added
    before it started, nothing that was removed before it started.

    >>> index = XPathIndex()
    >>> ibm = index.add("//quote[@symbol='IBM' and price > 100]")
    >>> halted = index.add("/quotes/halted")
    >>> index.match(b"<quotes><quote symbol='IBM'><price>120</price></quote></quotes>").tolist() == [ibm]
    True
    >>> index.remove(ibm)
    >>> len(index)
    1
    """

    def __init__(self, algorithm: str = "suffix", limits: DocumentLimits | None = None) -> None:
        if algorithm not in ALGORITHMS:
            raise ValueError(f"algorithm is {algorithm!r}, expected one of {', '.join(ALGORITHMS)}")
        self.algorithm = algorithm
        self.limits = limits or DocumentLimits()
        self._overlay = self._new_overlay(Snapshot(), next_id=1)

    def _new_overlay(self, snapshot: Snapshot[Segment], next_id: int) -> Overlay[Draft, Segment]:
        algorithm = ALGORITHMS[self.algorithm]
        return Overlay(partial(Draft, algorithm), Draft.build, partial(_merged, algorithm), snapshot, next_id)

    def add(self, expression: str, namespaces: Namespaces | None = None) -> int:
        """Subscribe; return the subscription's id. Ids ascend and are never used again.

        `namespaces` binds the prefixes of this expression to URIs.
        """
        plan, verified = _compile(expression, namespaces)
        return self._overlay.add(lambda draft, subscription_id: draft.add(subscription_id, plan, verified))

    def add_many(
        self,
        expressions: Iterable[str],
        namespaces: Namespaces | None = None,
        errors: list[tuple[int, XPathSyntaxError]] | None = None,
    ) -> np.ndarray:
        """Subscribe to many expressions, fast; return their ids in the same order.

        If any does not parse, all that do not are reported in one `AddManyError` and nothing is added. With a list
        for `errors`, the good ones are added, (position, error) pairs are appended, and a bad one's id is -1.
        """
        texts = _listed(expressions)
        _check_texts(texts)
        draft = self._overlay.new_draft()
        rows, plain = BulkReader(draft, namespaces).read(texts)
        compiled, bad = _compile_odd(texts, plain, namespaces)
        if bad and errors is None:
            raise AddManyError(bad)
        good = np.ones(len(texts), np.bool_)
        good[[position for position, _ in bad]] = False
        ids = np.full(len(texts), -1, np.int64)
        ids[good] = self._overlay.take_ids(int(good.sum()))
        draft.add_rows(ids[plain], rows)
        for position, plan, verified in breathing(compiled):
            draft.add(int(ids[position]), plan, verified)
        self._overlay.add_layer(draft)
        if errors is not None:
            errors += bad
        return ids

    def remove(self, subscription_id: int) -> None:
        """Unsubscribe; `UnknownSubscription` if there is no such subscription (any more)."""
        self.remove_many([subscription_id])

    def remove_many(self, subscription_ids: Iterable[int]) -> None:
        """Unsubscribe many; if one of them is unknown, none is removed."""
        missing = self._overlay.remove(_checked_ids(subscription_ids))
        if len(missing):
            raise UnknownSubscription(int(missing[0]))

    def __len__(self) -> int:
        return len(self._overlay.snapshot)

    def __contains__(self, subscription_id: object) -> bool:
        try:
            return self._overlay.snapshot.find(_checked_id(subscription_id)) is not None
        except (UnknownSubscription, TypeError):
            return False

    def match(self, document: bytes | str) -> np.ndarray:
        """The ids of all subscriptions that want the document, ascending; `DocumentError` if it is not good XML."""
        return match_alone(self._overlay.snapshot, document, self.limits)

    def match_many(
        self, documents: Iterable[bytes | str], mode: str = "me-cp", threads: int | None = None
    ) -> list[Result]:
        """The result of each document: an array as from `match`, or the `DocumentError` of a bad one.

        `mode` says how threads share the work (see `xpathfilter.scheduler`); `threads` is by default the number of
        processors, and 1 is the plain sequential algorithm.
        """
        if mode not in MODES:
            raise ValueError(f"mode is {mode!r}, expected one of {', '.join(MODES)}")
        if threads is not None and threads < 1:
            raise ValueError(f"threads is {threads}, expected 1 or more, or None for one a processor")
        return match_events(self._overlay.snapshot, list(documents), self.limits, mode, threads)

    def explain(self, subscription_id: int, document: bytes | str) -> Explanation:
        """Why a subscription wants a document, or which of its steps found nothing."""
        found = self._overlay.snapshot.find(_checked_id(subscription_id))
        if found is None:
            raise UnknownSubscription(subscription_id)
        layer, slot = found
        return explain(layer.segment, slot, document, self.limits)

    def stats(self) -> dict[str, Any]:
        """Counts and sizes: subscriptions by how they are decided, segments, records, bytes of index arrays."""
        snapshot = self._overlay.snapshot
        lanes = {"indexed": 0, "formula": 0, "verified": 0, "unindexed": 0}
        for layer in snapshot.layers:
            for lane, n_slots in layer.segment.lanes(layer.living_slots()).items():
                lanes[lane] += n_slots
        return {
            "algorithm": self.algorithm,
            "subscriptions": len(snapshot),
            "lanes": lanes,
            "segments": len(snapshot.layers),
            "records": sum(layer.segment.words.n_records for layer in snapshot.layers),
            "bytes": sum(layer.segment.n_bytes + layer.alive.nbytes for layer in snapshot.layers),
        }

    def merge(self) -> None:
        """Make the index one segment, as small and as fast as it can be; matching and updates go on meanwhile."""
        self._overlay.merge_all()

    def wait_until_merged(self) -> None:
        """Return when no merging is going on in the background."""
        self._overlay.wait_until_merged()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the index to one file that `load` can map into memory."""
        layers = self._overlay.snapshot.layers
        whole = len(layers) == 1 and layers[0].n_alive == len(layers[0].segment)
        segment = layers[0].segment if whole else _merged(ALGORITHMS[self.algorithm], layers)
        metadata = {"algorithm": self.algorithm, "next_id": self._overlay.next_id, "verified": segment.verified}
        save_arrays(path, FILE_KIND, FILE_VERSION, segment.arrays(), metadata)

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], mmap: bool = True, limits: DocumentLimits | None = None
    ) -> "XPathIndex":
        """The index that was saved; with `mmap`, its arrays stay in the file and processes share the memory."""
        arrays, metadata = load_arrays(path, FILE_KIND, FILE_VERSION, mmap=mmap)
        index = cls(metadata["algorithm"], limits)
        verified = tuple(_read_verified(entry) for entry in metadata["verified"])
        layer = Layer.whole(Segment.from_arrays(index.algorithm, arrays, verified))
        snapshot: Snapshot[Segment] = Snapshot()
        index._overlay = index._new_overlay(snapshot.with_layers([], [layer]), metadata["next_id"])
        return index


def _merged(algorithm: Algorithm, layers: Sequence[Layer[Segment]]) -> Segment:
    """One segment with what is alive in some layers."""
    draft = Draft(algorithm)
    for layer in layers:
        draft.add_segment(layer.segment, layer.living_slots())
    return draft.build()


def _compile(expression: str, namespaces: Namespaces | None) -> tuple[Plan, Verified]:
    plan = compile_expression(parse(expression, namespaces))
    return plan, Verified(expression, tuple(sorted((namespaces or {}).items())))


def _checked_id(subscription_id: object) -> int:
    if isinstance(subscription_id, bool) or not isinstance(subscription_id, (int, np.integer)):
        raise TypeError(f"a subscription id is an int, not {type(subscription_id).__name__}")
    if not 0 < subscription_id < 1 << 63:
        raise UnknownSubscription(int(subscription_id))
    return int(subscription_id)


def _checked_ids(subscription_ids: Iterable[int]) -> np.ndarray:
    """The distinct ids, ascending; as quick as can be if they come as `add_many` returned them."""
    if isinstance(subscription_ids, np.ndarray) and subscription_ids.dtype == np.int64:
        in_order = np.sort(subscription_ids)
        ids = in_order[np.append(True, in_order[1:] != in_order[:-1])[: len(in_order)]]
        if len(ids) and ids[0] <= 0:
            raise UnknownSubscription(int(ids[0]))
        return ids
    distinct = {_checked_id(subscription_id) for subscription_id in breathing(subscription_ids)}
    return np.sort(np.fromiter(distinct, np.int64, len(distinct)))


def _listed(expressions: Iterable[str]) -> list[str]:
    if isinstance(expressions, str):
        raise TypeError("expressions is one str, expected several; for one expression there is add()")
    return expressions if isinstance(expressions, list) else list(expressions)


def _check_texts(texts: list[str]) -> None:
    for position, text in enumerate(breathing(texts)):
        if not isinstance(text, str):
            raise TypeError(f"expression {position} is {type(text).__name__}, expected str")


def _compile_odd(
    texts: list[str], plain: np.ndarray, namespaces: Namespaces | None
) -> tuple[list[Compiled], list[tuple[int, XPathSyntaxError]]]:
    """Compile the expressions that were not plain, one by one; those that do not parse come with their errors."""
    is_odd = np.ones(len(texts), np.bool_)
    is_odd[plain] = False
    compiled, bad = [], []
    for position in breathing(np.flatnonzero(is_odd).tolist()):
        try:
            compiled.append((position, *_compile(texts[position], namespaces)))
        except XPathSyntaxError as error:
            bad.append((position, error))
    return compiled, bad


def _read_verified(entry: Any) -> Verified | None:
    if entry is None:
        return None
    text, namespaces = entry
    return Verified(text, tuple((prefix, uri) for prefix, uri in namespaces))
