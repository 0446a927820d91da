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
from sievecore.standing import StandingIndex, checked_texts, checked_threads, compile_odd
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
Stored = tuple[dict[str, np.ndarray], dict[str, Any]]


class XPathIndex(StandingIndex[Draft, Segment]):
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

    _unknown = UnknownSubscription

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
        texts = checked_texts(expressions)
        draft = self._overlay.new_draft()
        rows, plain = BulkReader(draft, namespaces).read(texts)
        compiled, bad = compile_odd(texts, plain, lambda text: _compile(text, namespaces), (XPathSyntaxError,))
        if bad and errors is None:
            raise AddManyError(bad)
        ids = self._take_ids(len(texts), bad)
        draft.add_rows(ids[plain], rows)
        for position, (plan, verified) in breathing(compiled):
            draft.add(int(ids[position]), plan, verified)
        self._overlay.add_layer(draft)
        if errors is not None:
            errors += bad
        return ids

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
        return match_events(self._overlay.snapshot, list(documents), self.limits, mode, checked_threads(threads))

    def explain(self, subscription_id: int, document: bytes | str) -> Explanation:
        """Why a subscription wants a document, or which of its steps found nothing."""
        layer, slot = self._find(subscription_id)
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

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the index to one file that `load` can map into memory."""
        save_arrays(path, FILE_KIND, FILE_VERSION, *self.stored())

    def stored(self) -> Stored:
        """The arrays and the metadata that `save` writes, for whoever keeps an index together with other things."""
        layers = self._overlay.snapshot.layers
        whole = len(layers) == 1 and layers[0].n_alive == len(layers[0].segment)
        segment = layers[0].segment if whole else _merged(ALGORITHMS[self.algorithm], layers)
        metadata = {"algorithm": self.algorithm, "next_id": self._overlay.next_id, "verified": segment.verified}
        return segment.arrays(), metadata

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], mmap: bool = True, limits: DocumentLimits | None = None
    ) -> "XPathIndex":
        """The index that was saved; with `mmap`, its arrays stay in the file and processes share the memory."""
        return cls.from_stored(*load_arrays(path, FILE_KIND, FILE_VERSION, mmap=mmap), limits)

    @classmethod
    def from_stored(
        cls, arrays: Mapping[str, np.ndarray], metadata: Mapping[str, Any], limits: DocumentLimits | None = None
    ) -> "XPathIndex":
        """The index that `stored` has told of."""
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


def _read_verified(entry: Any) -> Verified | None:
    if entry is None:
        return None
    text, namespaces = entry
    return Verified(text, tuple((prefix, uri) for prefix, uri in namespaces))
