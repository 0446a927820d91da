"""BooleanIndex: which of many standing Boolean subscriptions want this event?

add, add_many, remove ──▶ Overlay ──▶ Snapshot of frozen segments ─┐
                                                                  ├─▶ stream ──▶ ids
match, match_many ────▶ event writer ──▶ flat events ─────────────┘
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from boolmatch.algorithms import ALGORITHMS
from boolmatch.auto import AUTO, Watch
from boolmatch.building import build_segment
from boolmatch.bulk import read_simple
from boolmatch.columns import PredicateColumns
from boolmatch.deciders import Deciders
from boolmatch.draft import Draft, NumberOf
from boolmatch.errors import (
    AddManyError,
    BooleanSyntaxError,
    EventError,
    UndecidedAtomError,
    UnknownSubscription,
)
from boolmatch.event_writer import Event, write_events
from boolmatch.explanation import Explanation, explain
from boolmatch.expression import Within, XPathAtom
from boolmatch.files import FILE_KIND, FILE_VERSION, Stored, segment_from_stored, stored_segment
from boolmatch.flat_events import FlatEvents
from boolmatch.matching import COUNT_NAMES, N_COUNTS, N_FOUND, N_LOOKED_AT
from boolmatch.names import AttributeNames, Subject, XPathKey
from boolmatch.normal_form import AllOf, AnyOf, Formula, NormalForm, normalize
from boolmatch.parser import parse
from boolmatch.predicates import Literal, Predicate
from boolmatch.reading import read_batch
from boolmatch.segment import Segment
from boolmatch.stream import match_events
from boolmatch.table_events import columns_of, rows_of, write_table
from sievecore.breathing import breathing
from sievecore.overlay import Overlay
from sievecore.snapshots import Layer, Snapshot
from sievecore.standing import StandingIndex, checked_texts, checked_threads, compile_odd
from sievecore.storage import load_arrays, save_arrays

__all__ = ["BooleanIndex"]

Decide = Callable[[str], int]
Refusal = BooleanSyntaxError | UndecidedAtomError
REFUSALS: tuple[type[Refusal], ...] = (BooleanSyntaxError, UndecidedAtomError)
Result = np.ndarray | EventError


class BooleanIndex(StandingIndex[Draft, Segment]):
    """Standing Boolean subscriptions, matched against events.

    An event matches an expression if the expression is TRUE of it, in SQL's three-valued logic. Every method may be
    called from any thread. A match sees one version of the subscriptions: all that was added before it started,
    nothing that was removed before it started.

    >>> index = BooleanIndex()
    >>> rich = index.add("price > 100 AND symbol IN ('IBM', 'AAPL')")
    >>> index.match({"price": 120, "symbol": "IBM"}).tolist() == [rich]
    True
    >>> index.remove(rich)
    >>> len(index)
    0
    """

    _unknown = UnknownSubscription

    def __init__(self, algorithm: str = AUTO, decide: Decide | None = None) -> None:
        """`decide` is told the text of each XPATH atom that is added, and answers with the key it goes by."""
        if algorithm != AUTO and algorithm not in ALGORITHMS:
            raise ValueError(f"algorithm is {algorithm!r}, expected one of {', '.join([AUTO, *ALGORITHMS])}")
        self.algorithm = algorithm
        self._watch = Watch()
        self._decide = decide
        self._names = AttributeNames()
        self._deciders = Deciders(self._names)
        self._overlay = self._new_overlay(Snapshot(), next_id=1)

    def _new_overlay(self, snapshot: Snapshot[Segment], next_id: int) -> Overlay[Draft, Segment]:
        return Overlay(Draft, self._build, self._merged, snapshot, next_id)

    def add(self, expression: str, decide: Decide | None = None) -> int:
        """Subscribe; return the subscription's id. Ids ascend and are never used again."""
        form, numbers = self._compile(expression, decide)
        return self._overlay.add(lambda draft, subscription_id: draft.add(subscription_id, form, numbers))

    def add_many(
        self,
        expressions: Iterable[str] | PredicateColumns,
        errors: list[tuple[int, Refusal]] | None = None,
        decide: Decide | None = None,
    ) -> np.ndarray:
        """Subscribe to many expressions or columns of comparisons, fast; return their ids in the same order.

        If any does not parse, all that do not are reported in one `AddManyError` and nothing is added. With a list
        for `errors`, the good ones are added, (position, error) pairs are appended, and a bad one's id is -1.
        """
        draft = self._overlay.new_draft()
        if isinstance(expressions, PredicateColumns):
            ids = self._overlay.take_ids(len(expressions.counts))
            draft.add_columns(ids, expressions, self._attribute_numbers(expressions))
            self._overlay.add_layer(draft)
            return ids
        texts = checked_texts(expressions)
        columns, plain = read_simple(texts)
        compiled, bad = compile_odd(texts, plain, lambda text: self._compile(text, decide), REFUSALS)
        if bad and errors is None:
            raise AddManyError(bad)
        ids = self._take_ids(len(texts), bad)
        draft.add_columns(ids[plain], columns, self._attribute_numbers(columns))
        for position, (form, numbers) in breathing(compiled):
            draft.add(int(ids[position]), form, numbers)
        self._overlay.add_layer(draft)
        if errors is not None:
            errors += bad
        return ids

    def match(self, event: Event, true_paths: Iterable[int] = ()) -> np.ndarray:
        """The ids of all subscriptions that want the event, ascending; `EventError` if it holds what cannot be matched.

        `true_paths` are the keys of the XPATH atoms that are true of it.
        """
        result = self.match_many([event], threads=1, true_paths=[true_paths])[0]
        if isinstance(result, EventError):
            raise EventError(result.attribute, result.reason, result.hint)
        return result

    def match_many(
        self,
        events: Iterable[Event],
        threads: int | None = None,
        true_paths: Sequence[Iterable[int]] = (),
        snapshot: Snapshot[Segment] | None = None,
    ) -> list[Result]:
        """The result of each event: an array as from `match`, or the `EventError` of a bad one.

        `threads` is by default the number of processors. `true_paths` has the keys of true XPATH atoms of each event;
        who decides them first takes the `snapshot`, so that no atom is asked for that had not been there to decide.
        """
        snapshot, listed = self.snapshot if snapshot is None else snapshot, list(events)
        flat, refused = write_events(listed, self._names, self._current_deciders(), true_paths)
        results: list[Result] = list(self._match(snapshot, flat, threads))
        for position, error in refused.items():
            results[position] = error
        return results

    def explain(self, subscription_id: int, event: Event, true_paths: Iterable[int] = ()) -> Explanation:
        """Why a subscription wants an event: which of its predicates held, which failed first, which were unknown."""
        layer, slot = self._find(subscription_id)
        flat, refused = write_events([event], self._names, self._current_deciders(), [true_paths])
        if refused:
            raise refused[0]
        return explain(layer.segment, slot, flat, self._names)

    def match_table(self, table: Any, threads: int | None = None) -> list[np.ndarray]:
        """The ids that want each row of a table of events: an Arrow table, or a mapping of names to numpy columns.

        A null or masked cell is an absent value. A cell that cannot be matched is an `EventError` for the table.
        """
        snapshot, deciders = self._overlay.snapshot, self._current_deciders()
        columns = columns_of(table)
        flat = None if deciders.has_work else write_table(columns, self._names)
        if flat is None:
            flat, refused = write_events(list(rows_of(columns)), self._names, deciders, ())
            if refused:
                raise next(iter(refused.values()))
        return self._match(snapshot, flat, threads)

    def _match(self, snapshot: Snapshot[Segment], flat: FlatEvents, threads: int | None) -> list[np.ndarray]:
        found = match_events(snapshot, flat, checked_threads(threads))
        if self.algorithm == AUTO and self._watch.see(flat, _waste(snapshot)):
            self._overlay.rebuild(layer.segment for layer in snapshot.layers if self._is_misfiled(layer.segment))
        return found

    def _is_misfiled(self, segment: Segment) -> bool:
        return segment.algorithm.name != self._algorithm_for(segment.filed.table.n_conjunctions)

    def _algorithm_for(self, n_conjunctions: int) -> str:
        return self._watch.algorithm_for(n_conjunctions) if self.algorithm == AUTO else self.algorithm

    def stats(self) -> dict[str, Any]:
        """Counts and sizes: subscriptions, segments and their algorithms, bytes of index arrays, what auto has seen.

        The counts say what matching has done since these segments were built: events, candidates looked at, decided
        and found to hold, and of events that were matched together how many, in how many clusters.
        """
        layers = self._overlay.snapshot.layers
        counts = np.sum([np.zeros(N_COUNTS, np.int64), *(layer.segment.counts for layer in layers)], axis=0)
        return {
            "algorithm": self.algorithm,
            "auto": self._watch.facts() if self.algorithm == AUTO else None,
            "subscriptions": len(self._overlay.snapshot),
            "segments": [layer.segment.facts() | {"alive": layer.n_alive} for layer in layers],
            "counts": dict(zip(COUNT_NAMES, counts.tolist(), strict=True)),
            "bytes": sum(layer.segment.n_bytes + layer.alive.nbytes for layer in layers),
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the index to one file that `load` can map into memory."""
        save_arrays(path, FILE_KIND, FILE_VERSION, *self.stored())

    def stored(self) -> Stored:
        """The arrays and the metadata that `save` writes, for whoever keeps an index together with other things."""
        layers = self._overlay.snapshot.layers
        whole = len(layers) == 1 and layers[0].n_alive == len(layers[0].segment)
        segment = layers[0].segment if whole else self._merged(layers)
        return stored_segment(segment, self._names, self.algorithm, self._overlay.next_id)

    @classmethod
    def load(cls, path: str | os.PathLike[str], mmap: bool = True, decide: Decide | None = None) -> "BooleanIndex":
        """The index that was saved; with `mmap`, its arrays stay in the file and processes share the memory."""
        return cls.from_stored(*load_arrays(path, FILE_KIND, FILE_VERSION, mmap=mmap), decide)

    @classmethod
    def from_stored(
        cls, arrays: Mapping[str, np.ndarray], metadata: Mapping[str, Any], decide: Decide | None = None
    ) -> "BooleanIndex":
        """The index that `stored` has told of."""
        segment, names, algorithm, next_id = segment_from_stored(arrays, metadata)
        index = cls(algorithm, decide)
        index._names, index._deciders = names, Deciders(names)
        snapshot: Snapshot[Segment] = Snapshot()
        index._overlay = index._new_overlay(snapshot.with_layers([], [Layer.whole(segment)]), next_id)
        return index

    def _compile(self, expression: str, decide: Decide | None) -> tuple[NormalForm, NumberOf]:
        form = normalize(parse(expression))
        return form, {literal: self._number(literal, expression, decide) for literal in _literals(form)}

    def _number(self, literal: Literal, expression: str, decide: Decide | None) -> int:
        if isinstance(literal, Predicate):
            return self._names.number(literal.attribute)
        subject = self._decided(literal.atom, expression, decide)
        if not literal.positive:
            self._names.denied.add(subject)
        return self._names.number(subject)

    def _decided(self, atom: Within | XPathAtom, expression: str, decide: Decide | None) -> Subject:
        if isinstance(atom, Within):
            return atom
        decide = decide or self._decide
        if decide is None:
            raise UndecidedAtomError(expression, atom.column)
        return XPathKey(decide(atom.text), atom.text)

    def _attribute_numbers(self, columns: PredicateColumns) -> np.ndarray:
        return np.array([self._names.number(name) for name in breathing(columns.names)], np.int32)

    def _current_deciders(self) -> Deciders:
        if not self._deciders.is_current():
            self._deciders = Deciders(self._names)
        return self._deciders

    def _build(self, draft: Draft) -> Segment:
        batch = draft.batch()
        return build_segment(batch, ALGORITHMS[self._algorithm_for(len(batch.lengths))])

    def _merged(self, layers: Sequence[Layer[Segment]]) -> Segment:
        """One segment with what is alive in some layers."""
        draft = Draft()
        for layer in layers:
            draft.add_batch(read_batch(layer.segment.filed, layer.living_slots()))
        return self._build(draft)


def _waste(snapshot: Snapshot[Segment]) -> float | None:
    """How many entries PSTBloom has looked at for one that held; None if it has not looked at any."""
    filed = [layer.segment.counts for layer in snapshot.layers if layer.segment.algorithm.name == "pst-bloom"]
    looked_at, found = (int(sum(counts[cell] for counts in filed)) for cell in (N_LOOKED_AT, N_FOUND))
    return looked_at / max(1, found) if looked_at else None


def _literals(form: NormalForm) -> dict[Literal, None]:
    """All literals, each once, in the order they were written in."""
    found = [literal for conjunction in form.conjunctions for literal in conjunction]
    return dict.fromkeys(found if form.formula is None else [*found, *_leaves(form.formula)])


def _leaves(formula: Formula) -> Iterable[Literal]:
    if isinstance(formula, AllOf | AnyOf):
        for part in formula.parts:
            yield from _leaves(part)
    else:
        yield formula
