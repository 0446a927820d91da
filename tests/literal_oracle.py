"""Whether a literal holds of an event, straight from its definition.

Predicate a, ranges [1, 2], every      {"a": {1.5, "x"}}     ──▶   no: "x" lies in no range of numbers
"""

from typing import Any

from bool_oracle import Decided as Decider
from bool_oracle import Event, as_regex, in_polygon, kind, values

from boolmatch.expression import Within
from boolmatch.predicates import Decided, Literal, Predicate, Range, ValueType
from boolmatch.values import Interval, Point

TYPES = {"truth": ValueType.BOOLEAN, "number": ValueType.NUMBER, "str": ValueType.STRING}


def holds(literal: Literal, event: Event, decided: Decider) -> bool:
    if isinstance(literal, Decided):
        return _decided(literal, event, decided)
    found = values(event.get(literal.attribute))
    if not found:
        return any(one.type is ValueType.NULL for one in literal.ranges)
    return (all if literal.every else any)(_passes(literal, value) for value in found)


def _decided(literal: Decided, event: Event, decided: Decider) -> bool:
    if not isinstance(literal.atom, Within):
        return decided(literal.atom.text) == literal.positive
    found = values(event.get(literal.atom.attribute))
    inside = [isinstance(one, Point) and in_polygon(literal.atom.polygon, one) for one in found]
    if literal.positive:
        return any(inside)
    return bool(found) and all(isinstance(one, Point) for one in found) and not any(inside)


def _passes(predicate: Predicate, value: Any) -> bool:
    if not any(_lies_in(one, value, predicate.every) for one in predicate.ranges):
        return False
    if predicate.like is None:
        return True
    return bool(as_regex(predicate.like.pattern, predicate.like.escape).fullmatch(value)) != predicate.like.negated


def _lies_in(one: Range, value: Any, whole: bool) -> bool:
    if one.type is ValueType.ANY:
        return True
    if isinstance(value, Interval):
        return one.type is ValueType.NUMBER and _interval_lies_in(one, value, whole)
    return TYPES.get(kind(value)) is one.type and _above(one, value) and _below(one, value)


def _interval_lies_in(one: Range, interval: Interval, whole: bool) -> bool:
    """Ranges of a predicate stand apart, so an interval that is covered by all of them lies in one."""
    low, high = (interval.low, interval.high) if whole else (interval.high, interval.low)
    return _above(one, low) and _below(one, high)


def _above(one: Range, value: Any) -> bool:
    return one.low is None or value > one.low or (one.low_closed and value == one.low)


def _below(one: Range, value: Any) -> bool:
    return one.high is None or value < one.high or (one.high_closed and value == one.high)
