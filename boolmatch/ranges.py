"""Ranges of values, and what is in some of them, or in none.

    union        [1, 3]  (3, 5]  [7, 7]      ──▶  [1, 5]  [7, 7]
    complement   [1, 5]  [7, 7]   NUMBER     ──▶  (-∞, 1)  (5, 7)  (7, ∞)

Numbers are the real ones, infinity included: there is something between any two. Strings stand in the order of their
code points, with the empty one first and nothing between a string and the same with a NUL behind it. FALSE
comes before TRUE. Ranges of one type that are sorted, apart from each other and as few as possible are equal when
they hold the same values, up to the spelling of an end ('a' < x is 'a\\0' <= x).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum

from boolmatch.expression import Constant

__all__ = ["Range", "Ranges", "ValueType", "between", "complement", "type_of", "union"]


class ValueType(IntEnum):
    """What kind of value a range holds."""

    NULL = 0  # no value
    ANY = 1  # any value there is
    BOOLEAN = 2
    NUMBER = 3
    STRING = 4


@dataclass(frozen=True, slots=True)
class Range:
    """The values of one type between two ends; None is no end."""

    type: ValueType
    low: Constant | None = None
    high: Constant | None = None
    low_closed: bool = True
    high_closed: bool = True


Ranges = tuple[Range, ...]

TYPES = {bool: ValueType.BOOLEAN, float: ValueType.NUMBER, str: ValueType.STRING}


def type_of(constant: Constant) -> ValueType:
    """
    >>> type_of(True)
    <ValueType.BOOLEAN: 2>
    """
    return TYPES[type(constant)]


def between(
    value_type: ValueType,
    low: Constant | None,
    high: Constant | None,
    low_closed: bool = True,
    high_closed: bool = True,
) -> Ranges:
    """Return the range from `low` to `high`, or no range when nothing is in it."""
    if high is not None and not _reaches(low, high, low_closed, high_closed):
        return ()
    if low == "" and low_closed and high != "":
        low = None
    return (Range(value_type, low, high, low_closed or low is None, high_closed or high is None),)


def union(ranges: Iterable[Range]) -> Ranges:
    """Return the values in any of the ranges, which are of one type."""
    joined: list[Range] = []
    for new in sorted(ranges, key=lambda one: (one.low is not None, one.low, not one.low_closed)):
        if joined and _touch(joined[-1], new):
            joined[-1] = _spanned(joined[-1], new)
        else:
            joined.append(new)
    return tuple(joined)


def complement(value_type: ValueType, ranges: Ranges) -> Ranges:
    """Return the values of the type that are in none of the ranges, which a `union` has put in order."""
    if value_type is ValueType.BOOLEAN:
        return union(Range(value_type, truth, truth) for truth in (False, True) if not _hold(ranges, truth))
    gaps: list[Range] = []
    low, low_closed = None, True
    for one in ranges:
        if one.low is not None:
            gaps += between(value_type, low, one.low, low_closed, not one.low_closed)
        if one.high is None:
            return tuple(gaps)
        low, low_closed = one.high, not one.high_closed
    return (*gaps, *between(value_type, low, None, low_closed))


def _reaches(low: Constant | None, high: Constant, low_closed: bool, high_closed: bool) -> bool:
    """Whether there is a value from `low` to `high`."""
    if low is None:
        return high_closed or high != ""
    if low == high:
        return low_closed and high_closed
    return low < high and (low_closed or high_closed or not _adjacent(low, high))  # type: ignore[operator]


def _adjacent(low: Constant, high: Constant) -> bool:
    """Whether nothing stands between two values."""
    if isinstance(low, str):
        return high == low + "\0"
    return isinstance(low, bool)


def _touch(left: Range, right: Range) -> bool:
    """Whether two ranges, sorted by their lower ends, have no value between them."""
    if left.high is None or right.low is None or right.low < left.high:  # type: ignore[operator]
        return True
    if right.low == left.high:
        return left.high_closed or right.low_closed
    return left.high_closed and right.low_closed and _adjacent(left.high, right.low)


def _spanned(left: Range, right: Range) -> Range:
    """Join two ranges that touch, sorted by their lower ends."""
    higher = max(left, right, key=lambda one: (one.high is None, one.high, one.high_closed))
    return between(left.type, left.low, higher.high, left.low_closed, higher.high_closed)[0]


def _hold(ranges: Ranges, truth: bool) -> bool:
    return any(one.low <= truth <= one.high for one in ranges)  # type: ignore[operator]
