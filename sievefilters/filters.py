"""Filters of both engines, and of both in one: which subscriptions want a document?

    xpath    ──────────────▶ XPathIndex ──▶ ids ──▶ owners ──▶ numbers ─┐
                                 │ atoms that are true                   ├──▶ the document's numbers, ascending
    boolean  ──▶ BooleanIndex ◀──┘      ──▶ ids ──▶ owners ──▶ numbers ─┘

A filter is prepared first: compiled and in its engine, but nobody's, so that a match passes over it. Once the
subscription is durable and has its number, the filter is revealed, and from then on every match sees it. A change of
filter reveals the new one before it discards the old, so that no document falls between the two.

XPATH atoms of Boolean filters are filters of the XPath engine, each kept once for all who use it. A match takes the
Boolean engine's snapshot *before* it asks the XPath engine, and atoms are there before the filters that use them: so
every atom that is asked for had been there to be decided. In a document without XML every XPath is false.

Every method may be called from any thread.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from boolmatch import BooleanIndex, BooleanMatchError, EventError
from sievefilters.atoms import Atoms, Name
from sievefilters.extractors import Extractors
from sievefilters.given import AttributeValue, Document, Filter, Namespaces
from sievefilters.number_array import NumberArray
from sievefilters.parts import parts_from_stored, stored_parts
from xpathfilter import DocumentError, DocumentLimits, NamespaceError, XPathFilterError, XPathIndex

__all__ = ["Handle", "Matched", "Refused", "StandingFilters"]

NOBODY = 0
NO_NUMBERS = np.zeros(0, np.int64)

Refused = XPathFilterError | BooleanMatchError
Matched = np.ndarray | DocumentError | EventError


@dataclass(frozen=True, slots=True)
class Handle:
    """Where a filter is: its engine, its id there, and the atoms it holds."""

    kind: str
    id: int
    atoms: tuple[int, ...] = ()


class StandingFilters:
    """The two engines and the owners of what is in them.

    >>> from sievefilters import Given
    >>> filters = StandingFilters()
    >>> handle = filters.prepare(Filter("boolean", "price > 100 AND NOT XPATH '//halted'"))
    >>> quote = Given(b"<quote/>", {"price": 120})
    >>> filters.match_many([quote])[0].tolist()
    []
    >>> filters.reveal(handle, 7)
    >>> filters.match_many([quote])[0].tolist()
    [7]
    """

    def __init__(self, extractors: Extractors | None = None, limits: DocumentLimits | None = None) -> None:
        self._extractors = extractors or Extractors({})
        self.xpath = XPathIndex(limits=limits)
        self.boolean = BooleanIndex()
        self._owners = {"xpath": NumberArray(), "boolean": NumberArray()}
        self._atoms = Atoms(self.xpath)

    def __len__(self) -> int:
        return len(self.xpath) + len(self.boolean)

    def prepare(self, filter: Filter) -> Handle:
        """Compile a filter and put it into its engine, still nobody's; the engine's error if it cannot be compiled."""
        if filter.kind == "xpath":
            return Handle("xpath", self.xpath.add(filter.expression, dict(filter.namespaces)))
        with self._atoms.taking(filter.namespaces) as taken:
            return Handle("boolean", self.boolean.add(filter.expression, decide=taken.decide), tuple(taken.keys))

    def prepare_many(self, filters: Sequence[Filter]) -> list[Handle | Refused]:
        """The same for many, fast: those of a kind that share their namespaces go into their engine together."""
        prepared: list[Handle | Refused | None] = [None] * len(filters)
        for (kind, namespaces), positions in _alike(filters).items():
            texts = [filters[position].expression for position in positions]
            for position, outcome in zip(positions, self._added(kind, texts, namespaces), strict=True):
                prepared[position] = outcome
        for position, filter in enumerate(filters):
            if prepared[position] is None:
                prepared[position] = self._prepared_or_refused(filter)
        return prepared  # type: ignore[return-value]

    def _added(self, kind: str, texts: Sequence[str], namespaces: Namespaces) -> list[Handle | Refused]:
        errors: list[tuple[int, Any]] = []
        try:
            if kind == "xpath":
                ids = self.xpath.add_many(texts, dict(namespaces), errors=errors)
            else:
                ids = self.boolean.add_many(texts, errors=errors)
        except NamespaceError as error:
            return [error] * len(texts)
        added: list[Handle | Refused] = [Handle(kind, engine_id) for engine_id in ids.tolist()]
        for position, refusal in errors:
            added[position] = refusal
        return added

    def _prepared_or_refused(self, filter: Filter) -> Handle | Refused:
        try:
            return self.prepare(filter)
        except (XPathFilterError, BooleanMatchError) as error:
            return error

    def reveal(self, handle: Handle, number: int) -> None:
        """Say whose filter it is: every match that starts from now on sees it."""
        self._owners[handle.kind].put(handle.id, number)

    def reveal_many(self, handles: Sequence[Handle], numbers: Sequence[int]) -> None:
        for kind, owners in self._owners.items():
            ours = [(handle.id, number) for handle, number in zip(handles, numbers, strict=True) if handle.kind == kind]
            if ours:
                ids, owned = np.array(ours, np.int64).T
                owners.put_many(ids, owned)

    def discard(self, handle: Handle) -> None:
        """Take a filter out; a match that starts from now on does not see it."""
        self.discard_many([handle])

    def discard_many(self, handles: Sequence[Handle]) -> None:
        """The same for many, fast."""
        for kind, engine in (("xpath", self.xpath), ("boolean", self.boolean)):
            ids = np.array([handle.id for handle in handles if handle.kind == kind], np.int64)
            self._owners[kind].put_many(ids, np.full(len(ids), NOBODY))
            engine.remove_many(ids.tolist())
        self._atoms.release([key for handle in handles for key in handle.atoms])

    def match_many(self, documents: Sequence[Document], threads: int = 1) -> list[Matched]:
        """The numbers that want each document, ascending; or why it cannot be matched."""
        boolean_then = self.boolean.snapshot
        paths = self._match_paths(documents, threads)
        if not len(boolean_then) and not any(document.attributes for document in documents):
            return self._xpath_numbers(paths)
        found = self._match_attributes(documents, paths, boolean_then, threads)
        return [self._numbers(path, event) for path, event in zip(paths, found, strict=True)]

    def _match_paths(self, documents: Sequence[Document], threads: int) -> list[Matched]:
        with_xml = [document.xml for document in documents if document.xml]
        results = iter(self.xpath.match_many(with_xml, threads=threads))
        return [next(results) if document.xml else NO_NUMBERS for document in documents]

    def _match_attributes(
        self, documents: Sequence[Document], paths: Sequence[Matched], snapshot: Any, threads: int
    ) -> list[Matched]:
        events = [
            {} if isinstance(found, Exception) else self.attributes(document)
            for document, found in zip(documents, paths, strict=True)
        ]
        true_paths = [() if isinstance(found, Exception) else self._atoms.among(found) for found in paths]
        return list(self.boolean.match_many(events, threads, true_paths, snapshot))

    def attributes(self, document: Document) -> dict[str, AttributeValue]:
        """What Boolean filters see: what the extractors find, and what the document brings, which wins."""
        if not len(self._extractors) or not document.xml:
            return dict(document.attributes)
        return self._extractors.extract(document.xml) | dict(document.attributes)

    def _numbers(self, path: Matched, event: Matched) -> Matched:
        if isinstance(path, Exception):
            return path
        if isinstance(event, Exception):
            return event
        both = np.concatenate([self._owners["xpath"].take(path), self._owners["boolean"].take(event)])
        return _numbers(both)

    def _xpath_numbers(self, paths: Sequence[Matched]) -> list[Matched]:
        """The numbers of each document when there is nothing but XPath: looked up for all documents at once."""
        good = [found for found in paths if not isinstance(found, Exception)]
        owners = self._owners["xpath"].take(np.concatenate([NO_NUMBERS, *good]))
        starts = np.cumsum([0, *map(len, good)])
        is_plain = _ascend(owners, starts)
        cut = (owners[start:end] for start, end in pairwise(starts.tolist()))
        numbers = iter(cut if is_plain else map(_numbers, cut))
        return [found if isinstance(found, Exception) else next(numbers) for found in paths]

    def test(self, filter: Filter, document: Document) -> tuple[bool, str]:
        """Whether a filter would want a document, and why. Nobody else sees the filter."""
        alone = StandingFilters(self._extractors, self.xpath.limits)
        return alone._explain(alone.prepare(filter), document)

    def _explain(self, handle: Handle, document: Document) -> tuple[bool, str]:
        if handle.kind == "xpath":
            if not document.xml:
                return False, "does not match: the document has no XML"
            explained = self.xpath.explain(handle.id, document.xml)
            return explained.matched, str(explained)
        true_paths = self._atoms.among(self.xpath.match(document.xml)) if document.xml else ()
        found = self.boolean.explain(handle.id, self.attributes(document), true_paths)
        return found.matched, str(found)

    def stored(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """The arrays and the metadata that a file of these filters has. Nobody may change them meanwhile."""
        return stored_parts(self.xpath, self.boolean, self._owners, self._atoms)

    @classmethod
    def from_stored(
        cls,
        arrays: Mapping[str, np.ndarray],
        metadata: Mapping[str, Any],
        extractors: Extractors | None = None,
        limits: DocumentLimits | None = None,
    ) -> "StandingFilters":
        """The filters that `stored` has told of. Limits and extractors are not in it."""
        filters = cls(extractors, limits)
        parts = parts_from_stored(arrays, metadata, filters.xpath.limits)
        filters.xpath, filters.boolean, filters._owners, filters._atoms = parts
        return filters

    def stats(self) -> dict[str, Any]:
        """What the engines say of themselves."""
        return {"xpath": self.xpath.stats(), "boolean": self.boolean.stats()}


def _alike(filters: Sequence[Filter]) -> dict[Name, list[int]]:
    """Positions of filters that can go into an engine together. Boolean ones with XPATH atoms go alone."""
    groups: dict[Name, list[int]] = {}
    for position, filter in enumerate(filters):
        if filter.kind == "xpath":
            groups.setdefault(("xpath", filter.namespaces), []).append(position)
        elif "XPATH" not in filter.expression.upper():
            groups.setdefault(("boolean", ()), []).append(position)
    return groups


def _ascend(owners: np.ndarray, starts: np.ndarray) -> bool:
    """Whether the owners of each document ascend, and nobody is not among them."""
    ascends = np.append(owners[:-1] < owners[1:], True)
    ascends[starts[1:] - 1] = True  # of the next document, which may be the first one again
    return bool(ascends.all() and owners.all())


def _numbers(owners: np.ndarray) -> np.ndarray:
    """Each owner once, ascending, and nobody not at all."""
    if len(owners) and owners[0] != NOBODY and (owners[1:] > owners[:-1]).all():
        return owners  # as it mostly is; 5,000 owners take 5 us to look at and 120 to sort
    found = np.unique(owners)
    return found[1:] if len(found) and found[0] == NOBODY else found
