"""The obvious way to match, which is both the peer to beat and the oracle that is always right.

    for xpath in compiled:            lxml.etree.XPath, compiled once
        if xpath(tree): …             asked one after the other

    low <= value <= high              every predicate of every Boolean subscription, by numpy

Expressions of the workload start with `/`, so that the context node makes no difference to them.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from lxml import etree

from boolmatch.columns import Operator, PredicateColumns

__all__ = ["Checks", "ColumnLoop", "WrongAnswerError", "XPathLoop"]


class WrongAnswerError(Exception):
    """Two ways to the same answer differ."""

    def __init__(self, what: str, found: np.ndarray, expected: np.ndarray) -> None:
        super().__init__(what, found, expected)
        self.what = what
        self.missing = np.setdiff1d(expected, found)
        self.surplus = np.setdiff1d(found, expected)

    def __str__(self) -> str:
        missing, surplus = self.missing[:5].tolist(), self.surplus[:5].tolist()
        return (
            f"wrong answer: {self.what}: {len(self.missing)} missing {missing}, {len(self.surplus)} too many {surplus}"
        )


class Checks:
    """Counts the answers that were compared and refuses the first that differs."""

    def __init__(self) -> None:
        self.n_answers = 0

    def equal(self, what: str, found: np.ndarray, expected: np.ndarray) -> None:
        if not np.array_equal(found, expected):
            raise WrongAnswerError(what, found, expected)
        self.n_answers += 1


class XPathLoop:
    """The loop over compiled expressions; a match is a position in `expressions`."""

    def __init__(self, expressions: Sequence[str]) -> None:
        # boolean() spares lxml the wrapping of every node found, and so is the faster way to ask.
        self._xpaths = [
            etree.XPath(f"boolean({expression})", regexp=False, smart_strings=False) for expression in expressions
        ]

    def match(self, document: bytes) -> np.ndarray:
        root = etree.fromstring(document)
        matched = [position for position, xpath in enumerate(self._xpaths) if xpath(root)]
        return np.array(matched, np.int64)


class ColumnLoop:
    """Every comparison of columns decided; a match is the position of a subscription. It knows numbers and ranges."""

    def __init__(self, columns: PredicateColumns) -> None:
        assert not np.isin(columns.operators, (Operator.NOT_EQUAL, Operator.LESS, Operator.GREATER)).any()
        self._numbers = {name: number for number, name in enumerate(columns.names)}
        self._attributes = columns.attributes
        self._first = np.cumsum(columns.counts) - columns.counts
        self._lows = np.where(columns.operators == Operator.LESS_EQUAL, -np.inf, columns.lows)
        self._highs = np.where(columns.operators == Operator.GREATER_EQUAL, np.inf, columns.highs)

    def match(self, event: Mapping[str, float]) -> np.ndarray:
        values = np.full(len(self._numbers), np.nan)  # which no comparison is true of
        for name, value in event.items():
            values[self._numbers[name]] = value
        met = values[self._attributes]
        holds = (met >= self._lows) & (met <= self._highs)
        return np.flatnonzero(np.logical_and.reduceat(holds, self._first))
