"""XPATH atoms of Boolean filters: each is one filter of the XPath engine, however many use it.

    price > 100 AND NOT XPATH '//halted'  ─┐
                                           ├──▶ //halted, used by 2 ──▶ an id of the XPath engine: the atom's key
    XPATH '//halted' OR price < 5         ─┘

The last one who uses an atom takes it out of the engine.
"""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from sievefilters.given import Namespaces
from sievefilters.number_array import NumberArray
from xpathfilter import XPathIndex

__all__ = ["Atoms", "Name", "Taken"]

Name = tuple[str, Namespaces]


class Taken:
    """The atoms that one filter has taken so far."""

    def __init__(self, atoms: "Atoms", namespaces: Namespaces) -> None:
        self.keys: list[int] = []
        self._atoms = atoms
        self._namespaces = namespaces

    def decide(self, text: str) -> int:
        """The key of an atom, for the Boolean engine."""
        self.keys.append(self._atoms.take(text, self._namespaces))
        return self.keys[-1]


class Atoms:
    """All atoms of one pair of engines, counted by who uses them. Every method may be called from any thread."""

    def __init__(self, xpath: XPathIndex) -> None:
        self._xpath = xpath
        self._lock = threading.Lock()
        self._keys: dict[Name, int] = {}
        self._names: dict[int, Name] = {}
        self._users = NumberArray()

    def __len__(self) -> int:
        return len(self._names)

    def among(self, ids: np.ndarray) -> list[int]:
        """The keys of the atoms among the ids that the XPath engine has found."""
        return ids[self._users.take(ids) > 0].tolist() if self._names else []

    @contextmanager
    def taking(self, namespaces: Namespaces) -> Iterator[Taken]:
        """Take the atoms of one filter; they are released again if the filter is refused."""
        taken = Taken(self, namespaces)
        try:
            yield taken
        except BaseException:
            self.release(taken.keys)
            raise

    def take(self, text: str, namespaces: Namespaces) -> int:
        """The key of an atom, which has one user more."""
        with self._lock:
            name = (text, namespaces)
            if name not in self._keys:
                key = self._xpath.add(text, dict(namespaces))
                self._keys[name], self._names[key] = key, name
            key = self._keys[name]
            self._users.put(key, self._users[key] + 1)
            return key

    def release(self, keys: Sequence[int]) -> None:
        """These atoms have one user less each."""
        with self._lock:
            for key in keys:
                self._users.put(key, self._users[key] - 1)
                if not self._users[key]:
                    del self._keys[self._names.pop(key)]
                    self._xpath.remove(key)

    def stored(self) -> list[tuple[int, int, Name]]:
        """Key, users and name of each, for a file."""
        with self._lock:
            return [(key, self._users[key], name) for key, name in self._names.items()]

    @classmethod
    def from_stored(cls, xpath: XPathIndex, stored: Sequence[Any]) -> "Atoms":
        """The atoms that `stored` has told of, as JSON gives them back."""
        atoms = cls(xpath)
        for key, users, (text, namespaces) in stored:
            name = text, tuple((prefix, uri) for prefix, uri in namespaces)
            atoms._keys[name], atoms._names[key] = key, name
            atoms._users.put(key, users)
        return atoms
