"""The obvious, slow way to match: evaluate the tree of an expression on an event, in three-valued logic.

    a > 5 AND NOT b = 'x'     {"a": 7}     ──▶   TRUE AND NOT unknown   ──▶   unknown: no match

True, False or None (unknown). An atom is unknown for an attribute that is not there and for a value of another
type; of several values any may satisfy it. An interval satisfies what some number in it satisfies.

Nothing here comes from the package under test, but for the classes of trees and values.
"""

import functools
import operator
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import shapely

from boolmatch.expression import (
    And,
    Between,
    Comparison,
    Expression,
    In,
    IsNull,
    Like,
    Not,
    Or,
    Within,
    XPathAtom,
)
from boolmatch.values import Interval, Point

Truth = bool | None
Event = Mapping[str, Any]
Decided = Callable[[str], bool]

COMPARE = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def nobody(text: str) -> bool:
    raise AssertionError(f"nobody decides XPATH '{text}'")


def matches(expression: Expression, event: Event, decided: Decided = nobody) -> bool:
    """Whether the expression is TRUE of the event."""
    return truth(expression, event, decided) is True


def truth(expression: Expression, event: Event, decided: Decided = nobody) -> Truth:
    match expression:
        case And(parts):
            return negated(any_true(negated(truth(part, event, decided)) for part in parts))
        case Or(parts):
            return any_true(truth(part, event, decided) for part in parts)
        case Not(part):
            return negated(truth(part, event, decided))
        case XPathAtom(text):
            return decided(text)
        case IsNull(attribute):
            return not values(event.get(attribute))
        case _:
            return any_true(
                [of_value(expression, value) for value in values(event.get(expression.attribute))] or [None]
            )


def any_true(truths: Iterable[Truth]) -> Truth:
    """Kleene's OR."""
    found = set(truths)
    return True if True in found else None if None in found else False


def negated(known: Truth) -> Truth:
    return None if known is None else not known


def values(value: Any) -> list[Any]:
    """The values of an attribute: none, one or several."""
    if isinstance(value, list | tuple | set | frozenset):
        return [one for one in value if one is not None]
    return [] if value is None else [value]


def of_value(atom: Any, value: Any) -> Truth:
    """The truth of an atom about one value."""
    match atom:
        case Within(_, polygon):
            return in_polygon(polygon, value) if isinstance(value, Point) else None
        case Like(_, pattern, escape):
            return bool(as_regex(pattern, escape).fullmatch(value)) if isinstance(value, str) else None
    constants = constants_of(atom)
    if isinstance(value, Interval):
        return interval_satisfies(atom, value) if kind(constants[0]) == "number" else None
    return satisfies(atom, value) if kind(value) == kind(constants[0]) else None


def kind(value: Any) -> str:
    if isinstance(value, bool):
        return "truth"
    return "number" if isinstance(value, int | float) else type(value).__name__


def constants_of(atom: Any) -> tuple[Any, ...]:
    match atom:
        case Comparison(_, _, constant):
            return (constant,)
        case Between(_, low, high):
            return low, high
        case In(_, constants):
            return constants


def satisfies(atom: Any, value: Any) -> bool:
    match atom:
        case Comparison(_, sign, constant):
            return COMPARE[sign](value, constant)
        case Between(_, low, high):
            return low <= value <= high
        case In(_, constants):
            return value in constants


def interval_satisfies(atom: Any, interval: Interval) -> bool:
    low, high = interval.low, interval.high
    match atom:
        case Comparison(_, "=", constant):
            return low <= constant <= high
        case Comparison(_, "<>", constant):
            return low != constant or high != constant
        case Comparison(_, sign, constant):
            return COMPARE[sign](low if "<" in sign else high, constant)
        case Between(_, least, most):
            return max(low, least) <= min(high, most)
        case In(_, constants):
            return any(low <= constant <= high for constant in constants)


@functools.lru_cache(1 << 12)
def as_regex(pattern: str, escape: str | None) -> re.Pattern[str]:
    parts, characters = [], iter(pattern)
    for character in characters:
        if character == escape:
            parts.append(re.escape(next(characters)))
        else:
            parts.append({"%": ".*", "_": "."}.get(character, re.escape(character)))
    return re.compile("".join(parts), re.DOTALL)


@functools.lru_cache(1 << 12)
def in_polygon(polygon: str, point: Point) -> bool:
    return bool(shapely.from_wkt(polygon).covers(shapely.Point(point.x, point.y)))
