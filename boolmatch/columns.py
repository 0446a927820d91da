"""Many plain subscriptions as columns: conjunctions of comparisons, one row a predicate.

    price > 100 AND symbol = 'IBM'       counts      2                     1
    size BETWEEN 1 AND 5                 attributes  price    symbol       size        (numbers into `names`)
                                         operators   GREATER  EQUAL        BETWEEN
                                         lows        100      -            1           NaN for a string
                                         highs       100      -            5
                                         low_texts   -1       'IBM'        -1          (numbers into `texts`)

`bulk` makes columns of texts; `predicate_columns` of arrays that someone has anyway, without any text between.
Nothing is simplified: a BETWEEN from 5 to 1 is a row that never holds.
"""

import math
from collections.abc import Sequence
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np

from boolmatch.lexer import SURROGATE

__all__ = ["Operator", "PredicateColumns", "predicate_columns"]


class Operator(IntEnum):
    """How a predicate compares."""

    EQUAL = 0
    NOT_EQUAL = 1
    LESS = 2
    LESS_EQUAL = 3
    GREATER = 4
    GREATER_EQUAL = 5
    BETWEEN = 6


SPELLINGS = {
    "=": Operator.EQUAL,
    "<>": Operator.NOT_EQUAL,
    "!=": Operator.NOT_EQUAL,
    "<": Operator.LESS,
    "<=": Operator.LESS_EQUAL,
    ">": Operator.GREATER,
    ">=": Operator.GREATER_EQUAL,
    "BETWEEN": Operator.BETWEEN,
}

LAST_EXACT = 2**53


class PredicateColumns(NamedTuple):
    """Subscriptions in order, each a conjunction of the next `counts` rows."""

    counts: np.ndarray  # int32: at least 1 each
    attributes: np.ndarray  # int32: into `names`
    operators: np.ndarray  # int8: Operator
    lows: np.ndarray  # float64: the constant, of BETWEEN the lower one; NaN for strings
    highs: np.ndarray  # float64: the upper constant of BETWEEN, else as `lows`
    low_texts: np.ndarray  # int32: into `texts`; -1 for numbers
    high_texts: np.ndarray
    names: list[str]  # distinct
    texts: list[str]  # distinct


def predicate_columns(
    counts: Any,
    attributes: Sequence[str] | tuple[Any, Sequence[str]],
    operators: Any,
    values: Any,
    uppers: Any = None,
) -> PredicateColumns:
    """Return columns of what arrays or lists hold, one item a predicate; `counts` says how many each subscription has.

    Attributes are names, or a pair of codes and the names they number. Operators are spelled ('<=', 'BETWEEN') or
    `Operator` codes. Values are numbers, strings or both; `uppers` is looked at where the operator is BETWEEN.

    >>> columns = predicate_columns([2], ["price", "symbol"], [">", "="], [100, "IBM"])
    >>> columns.lows, columns.low_texts, columns.texts
    (array([100.,  nan]), array([-1,  0], dtype=int32), ['IBM'])
    """
    codes, names = _read_attributes(attributes)
    n_rows = len(codes)
    operator_codes = _read_operators(operators, n_rows)
    texts = _Numbering()
    lows, low_texts = _read_values("values", values, n_rows, texts)
    highs, high_texts = lows.copy(), low_texts.copy()
    _read_uppers(uppers, np.flatnonzero(operator_codes == Operator.BETWEEN), highs, high_texts, texts)
    _check_same_types(low_texts, high_texts)
    numbers = _read_counts(counts, n_rows)
    return PredicateColumns(numbers, codes, operator_codes, lows, highs, low_texts, high_texts, names, texts.in_order())


class _Numbering:
    """Strings numbered in the order in which they are first seen."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def number(self, text: str) -> int:
        return self._numbers.setdefault(text, len(self._numbers))

    def in_order(self) -> list[str]:
        return list(self._numbers)


def _refuse(column: str, row: int, expected: str, found: object) -> ValueError:
    return ValueError(f"{column}, row {row}: expected {expected}, found {found!r}")


def _check_length(column: str, found: int, n_rows: int) -> None:
    if found != n_rows:
        raise ValueError(f"{column}: expected {n_rows} rows like attributes, found {found}")


# ── counts, attributes, operators ──


def _read_counts(counts: Any, n_rows: int) -> np.ndarray:
    found = np.asarray(counts)
    if found.size and not np.issubdtype(found.dtype, np.integer):
        raise ValueError(f"counts: expected integers, found {found.dtype}")
    for row in np.flatnonzero(found < 1)[:1]:
        raise _refuse("counts", row, "at least 1", found[row].item())
    if found.sum(dtype=np.int64) != n_rows:
        raise ValueError(f"counts: expected {n_rows} rows in all, found {found.sum(dtype=np.int64)}")
    return found.astype(np.int32)


def _read_attributes(attributes: Any) -> tuple[np.ndarray, list[str]]:
    if isinstance(attributes, tuple) and len(attributes) == 2 and not isinstance(attributes[0], str):
        return _read_codes(*attributes)
    numbering = _Numbering()
    codes = np.empty(len(attributes), np.int32)
    for row, name in enumerate(attributes):
        _check_name(row, name)
        codes[row] = numbering.number(str(name))
    return codes, numbering.in_order()


def _read_codes(codes: Any, names: Sequence[str]) -> tuple[np.ndarray, list[str]]:
    found = np.asarray(codes)
    if found.size and not np.issubdtype(found.dtype, np.integer):
        raise ValueError(f"attributes: expected integer codes, found {found.dtype}")
    for row in np.flatnonzero((found < 0) | (found >= len(names)))[:1]:
        raise _refuse("attributes", row, f"a code below {len(names)}", found[row].item())
    for row, name in enumerate(names):
        _check_name(row, name)
    if len(set(names)) != len(names):
        raise ValueError("attributes: expected distinct names")
    return found.astype(np.int32), [str(name) for name in names]


def _check_name(row: int, name: object) -> None:
    if not isinstance(name, str) or not name or not _is_unicode(name):
        raise _refuse("attributes", row, "a name", name)


def _read_operators(operators: Any, n_rows: int) -> np.ndarray:
    found = operators if isinstance(operators, np.ndarray) else np.array(operators, object)
    _check_length("operators", len(found), n_rows)
    if np.issubdtype(found.dtype, np.integer):
        for row in np.flatnonzero((found < 0) | (found >= len(Operator)))[:1]:
            raise _refuse("operators", row, "an Operator", found[row].item())
        return found.astype(np.int8)
    return np.fromiter((_operator(row, one) for row, one in enumerate(found.tolist())), np.int8, n_rows)


def _operator(row: int, spelling: object) -> Operator:
    if isinstance(spelling, str) and spelling.upper() in SPELLINGS:
        return SPELLINGS[spelling.upper()]
    if isinstance(spelling, Operator):
        return spelling
    raise _refuse("operators", row, f"one of {' '.join(SPELLINGS)}", spelling)


# ── values ──


def _read_values(column: str, values: Any, n_rows: int, texts: _Numbering) -> tuple[np.ndarray, np.ndarray]:
    found = values if isinstance(values, np.ndarray) else np.array(values, object)
    _check_length(column, len(found), n_rows)
    return _read_rows(column, found, range(n_rows), texts)


def _read_uppers(uppers: Any, rows: np.ndarray, highs: np.ndarray, high_texts: np.ndarray, texts: _Numbering) -> None:
    if not len(rows):
        return
    if uppers is None:
        raise ValueError(f"uppers, row {rows[0]}: expected the upper end of BETWEEN, found none at all")
    found = uppers if isinstance(uppers, np.ndarray) else np.array(uppers, object)
    _check_length("uppers", len(found), len(highs))
    highs[rows], high_texts[rows] = _read_rows("uppers", found[rows], rows.tolist(), texts)


def _read_rows(column: str, found: np.ndarray, rows: Sequence[int], texts: _Numbering) -> tuple[np.ndarray, np.ndarray]:
    """Return numbers (NaN for a string) and the numbers of strings (-1 for a number)."""
    if np.issubdtype(found.dtype, np.integer) or np.issubdtype(found.dtype, np.floating):
        return _checked_numbers(column, found, rows), np.full(len(found), -1, np.int32)
    numbers = np.full(len(found), np.nan)
    codes = np.full(len(found), -1, np.int32)
    for place, value in enumerate(found.tolist()):
        if isinstance(value, str) and _is_unicode(value):
            codes[place] = texts.number(value)
        else:
            numbers[place] = _number(column, rows[place], value)
    return numbers, codes


def _checked_numbers(column: str, found: np.ndarray, rows: Sequence[int]) -> np.ndarray:
    numbers = found.astype(np.float64)
    suspect = ~np.isfinite(numbers)
    if np.issubdtype(found.dtype, np.integer):
        suspect |= np.abs(numbers) >= LAST_EXACT
    for place in np.flatnonzero(suspect).tolist():
        _number(column, rows[place], found[place].item())
    return numbers + 0.0


def _number(column: str, row: int, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise _refuse(column, row, "a number or a string", value)
    if isinstance(value, int | np.integer) and abs(int(value)) > LAST_EXACT and not _fits(int(value)):
        raise _refuse(column, row, "an integer that a double holds, or a string", value)
    if not math.isfinite(value):
        raise _refuse(column, row, "a finite number", value)
    return float(value) + 0.0


def _fits(value: int) -> bool:
    try:
        return int(float(value)) == value
    except OverflowError:
        return False


def _is_unicode(text: str) -> bool:
    return text.isascii() or not SURROGATE.search(text)


def _check_same_types(low_texts: np.ndarray, high_texts: np.ndarray) -> None:
    for row in np.flatnonzero((low_texts < 0) != (high_texts < 0))[:1]:
        expected = "a number, like the lower end" if low_texts[row] < 0 else "a string, like the lower end"
        raise ValueError(f"uppers, row {row}: expected {expected}")
