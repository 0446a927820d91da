"""Rows read back as words: the predicate of a segment as someone might have written it.

[10, ∞) NUMBER              price >= 10
['AA'] ['IBM'] STRING       symbol IN ('AA', 'IBM')
every (-∞, 10] NUMBER       NOT price > 10
"""

from typing import Any

from boolmatch.expression import Constant
from boolmatch.names import Subject, XPathKey
from boolmatch.patterns import like_test
from boolmatch.predicates import Predicate
from boolmatch.ranges import Range, Ranges, ValueType, complement
from boolmatch.rows import EVERY, HAS_HIGH, HAS_LOW, HIGH_CLOSED, LOW_CLOSED, PredicateRows

__all__ = ["read_predicate", "worded"]


def read_predicate(rows: PredicateRows, number: int) -> Predicate:
    """The predicate in a row, without the name of its attribute."""
    row, detail = rows.rows[number], int(rows.rows[number]["detail"])
    parts, like = [row], None
    if detail >= 0:
        parts = list(rows.detail_ranges[rows.detail_start[detail] : rows.detail_start[detail + 1]])
        codes = rows.like_codes[rows.like_start[detail] : rows.like_start[detail + 1]].tolist()
        like = like_test(tuple(codes), bool(rows.like_negated[detail])) if codes else None
    return Predicate("", tuple(_read_range(part, rows.texts) for part in parts), bool(row["ends"] & EVERY), like)


def _read_range(row: Any, texts: list[str]) -> Range:
    kind, ends = ValueType(int(row["type"])), int(row["ends"])
    low = _constant(kind, row["low"], row["low_text"], texts) if ends & HAS_LOW else None
    high = _constant(kind, row["high"], row["high_text"], texts) if ends & HAS_HIGH else None
    low_closed, high_closed = low is None or bool(ends & LOW_CLOSED), high is None or bool(ends & HIGH_CLOSED)
    return Range(kind, low, high, low_closed, high_closed)


def _constant(kind: ValueType, number: float, text: int, texts: list[str]) -> Constant:
    if kind is ValueType.STRING:
        return texts[text]
    return bool(number) if kind is ValueType.BOOLEAN else float(number)


def worded(subject: Subject, predicate: Predicate) -> str:
    """The predicate about this attribute or atom, in words of the language."""
    if not isinstance(subject, str):
        atom = f"XPATH '{subject.text}'" if isinstance(subject, XPathKey) else f"WITHIN({subject.attribute}, …)"
        return atom if predicate.ranges[0].low else f"NOT {atom}"
    kind = predicate.ranges[0].type
    if kind in (ValueType.NULL, ValueType.ANY):
        return f"{subject} IS {'' if kind is ValueType.NULL else 'NOT '}NULL"
    if predicate.like is not None:
        negation = "NOT " if predicate.like.negated else ""
        return f"{subject} {negation}LIKE {_quoted(predicate.like.pattern)}"
    if predicate.every:
        return f"NOT {_compared(subject, complement(kind, predicate.ranges))}"
    return _compared(subject, predicate.ranges)


def _compared(subject: str, ranges: Ranges) -> str:
    kind = ranges[0].type if ranges else ValueType.ANY
    if ranges and all(one.low == one.high and one.low is not None for one in ranges):
        constants = ", ".join(_written(one.low) for one in ranges)
        return f"{subject} = {constants}" if len(ranges) == 1 else f"{subject} IN ({constants})"
    holes = complement(kind, ranges) if kind in (ValueType.NUMBER, ValueType.STRING) else ()
    if len(holes) == 1 and len(ranges) == 2 and holes[0].low == holes[0].high:
        return f"{subject} <> {_written(holes[0].low)}"
    if len(holes) == len(ranges) - 1 and holes and all(one.low == one.high for one in holes):
        return f"{subject} NOT IN ({', '.join(_written(one.low) for one in holes)})"
    return " OR ".join(_one_range(subject, one) for one in ranges) or f"{subject} = NULL"


def _one_range(subject: str, one: Range) -> str:
    if one.low is not None and one.high is not None and one.low_closed and one.high_closed:
        return f"{subject} BETWEEN {_written(one.low)} AND {_written(one.high)}"
    low = f"{subject} {'>=' if one.low_closed else '>'} {_written(one.low)}" if one.low is not None else ""
    high = f"{subject} {'<=' if one.high_closed else '<'} {_written(one.high)}" if one.high is not None else ""
    return " AND ".join(filter(None, [low, high])) or f"{subject} of type {one.type.name.lower()}"


def _written(constant: Constant | None) -> str:
    if isinstance(constant, bool):
        return str(constant).upper()
    return _quoted(constant) if isinstance(constant, str) else f"{constant:.17g}"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
