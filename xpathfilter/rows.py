"""Linear paths as rows of integers: what families are built from, and what they can be read back as.

/a/b//c      row_start [0, 3)      steps   c*2+1   b*2   a*2        last step first, 1 for a descendant
"""

from typing import NamedTuple

import numpy as np

from sievecore.hashing import SEED, mix, new_slots
from sievecore.jit import builder, kernel

__all__ = ["PathRows", "concatenate_rows", "distinct_rows"]


class PathRows(NamedTuple):
    """Path i is steps[start[i]:start[i + 1]], each step record * 2 + (1 for a descendant)."""

    steps: np.ndarray
    start: np.ndarray

    @property
    def n_rows(self) -> int:
        return len(self.start) - 1


def new_rows(steps: object, lengths: object) -> PathRows:
    """Rows from their steps and how many steps each has."""
    start = np.concatenate([[0], np.cumsum(np.asarray(lengths, np.int64))]).astype(np.int64)
    return PathRows(np.asarray(steps, np.int32), start)


def concatenate_rows(parts: list[PathRows]) -> PathRows:
    """All rows of all parts, in order."""
    lengths = [np.diff(part.start) for part in parts]
    return new_rows(np.concatenate([part.steps for part in parts]), np.concatenate(lengths))


def distinct_rows(rows: PathRows) -> tuple[PathRows, np.ndarray]:
    """Each row once, and for each row which of those it is."""
    number = np.empty(rows.n_rows, np.int32)
    first = _number_rows(rows, new_slots(rows.n_rows), number)
    lengths = np.diff(rows.start)[first]
    kept = new_rows(np.empty(int(lengths.sum()), np.int32), lengths)
    _copy_rows(rows, first, kept)
    return kept, number


@builder
def _number_rows(rows, slots, number):
    first = np.empty(len(number), np.int32)
    n_distinct = 0
    mask = np.uint64(len(slots) - 1)
    for row in range(len(number)):
        place = _row_hash(rows, row) & mask
        while slots[place] >= 0 and not _same_row(rows, first[slots[place]], row):
            place = (place + np.uint64(1)) & mask
        if slots[place] < 0:
            slots[place] = n_distinct
            first[n_distinct] = row
            n_distinct += 1
        number[row] = slots[place]
    return first[:n_distinct].copy()


@kernel
def _row_hash(rows, row):
    state = SEED
    for i in range(rows.start[row], rows.start[row + 1]):
        state = mix(state, rows.steps[i])
    return state


@kernel
def _same_row(rows, left, right):
    first, other = rows.start[left], rows.start[right]
    length = rows.start[left + 1] - first
    if rows.start[right + 1] - other != length:
        return False
    for i in range(length):
        if rows.steps[first + i] != rows.steps[other + i]:
            return False
    return True


@kernel
def _copy_rows(rows, chosen, target):
    for i in range(len(chosen)):
        source = rows.start[chosen[i]]
        for j in range(target.start[i], target.start[i + 1]):
            target.steps[j] = rows.steps[source + j - target.start[i]]
