"""Subscriptions on their way into a segment: what came one by one, in columns, or from older segments.

    add(7, normal form of "a = 1 OR b = 2")     rows, two conjunctions, two links to 7
    add_columns(ids, columns)                   rows at once, one conjunction and one link each
    add_batch(read back from a segment)

`batch` is the way out, again and again: what `building` makes a segment of.
"""

from collections.abc import Iterator

import numpy as np

from boolmatch.batches import LINK, NO_PROGRAM, Batch, concatenate_batches
from boolmatch.columns import PredicateColumns
from boolmatch.normal_form import AllOf, AnyOf, Formula, NormalForm
from boolmatch.predicates import Decided, Literal, Predicate
from boolmatch.ranges import Range, ValueType
from boolmatch.row_columns import possible_columns, rows_of_columns
from boolmatch.rows import RowWriter
from boolmatch.targets import ALL, ANY

__all__ = ["Draft", "NumberOf"]


class Draft:
    """Collects subscriptions of distinct ids. Attributes and atoms have numbers already."""

    def __init__(self) -> None:
        self._parts: list[Batch] = []
        self._start_loose()

    def _start_loose(self) -> None:
        self._ids: list[int] = []
        self._rows, self._leaves = RowWriter(), RowWriter()
        self._lengths: list[int] = []
        self._links: list[tuple[int, int, int]] = []
        self._leaf_lengths: list[int] = []
        self._programs: list[list[int]] = []

    def add(self, subscription_id: int, form: NormalForm, numbers: "NumberOf") -> None:
        """Add one subscription."""
        self._ids.append(subscription_id)
        program = NO_PROGRAM
        if form.formula is not None:
            program = len(self._programs)
            leaves = len(self._leaves)
            self._programs.append(list(self._write_program(form.formula, leaves, numbers)))
            self._leaf_lengths.append(len(self._leaves) - leaves)
        for conjunction in form.conjunctions:
            self._links.append((len(self._lengths), program, subscription_id))
            self._lengths.append(len(conjunction))
            for literal in conjunction:
                self._rows.write(numbers[literal], _predicate(literal))

    def _write_program(self, formula: Formula, first: int, numbers: "NumberOf") -> Iterator[int]:
        match formula:
            case AllOf(parts) | AnyOf(parts):
                for part in parts:
                    yield from self._write_program(part, first, numbers)
                yield (ALL if isinstance(formula, AllOf) else ANY) - 2 * len(parts)
            case _:
                self._leaves.write(numbers[formula], _predicate(formula))
                yield len(self._leaves) - first - 1

    def add_columns(self, ids: np.ndarray, columns: PredicateColumns, attributes: np.ndarray) -> None:
        """Add many conjunctions of comparisons; `attributes` are the numbers of the columns' names."""
        columns, possible = possible_columns(columns)
        links = np.empty(len(columns.counts), LINK)
        links["conjunction"], links["program"] = np.arange(len(links)), NO_PROGRAM
        links["subscription_id"] = ids[possible]
        nothing, no_rows = np.zeros(0, np.int64), RowWriter().rows()
        rows = rows_of_columns(columns, attributes)
        lengths = columns.counts.astype(np.int64)
        self.add_batch(Batch(ids, rows, lengths, links, no_rows, nothing, nothing, np.zeros(0, np.int32)))

    def add_batch(self, batch: Batch) -> None:
        """Add the subscriptions of a batch."""
        self._parts.append(batch)

    def batch(self) -> Batch:
        """Everything added so far."""
        if self._ids or not self._parts:
            self._parts.append(self._loose_batch())
            self._start_loose()
        self._parts = [concatenate_batches(self._parts)]
        return self._parts[0]

    def _loose_batch(self) -> Batch:
        return Batch(
            np.array(self._ids, np.int64),
            self._rows.rows(),
            np.array(self._lengths, np.int64),
            np.array(self._links, LINK),
            self._leaves.rows(),
            np.array(self._leaf_lengths, np.int64),
            np.array([len(program) for program in self._programs], np.int64),
            np.array([word for program in self._programs for word in program], np.int32),
        )


NumberOf = dict[Literal, int]
"""The number of the attribute or atom that a literal is about."""


def _predicate(literal: Literal) -> Predicate:
    """A literal as ranges; one that is decided outside is about a truth value."""
    if isinstance(literal, Decided):
        return Predicate("", (Range(ValueType.BOOLEAN, literal.positive, literal.positive),))
    return literal
