"""Numbers for what predicates are about: attributes by name, and atoms that are decided outside of the index.

    "price" ─▶ 0     "symbol" ─▶ 1     Within("place", POLYGON…) ─▶ 2     XPathKey(17) ─▶ 3

Numbers are given once and never again, so that events are written once for all segments. An atom is an attribute too:
its value is true, false or absent, and whoever decides it adds that to the event. Only where some subscription wants
an atom to be false (`denied`) does an event have to say so.
"""

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field

from boolmatch.expression import Within

__all__ = ["AttributeNames", "Subject", "XPathKey"]


@dataclass(frozen=True, slots=True)
class XPathKey:
    """An XPath expression, under the number that its decider knows it by."""

    key: int
    text: str = field(default="", compare=False)


Subject = str | Within | XPathKey


class AttributeNames:
    """Gives numbers; reading takes no lock.

    >>> names = AttributeNames()
    >>> names.number("price"), names.number("symbol"), names.number("price")
    (0, 1, 0)
    """

    def __init__(self, subjects: Iterable[Subject] = ()) -> None:
        self.numbers: dict[Subject, int] = {}
        self.subjects: list[Subject] = []
        self.atoms: list[Within | XPathKey] = []
        self.denied: set[Subject] = set()
        self._lock = threading.Lock()
        for subject in subjects:
            self.number(subject)

    def number(self, subject: Subject) -> int:
        """The number of a subject, a new one if it has none."""
        number = self.numbers.get(subject)
        return self._new_number(subject) if number is None else number

    def _new_number(self, subject: Subject) -> int:
        with self._lock:
            if subject not in self.numbers:
                self.subjects.append(subject)
                if not isinstance(subject, str):
                    self.atoms.append(subject)
                self.numbers[subject] = len(self.subjects) - 1
            return self.numbers[subject]
