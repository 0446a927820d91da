"""Many short rows of integers in two arrays: what engines number, choose from and build from.

row i is values[start[i]:start[i + 1]]

a path           /a/b//c                  c*2+1   b*2   a*2        last step first, 1 for a descendant
a record         quote[@a = 1 and @b]     quote   0   1   ALL of 2          its name, then its program over tests
a conjunction    a >= 3 AND b = 7         a   3   LAST   -1   b   7   7   -1     attribute, codes and detail of each
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from sievecore.hashing import SEED, mix, new_slots
from sievecore.jit import builder, kernel

__all__ = [
    "Rows",
    "chosen_rows",
    "concatenate_rows",
    "distinct_rows",
    "new_rows",
    "number_rows",
    "offsets",
    "rows_by_key",
]


class Rows(NamedTuple):
    """See the module."""

    values: np.ndarray
    start: np.ndarray

    @property
    def n_rows(self) -> int:
        return len(self.start) - 1

    @property
    def lengths(self) -> np.ndarray:
        return self.start[1:] - self.start[:-1]


def new_rows(values: object, lengths: object) -> Rows:
    """Rows from their values and how many each has."""
    return Rows(np.asarray(values, np.int32), offsets(np.asarray(lengths, np.int64)))


def offsets(lengths: Iterable[int]) -> np.ndarray:
    """Where each of some stretches starts, one behind the other, and where the last one ends."""
    array = lengths if isinstance(lengths, np.ndarray) else np.fromiter(lengths, np.int64)
    start = np.zeros(len(array) + 1, np.int64)
    np.cumsum(array, out=start[1:])
    return start


def concatenate_rows(parts: list[Rows]) -> Rows:
    """All rows of all parts, in order."""
    lengths = [part.lengths for part in parts]
    return new_rows(np.concatenate([part.values for part in parts]), np.concatenate(lengths))


def chosen_rows(rows: Rows, chosen: np.ndarray) -> Rows:
    """Some of the rows, in the order chosen."""
    lengths = rows.lengths[chosen]
    kept = new_rows(np.empty(int(lengths.sum()), np.int32), lengths)
    _copy_rows(rows, chosen, kept)
    return kept


def distinct_rows(rows: Rows) -> tuple[Rows, np.ndarray]:
    """Each row once, and for each row which of those it is."""
    first, number = number_rows(rows)
    return chosen_rows(rows, first), number


def number_rows(rows: Rows) -> tuple[np.ndarray, np.ndarray]:
    """Where each distinct row stands first, and for each row which of those it equals.

    >>> first, number = number_rows(new_rows([7, 8, 7, 7, 8], [2, 1, 2]))
    >>> first.tolist(), number.tolist()
    ([0, 1], [0, 1, 0])
    """
    number = np.empty(rows.n_rows, np.int32)
    return _number_rows(rows, new_slots(rows.n_rows), number), number


@builder
def rows_by_key(keys, values, n_keys):
    """A row for each key from 0 up: its values, in the order they came."""
    start = np.zeros(n_keys + 1, np.int64)
    for key in keys:
        start[key + 1] += 1
    for key in range(n_keys):
        start[key + 1] += start[key]
    place = start.copy()
    sorted_values = np.empty(len(values), np.int32)
    for i in range(len(keys)):
        sorted_values[place[keys[i]]] = values[i]
        place[keys[i]] += 1
    return Rows(sorted_values, start)


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
        state = mix(state, rows.values[i])
    return state


@kernel
def _same_row(rows, left, right):
    first, other = rows.start[left], rows.start[right]
    length = rows.start[left + 1] - first
    if rows.start[right + 1] - other != length:
        return False
    for i in range(length):
        if rows.values[first + i] != rows.values[other + i]:
            return False
    return True


@kernel
def _copy_rows(rows, chosen, target):
    for i in range(len(chosen)):
        source = rows.start[chosen[i]]
        for j in range(target.start[i], target.start[i + 1]):
            target.values[j] = rows.values[source + j - target.start[i]]
