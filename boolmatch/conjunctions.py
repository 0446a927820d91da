"""Conjunctions of coded predicates, side by side: what all algorithms file, and how one of them is decided.

    start        0           2        3
    predicates   price 10-10 | qty 4-7 | symbol 5-9 …       12 bytes each, the most selective first

A predicate holds if an event's codes of the attribute meet its own: two comparisons of integers, and done for all but
a few. Flags on the attribute send those few to a closer look:

    EVERY     each value must lie within (NOT of a comparison), which differs for events with several values only
    DETAIL    several ranges (IN, <>), or a LIKE program, found by the predicate's position
    and where an event has several values, their hull may meet a range that no value is in
"""

from typing import NamedTuple

import numpy as np

from boolmatch.coded_event import FIRST_PAIR, IS_PLAIN
from boolmatch.like import like_matches
from boolmatch.spaces import ATTRIBUTE_MASK, DETAIL_BIT, EVERY_BIT
from sievecore.jit import kernel

__all__ = ["Conjunctions", "all_hold", "all_meet", "holds"]


class Conjunctions(NamedTuple):
    """Conjunction i is predicates[start[i]:start[i + 1]]; one without predicates is true of every event."""

    start: np.ndarray
    predicates: np.ndarray
    n_plain: np.ndarray  # how many conjunctions there are before the first one with a flag
    detailed: np.ndarray  # positions of predicates that have details, ascending
    details: np.ndarray  # which detail each of those has
    range_start: np.ndarray  # of a detail: its ranges
    ranges: np.ndarray
    like_start: np.ndarray  # of a detail: its LIKE program, which may be empty
    like_codes: np.ndarray
    like_negated: np.ndarray

    @property
    def n_conjunctions(self) -> int:
        return len(self.start) - 1


@kernel
def all_hold(table, conjunction, event, flat):
    """Whether the event satisfies a conjunction."""
    if event.state[IS_PLAIN] and conjunction < table.n_plain[0]:
        return all_meet(table, table.start[conjunction], table.start[conjunction + 1], event.points)
    for position in range(table.start[conjunction], table.start[conjunction + 1]):
        if not holds(table, position, event, flat):
            return False
    return True


@kernel
def all_meet(table, first, end, points):
    """Whether a plain event satisfies some predicates without flags.

    Unsigned indexes spare the question whether they count from the end.
    """
    for position in range(np.uint32(first), np.uint32(end)):
        predicate = table.predicates[position]
        code = points[np.uint32(predicate.attribute)]
        if code < predicate.low or code > predicate.high:
            return False
    return True


@kernel
def holds(table, position, event, flat):
    """Whether the event satisfies one predicate."""
    predicate = table.predicates[position]
    value = event.values[predicate.attribute & ATTRIBUTE_MASK]
    if value.low > predicate.high or value.high < predicate.low:
        return False
    if predicate.attribute <= ATTRIBUTE_MASK and value.n <= 1:
        return True
    return _holds_closely(table, position, event, flat)


@kernel
def _holds_closely(table, position, event, flat):
    predicate = table.predicates[position]
    value = event.values[predicate.attribute & ATTRIBUTE_MASK]
    every = predicate.attribute & EVERY_BIT != 0
    detail = -1
    if predicate.attribute & DETAIL_BIT:
        detail = table.details[np.searchsorted(table.detailed, position)]
    for i in range(value.first, value.first + value.n):
        low, high = event.codes[i].low, event.codes[i].high
        if detail < 0:
            passed = _lies(low, high, predicate.low, predicate.high, every)
        else:
            passed = _passes(table, detail, low, high, every, flat, event.state[FIRST_PAIR] + i)
        if passed != every:
            return passed
    return every


@kernel
def _lies(low, high, range_low, range_high, every):
    """Whether codes meet a range or, with `every`, lie within it."""
    if every:
        return low >= range_low and high <= range_high
    return low <= range_high and high >= range_low


@kernel
def _passes(table, detail, low, high, every, flat, pair):
    """Whether one value passes a detail: some range, and LIKE."""
    for i in range(table.range_start[detail], table.range_start[detail + 1]):
        if _lies(low, high, table.ranges[i].low, table.ranges[i].high, every):
            start, end = table.like_start[detail], table.like_start[detail + 1]
            if start == end:
                return True
            text_start, text_end = flat.pairs[pair].text_start, flat.pairs[pair].text_end
            matches = like_matches(table.like_codes, start, end, flat.text, text_start, text_end)
            return matches != table.like_negated[detail]
    return False
