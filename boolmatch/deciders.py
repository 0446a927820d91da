"""Atoms that the index does not decide by itself: which are true of an event, and which are false?

    WITHIN(place, POLYGON…)     the polygons around a point, found in a tree of their boxes (shapely)
    XPATH '//halted'            whoever calls says which are true; all others are false

What is found goes into the event as truth values. False is only said where a subscription asks for it.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import shapely

from boolmatch.expression import Within
from boolmatch.names import AttributeNames, XPathKey
from boolmatch.values import Point

__all__ = ["Deciders"]

Decision = tuple[int, bool]


class _Polygons(NamedTuple):
    """The polygons that subscriptions compare one attribute with."""

    numbers: list[int]
    denied: frozenset[int]
    tree: shapely.STRtree


class Deciders:
    """Decides atoms as they are known at this moment; cheap to make again when there are new ones."""

    def __init__(self, names: AttributeNames) -> None:
        self._names = names
        self._n_atoms, self._n_denied = len(names.atoms), len(names.denied)
        atoms = names.atoms[: self._n_atoms]
        within: dict[str, list[Within]] = {}
        for atom in atoms:
            if isinstance(atom, Within):
                within.setdefault(atom.attribute, []).append(atom)
        self.attributes = {attribute: self._polygons(polygons) for attribute, polygons in within.items()}
        self._denied_paths = [
            names.numbers[atom] for atom in atoms if isinstance(atom, XPathKey) and atom in names.denied
        ]

    @property
    def has_work(self) -> bool:
        """Whether there is anything that an event must be asked about."""
        return bool(self.attributes or self._denied_paths)

    def is_current(self) -> bool:
        """Whether all atoms are known here."""
        return (self._n_atoms, self._n_denied) == (len(self._names.atoms), len(self._names.denied))

    def _polygons(self, atoms: Sequence[Within]) -> _Polygons:
        numbers = [self._names.numbers[atom] for atom in atoms]
        denied = frozenset(self._names.numbers[atom] for atom in atoms if atom in self._names.denied)
        return _Polygons(numbers, denied, shapely.STRtree(shapely.from_wkt([atom.polygon for atom in atoms])))

    def around(self, attribute: str, values: Sequence[object]) -> Iterator[Decision]:
        """What is known about the polygons of an attribute with these values, of which one may be enough."""
        polygons = self.attributes[attribute]
        points = [value for value in values if isinstance(value, Point)]
        geometries = np.array([shapely.Point(point.x, point.y) for point in points], object)
        hits = polygons.tree.query(geometries, predicate="intersects")[1]
        inside = {polygons.numbers[place] for place in hits.tolist()}
        yield from ((number, True) for number in inside)
        if len(points) == len(values):
            yield from ((number, False) for number in polygons.denied - inside)

    def paths(self, true_keys: Iterable[int]) -> Iterator[Decision]:
        """What is known about XPath expressions, of which those under these keys are true."""
        found = (self._names.numbers.get(XPathKey(key)) for key in true_keys)
        true = {number for number in found if number is not None}
        yield from ((number, True) for number in true)
        yield from ((number, False) for number in self._denied_paths if number not in true)
