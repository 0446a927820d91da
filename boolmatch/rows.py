"""Predicates on their way into a segment: one row each, with constants as they are.

    price > 100                row   attribute 3, NUMBER, (100, no end)
    symbol IN ('AA', 'IBM')    row   attribute 7, STRING, ['AA', 'IBM'], detail 0 ──▶ ranges ['AA'] ['IBM']
    note LIKE '%fast%'         row   attribute 9, STRING, (no end, no end), detail 1 ──▶ like % f a s t %

A row is a predicate whose values lie in one range, or the hull of several. What one range cannot say is a *detail*:
all the ranges, and a LIKE program. Strings are numbers of a pool of texts; attributes are those of `AttributeNames`.
`spaces` turns rows into codes and back.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from boolmatch.predicates import Predicate, Range
from sievecore.rows import offsets
from sievecore.tables import columns

__all__ = [
    "EVERY",
    "HAS_HIGH",
    "HAS_LOW",
    "HIGH_CLOSED",
    "LOW_CLOSED",
    "NO_TEXT",
    "ROW",
    "PredicateRows",
    "RowWriter",
    "concatenate_rows",
]

ROW = columns("attribute", "type", "ends", "low_text", "high_text", "detail", low=np.float64, high=np.float64)
"""`ends` has the bits below; a string's end is a text, a number's is a number, and false and true are 0 and 1."""

HAS_LOW, HAS_HIGH, LOW_CLOSED, HIGH_CLOSED, EVERY = 1, 2, 4, 8, 16

NO_TEXT = NO_DETAIL = -1


class PredicateRows(NamedTuple):
    """Rows, and what they refer to."""

    rows: np.ndarray
    texts: list[str]
    detail_start: np.ndarray  # of a detail: its ranges
    detail_ranges: np.ndarray  # rows
    like_start: np.ndarray  # of a detail: its LIKE program
    like_codes: np.ndarray
    like_negated: np.ndarray


class RowWriter:
    """Writes predicates as rows, one by one."""

    def __init__(self) -> None:
        self._rows: list[tuple[int | float, ...]] = []
        self._texts: dict[str, int] = {}
        self._ranges: list[tuple[int | float, ...]] = []
        self._n_ranges: list[int] = []
        self._likes: list[list[int]] = []
        self._negated: list[bool] = []

    def __len__(self) -> int:
        return len(self._rows)

    def write(self, attribute: int, predicate: Predicate) -> None:
        """Append the row of a predicate about the attribute of this number; it has at least one range."""
        ranges, detail = predicate.ranges, NO_DETAIL
        if len(ranges) > 1 or predicate.like is not None:
            detail = self._write_detail(attribute, predicate)
        first, last = ranges[0], ranges[-1]
        hull = Range(first.type, first.low, last.high, first.low_closed, last.high_closed)
        self._rows.append(self._row(attribute, hull, predicate.every, detail))

    def _write_detail(self, attribute: int, predicate: Predicate) -> int:
        self._ranges += [self._row(attribute, part, False, NO_DETAIL) for part in predicate.ranges]
        self._n_ranges.append(len(predicate.ranges))
        self._likes.append(predicate.like.program().tolist() if predicate.like else [])
        self._negated.append(predicate.like is not None and predicate.like.negated)
        return len(self._n_ranges) - 1

    def _row(self, attribute: int, part: Range, every: bool, detail: int) -> tuple[int | float, ...]:
        ends = EVERY if every else 0
        ends |= 0 if part.low is None else HAS_LOW | (LOW_CLOSED if part.low_closed else 0)
        ends |= 0 if part.high is None else HAS_HIGH | (HIGH_CLOSED if part.high_closed else 0)
        low, low_text = self._constant(part.low)
        high, high_text = self._constant(part.high)
        return attribute, int(part.type), ends, low_text, high_text, detail, low, high

    def _constant(self, constant: str | float | bool | None) -> tuple[float, int]:
        if isinstance(constant, str):
            return 0.0, self._texts.setdefault(constant, len(self._texts))
        return float(constant or 0) + 0.0, NO_TEXT  # Adding makes -0.0 the zero it equals.

    def rows(self) -> PredicateRows:
        """What was written so far."""
        return PredicateRows(
            np.array(self._rows, ROW),
            list(self._texts),
            offsets(self._n_ranges),
            np.array(self._ranges, ROW),
            offsets(map(len, self._likes)),
            np.array([code for program in self._likes for code in program], np.int32),
            np.array(self._negated, np.bool_),
        )


def concatenate_rows(parts: Sequence[PredicateRows]) -> PredicateRows:
    """All rows of all parts, in order; texts are not made distinct, since building does that anyway."""
    parts = [part for part in parts if len(part.rows)] or parts[:1]
    if len(parts) == 1:
        return parts[0]
    texts: list[str] = []
    rows, ranges = [np.zeros(0, ROW)], [np.zeros(0, ROW)]
    n_details = 0
    for part in parts:
        rows.append(_shifted(part.rows, len(texts), n_details))
        ranges.append(_shifted(part.detail_ranges, len(texts), 0))
        texts += part.texts
        n_details += len(part.like_negated)
    return PredicateRows(
        np.concatenate(rows),
        texts,
        _joined_offsets([part.detail_start for part in parts]),
        np.concatenate(ranges),
        _joined_offsets([part.like_start for part in parts]),
        np.concatenate([np.zeros(0, np.int32), *(part.like_codes for part in parts)]),
        np.concatenate([np.zeros(0, np.bool_), *(part.like_negated for part in parts)]),
    )


def _shifted(rows: np.ndarray, n_texts: int, n_details: int) -> np.ndarray:
    """Copies of rows that refer to texts and details behind so many others."""
    rows = rows.copy()
    for field, n_before in (("low_text", n_texts), ("high_text", n_texts), ("detail", n_details)):
        rows[field][rows[field] >= 0] += n_before
    return rows


def _joined_offsets(starts: Sequence[np.ndarray]) -> np.ndarray:
    return offsets(np.concatenate([np.zeros(0, np.int64), *(np.diff(start) for start in starts)]))
