"""The obvious way to match, which is both the peer to beat and the oracle that is always right.

    for xpath in compiled:            lxml.etree.XPath, compiled once
        if xpath(tree): …             asked one after the other

Expressions of the workload start with `/`, so that the context node makes no difference to them.
"""

from collections.abc import Sequence

import numpy as np
from lxml import etree

__all__ = ["Checks", "WrongAnswerError", "XPathLoop"]


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
        self.n_documents = 0

    def equal(self, what: str, found: np.ndarray, expected: np.ndarray) -> None:
        if not np.array_equal(found, expected):
            raise WrongAnswerError(what, found, expected)
        self.n_documents += 1


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
