"""A part of the log in memory: a stretch of records without their documents, one after the other.

    position           starts          numbers          sequences
    first      ──▶     [0, 3)    ──▶   4  7  9          12  3  40
    first + 1  ──▶     [3, 5)    ──▶   7  8                 4   1

The open part grows at its end; when it is large enough it is sealed and becomes a segment. A segment that is read
by many comes back as a part.
"""

from collections.abc import Sequence

import numpy as np

__all__ = ["Part"]

FIRST_RECORDS = 256
FIRST_MATCHES = 4096


class Part:
    """Records from `first_position` on. What has been added is never changed, so readers need no lock."""

    def __init__(self, first_position: int) -> None:
        self.first_position = first_position
        self.n_records = 0
        self.n_matches = 0
        self.n_bytes = 0
        self._starts = np.zeros(FIRST_RECORDS, np.int64)
        self._times = np.empty(FIRST_RECORDS, np.float64)
        self._numbers = np.empty(FIRST_MATCHES, np.int64)
        self._sequences = np.empty(FIRST_MATCHES, np.int64)

    @classmethod
    def of_segment(cls, first_position: int, starts: np.ndarray, numbers: np.ndarray, sequences: np.ndarray) -> "Part":
        """A part that is whole already; it has no times."""
        part = cls.__new__(cls)
        part.first_position = first_position
        part.n_records = len(starts) - 1
        part.n_matches = len(numbers)
        part.n_bytes = 0
        part._starts, part._numbers, part._sequences = starts, numbers, sequences
        part._times = np.empty(0, np.float64)
        return part

    @property
    def last_position(self) -> int:
        return self.first_position + self.n_records - 1

    @property
    def starts(self) -> np.ndarray:
        return self._starts[: self.n_records + 1]

    @property
    def numbers(self) -> np.ndarray:
        return self._numbers[: self.n_matches]

    @property
    def sequences(self) -> np.ndarray:
        return self._sequences[: self.n_matches]

    @property
    def times(self) -> np.ndarray:
        return self._times[: self.n_records]

    @property
    def memory(self) -> int:
        return self._starts.nbytes + self._times.nbytes + self._numbers.nbytes + self._sequences.nbytes

    def add(self, numbers: np.ndarray, sequences: np.ndarray, time: float, n_bytes: int) -> None:
        """The next record."""
        start, end = self.n_matches, self.n_matches + len(numbers)
        if self.n_records + 1 == len(self._starts):
            self._starts = _grown(self._starts, self.n_records + 2)
            self._times = _grown(self._times, self.n_records + 2)
        if end > len(self._numbers):
            self._numbers = _grown(self._numbers, end)
            self._sequences = _grown(self._sequences, end)
        self._numbers[start:end] = numbers
        self._sequences[start:end] = sequences
        self._times[self.n_records] = time
        self._starts[self.n_records + 1] = end
        self.n_matches = end
        self.n_records += 1
        self.n_bytes += n_bytes

    def after(self, position: int) -> "Part":
        """The records after a position, as a part of their own; this one, if those are all."""
        if position < self.first_position:
            return self
        part = Part(position + 1)
        bytes_each = self.n_bytes // self.n_records
        for row in range(self._row_after(position), self.n_records):
            start, end = self._starts[row : row + 2]
            part.add(self._numbers[start:end], self._sequences[start:end], float(self._times[row]), bytes_each)
        return part

    def find(self, number: int, after: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """The positions of a number's records after a position, and its sequences there."""
        start = self._starts[self._row_after(after)]
        places = np.flatnonzero(self.numbers[start:] == number) + start
        return self._positions(places), self.sequences[places]

    def narrowed(self, position: int, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The numbers of one record that are `wanted` (a bool for each number), and their sequences."""
        numbers, sequences = self.of(position)
        kept = wanted[numbers]
        return numbers[kept], sequences[kept]

    def of(self, position: int) -> tuple[np.ndarray, np.ndarray]:
        """The numbers and sequences of one record."""
        start, end = self._starts[position - self.first_position : position - self.first_position + 2]
        return self._numbers[start:end], self._sequences[start:end]

    def of_all(self, positions: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
        """The numbers and sequences of some records, one record after the other."""
        chosen = np.zeros(self.n_records, np.bool_)
        chosen[np.array(positions, np.int64) - self.first_position] = True
        kept = np.repeat(chosen, np.diff(self.starts))
        return self.numbers[: len(kept)][kept], self.sequences[: len(kept)][kept]

    def positions_of(self, wanted: np.ndarray, after: int, limit: int) -> list[int]:
        """The first positions after `after` whose records hold a wanted number, at most `limit`."""
        start = self._starts[self._row_after(after)]
        places = np.flatnonzero(wanted[self.numbers[start:]]) + start
        found = self._positions(places)
        first_of_each = np.flatnonzero(np.diff(found, prepend=-1))[:limit]
        positions: list[int] = found[first_of_each].tolist()
        return positions

    def _row_after(self, position: int) -> int:
        return max(position + 1 - self.first_position, 0)

    def _positions(self, places: np.ndarray) -> np.ndarray:
        return self.first_position + np.searchsorted(self.starts, places, "right") - 1


def _grown(array: np.ndarray, needed: int) -> np.ndarray:
    grown = np.empty(max(needed, 2 * len(array)), array.dtype)
    grown[: len(array)] = array
    return grown
