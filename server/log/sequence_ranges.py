"""A set of sequence numbers that come in runs: acknowledgements ahead of one that is missing.

{4, 5, 6, 9}   is kept as   [4, 6] [9, 9]
"""

from bisect import bisect_right
from collections.abc import Iterable

__all__ = ["SequenceRanges"]


class SequenceRanges:
    """Disjoint ranges, ascending, never touching each other.

    >>> ranges = SequenceRanges([(4, 6)])
    >>> ranges.add(7), ranges.add(9), ranges.add(9)
    (True, True, False)
    >>> ranges.pairs(), len(ranges), 5 in ranges
    ([(4, 7), (9, 9)], 5, True)
    >>> ranges.advance(3), ranges.pairs()
    (7, [(9, 9)])
    """

    __slots__ = ("_firsts", "_lasts", "_n_sequences")

    def __init__(self, pairs: Iterable[tuple[int, int]] = ()) -> None:
        self._firsts: list[int] = []
        self._lasts: list[int] = []
        self._n_sequences = 0
        for first, last in pairs:
            self._firsts.append(first)
            self._lasts.append(last)
            self._n_sequences += last - first + 1

    def __len__(self) -> int:
        return self._n_sequences

    def __contains__(self, sequence: int) -> bool:
        place = bisect_right(self._firsts, sequence) - 1
        return place >= 0 and sequence <= self._lasts[place]

    def pairs(self) -> list[tuple[int, int]]:
        return list(zip(self._firsts, self._lasts, strict=True))

    def add(self, sequence: int) -> bool:
        """Put a sequence in; False if it was there."""
        place = bisect_right(self._firsts, sequence)
        if place and sequence <= self._lasts[place - 1]:
            return False
        joins_left = place > 0 and self._lasts[place - 1] == sequence - 1
        joins_right = place < len(self._firsts) and self._firsts[place] == sequence + 1
        if joins_left and joins_right:
            self._lasts[place - 1] = self._lasts[place]
            del self._firsts[place], self._lasts[place]
        elif joins_left:
            self._lasts[place - 1] = sequence
        elif joins_right:
            self._firsts[place] = sequence
        else:
            self._firsts.insert(place, sequence)
            self._lasts.insert(place, sequence)
        self._n_sequences += 1
        return True

    def advance(self, floor: int) -> int:
        """Drop all up to `floor`, then all that follow it without a gap; the last one dropped, or `floor`."""
        while self._firsts and self._firsts[0] <= floor + 1:
            first, last = self._firsts.pop(0), self._lasts.pop(0)
            self._n_sequences -= last - first + 1
            floor = max(floor, last)
        return floor
