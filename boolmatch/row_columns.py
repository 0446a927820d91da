"""Columns of comparisons become rows, a million at a time."""

import numpy as np

from boolmatch.columns import Operator, PredicateColumns
from boolmatch.ranges import ValueType
from boolmatch.rows import HAS_HIGH, HAS_LOW, HIGH_CLOSED, LOW_CLOSED, NO_TEXT, ROW, PredicateRows
from sievecore.jit import kernel

__all__ = ["possible_columns", "rows_of_columns"]

NO_DETAIL = -1
ROW_FIELDS = ("attributes", "operators", "lows", "highs", "low_texts", "high_texts")
ENDS = np.zeros(len(Operator), np.int32)
ENDS[[Operator.EQUAL, Operator.BETWEEN]] = HAS_LOW | HAS_HIGH | LOW_CLOSED | HIGH_CLOSED
ENDS[Operator.LESS] = HAS_HIGH
ENDS[Operator.LESS_EQUAL] = HAS_HIGH | HIGH_CLOSED
ENDS[Operator.GREATER] = HAS_LOW
ENDS[Operator.GREATER_EQUAL] = HAS_LOW | LOW_CLOSED
NOT_EQUAL = int(Operator.NOT_EQUAL)
NUMBER, STRING = int(ValueType.NUMBER), int(ValueType.STRING)


def possible_columns(columns: PredicateColumns) -> tuple[PredicateColumns, np.ndarray]:
    """The columns without conjunctions that can never hold (`a BETWEEN 5 AND 1`), and which ones are left."""
    possible = np.ones(len(columns.counts), np.bool_)
    empty = _empty_ranges(columns)
    if not empty.any():
        return columns, possible
    owners = np.repeat(np.arange(len(possible)), columns.counts)
    possible[owners[empty]] = False
    kept = {field: getattr(columns, field)[possible[owners]] for field in ROW_FIELDS}
    return columns._replace(counts=columns.counts[possible], **kept), possible


def _empty_ranges(columns: PredicateColumns) -> np.ndarray:
    """Which comparisons no value satisfies."""
    between, less = columns.operators == Operator.BETWEEN, columns.operators == Operator.LESS
    empty = between & (columns.lows > columns.highs)
    texts = columns.texts
    for row in np.flatnonzero((between | less) & (columns.low_texts != NO_TEXT)).tolist():
        low, high = texts[columns.low_texts[row]], texts[columns.high_texts[row]]
        empty[row] = low > high if between[row] else low == ""
    return empty


def rows_of_columns(columns: PredicateColumns, attributes: np.ndarray) -> PredicateRows:
    """The row of each comparison; `attributes` are the numbers of the columns' names."""
    n_details = int(np.count_nonzero(columns.operators == NOT_EQUAL))
    rows = np.empty(len(columns.operators), ROW)
    ranges = np.empty(2 * n_details, ROW)
    _write_rows(columns.attributes, columns.operators, columns.lows, columns.highs, ENDS, attributes, rows)
    rows["low_text"], rows["high_text"] = columns.low_texts, columns.high_texts
    rows["type"] = np.where(columns.low_texts == NO_TEXT, NUMBER, STRING)
    _write_holes(rows, columns.operators, ranges)
    return PredicateRows(
        rows,
        columns.texts,
        np.arange(0, 2 * n_details + 1, 2),
        ranges,
        np.zeros(n_details + 1, np.int64),
        np.zeros(0, np.int32),
        np.zeros(n_details, np.bool_),
    )


@kernel
def _write_rows(names, operators, lows, highs, ends, attributes, rows):
    for i in range(len(rows)):
        row = rows[i]
        row.attribute, row.ends, row.detail = attributes[names[i]], ends[operators[i]], NO_DETAIL
        row.low, row.high = lows[i] + 0.0, highs[i] + 0.0  # -0.0 becomes the zero it equals


@kernel
def _write_holes(rows, operators, ranges):
    """`<>` is everything below and everything above: a detail of two ranges."""
    n_details = 0
    for i in range(len(rows)):
        if operators[i] == NOT_EQUAL:
            below, above = ranges[2 * n_details], ranges[2 * n_details + 1]
            below.attribute = above.attribute = rows[i].attribute
            below.type = above.type = rows[i].type
            below.low = below.high = above.low = above.high = rows[i].low
            below.low_text = below.high_text = above.low_text = above.high_text = rows[i].low_text
            below.ends, above.ends = HAS_HIGH, HAS_LOW
            below.detail = above.detail = NO_DETAIL
            rows[i].detail = n_details
            n_details += 1
