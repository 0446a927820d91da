"""PredicateSpaces: the spaces of one attribute while predicates come and go, with the counters that PS-Tree keeps.

    age BETWEEN 20 AND 60,  age BETWEEN 30 AND 80

    cuts        20⁻     30⁻     60⁺     80⁺            before or after a value, and how many predicates need it
    spaces   …  |  [20,30)  |  [30,60]  |  (60,80]  |  …
    covered  0       1           2           1       0

An insert cuts a space in two where the predicate starts or ends inside it; both halves inherit its counter. A delete
lets go of its two cuts, and one that no predicate needs any more is gone: its spaces become one. (PS-Tree merges where
neighbours have equal counters, which is not enough: spaces of different predicates may be covered equally often.)

Segments are built all at once, by `spaces`, which cuts on both sides of every end: then the code of a cell tells if it
is an end, and a row can be read back from codes. Its cells are these spaces, some of them in pieces.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from boolmatch.expression import Constant
from boolmatch.ranges import Range, ValueType

__all__ = ["PredicateSpaces", "Space"]

BEFORE, AFTER = 0, 1


class Cut(NamedTuple):
    """A place between values: before a value, or after it."""

    value: Constant
    side: int


class Space(NamedTuple):
    """Neighbouring values that all predicates take alike, and how many of these cover them."""

    values: Range
    n_covering: int


class PredicateSpaces:
    """The disjoint spaces into which ranges of one type cut its values.

    >>> spaces = PredicateSpaces(ValueType.NUMBER)
    >>> spaces.insert(Range(ValueType.NUMBER, 20.0, 60.0))
    >>> spaces.insert(Range(ValueType.NUMBER, 30.0, 80.0))
    >>> [space.n_covering for space in spaces.spaces()]
    [0, 1, 2, 1, 0]
    >>> spaces.find(40.0).n_covering
    2
    >>> spaces.delete(Range(ValueType.NUMBER, 30.0, 80.0))
    >>> [space.n_covering for space in spaces.spaces()]
    [0, 1, 0]

    A look-up halves the list of cuts; an insert or delete touches, as in PS-Tree, each space that it covers.
    """

    def __init__(self, value_type: ValueType) -> None:
        self.value_type = value_type
        self._cuts: list[Cut] = []
        self._needed: list[int] = []  # of each cut: how many predicates start or end there
        self._covering = [0]  # of each space; the one after cut i is i + 1

    def insert(self, values: Range) -> None:
        """Take in a predicate that holds for these values."""
        for cut in self._cuts_of(values):
            self._need(cut)
        for space in self._covered(values):
            self._covering[space] += 1

    def delete(self, values: Range) -> None:
        """Let go of a predicate; `KeyError` if none was inserted that starts and ends there."""
        cuts = self._cuts_of(values)
        if any(self._place(cut) is None for cut in cuts) or 0 in [self._covering[i] for i in self._covered(values)]:
            raise KeyError(values)
        for space in self._covered(values):
            self._covering[space] -= 1
        for cut in cuts:
            self._release(cut)

    def spaces(self) -> Iterator[Space]:
        """All spaces, ascending."""
        return (self._space(i) for i in range(len(self._covering)))

    def find(self, value: Constant) -> Space:
        """The space that a value belongs to."""
        return self._space(bisect_left(self._cuts, Cut(value, AFTER)))

    def _cuts_of(self, values: Range) -> list[Cut]:
        if values.type != self.value_type:
            raise ValueError(f"expected a range of type {self.value_type.name}, found {values.type.name}")
        low = [] if values.low is None else [Cut(values.low, BEFORE if values.low_closed else AFTER)]
        high = [] if values.high is None else [Cut(values.high, AFTER if values.high_closed else BEFORE)]
        return low + high

    def _covered(self, values: Range) -> range:
        """The numbers of the spaces of a predicate whose cuts are there."""
        cuts = self._cuts_of(values)
        first = 0 if values.low is None else bisect_right(self._cuts, cuts[0])
        end = len(self._covering) if values.high is None else bisect_right(self._cuts, cuts[-1])
        return range(first, end)

    def _place(self, cut: Cut) -> int | None:
        place = bisect_left(self._cuts, cut)
        return place if place < len(self._cuts) and self._cuts[place] == cut else None

    def _need(self, cut: Cut) -> None:
        place = bisect_left(self._cuts, cut)
        if self._place(cut) is None:
            self._cuts.insert(place, cut)
            self._needed.insert(place, 0)
            self._covering.insert(place, self._covering[place])
        self._needed[place] += 1

    def _release(self, cut: Cut) -> None:
        place = bisect_left(self._cuts, cut)
        self._needed[place] -= 1
        if self._needed[place] == 0:
            del self._cuts[place], self._needed[place], self._covering[place + 1]

    def _space(self, number: int) -> Space:
        low = self._cuts[number - 1] if number > 0 else None
        high = self._cuts[number] if number < len(self._cuts) else None
        values = Range(
            self.value_type,
            None if low is None else low.value,
            None if high is None else high.value,
            low is None or low.side == BEFORE,
            high is None or high.side == AFTER,
        )
        return Space(values, self._covering[number])

    def _check(self) -> None:
        """Cuts ascend, each is needed, and neighbours across a cut may differ."""
        assert self._cuts == sorted(set(self._cuts))
        assert len(self._cuts) == len(self._needed) == len(self._covering) - 1
        assert all(needed > 0 for needed in self._needed)
        assert min(self._covering) >= 0
