"""Numbers for what predicates are about: attributes by name, and atoms that are decided outside of the index.

    "price" ─▶ 0     "symbol" ─▶ 1     Within("place", POLYGON…) ─▶ 2     XPathAtom("//halted") ─▶ 3

Numbers are given once and never again, so that events are written once for all segments. An atom is an attribute too:
its value is true, false or absent, and whoever decides it adds that to the event.
"""

import threading
from collections.abc import Iterator

from boolmatch.expression import Within, XPathAtom

__all__ = ["AttributeNames", "Subject"]

Subject = str | Within | XPathAtom


class AttributeNames:
    """Gives numbers; reading takes no lock.

    >>> names = AttributeNames()
    >>> names.number("price"), names.number("symbol"), names.number("price")
    (0, 1, 0)
    """

    def __init__(self, subjects: Iterator[Subject] = iter(())) -> None:
        self.numbers: dict[Subject, int] = {}
        self.subjects: list[Subject] = []
        self._lock = threading.Lock()
        for subject in subjects:
            self.number(subject)

    def number(self, subject: Subject) -> int:
        """The number of a subject, a new one if it has none."""
        number = self.numbers.get(subject)
        if number is not None:
            return number
        with self._lock:
            number = self.numbers.get(subject)
            if number is None:
                number = len(self.subjects)
                self.subjects.append(subject)
                self.numbers[subject] = number
            return number
