"""Distinct strings of bytes, numbered in the order in which they are first seen.

    number  0       1     2            slots   an open-addressing table of numbers, -1 where it is empty
    bytes   price · size · symbol      places  the slot of each number, to be able to take the last ones back

A kernel that reads text finds the number of a word with `number_of`, adding it when it is new, and `forget` takes back
what was added since. Kernels cannot make room: whoever calls one sees to it before, with `make_room`.
"""

from typing import NamedTuple

import numpy as np

from sievecore.hashing import SEED, hash_bytes, new_slots, same_bytes
from sievecore.jit import kernel

__all__ = ["StringTable", "TableArrays", "forget", "number_of"]


class TableArrays(NamedTuple):
    """The table as kernels see it."""

    content: np.ndarray  # uint8: the bytes of all strings, one after the other
    start: np.ndarray  # int64: where each begins; one more for the end
    slots: np.ndarray  # int32
    places: np.ndarray  # int32
    n_strings: np.ndarray  # int64, one cell


class StringTable:
    """A table that grows."""

    def __init__(self) -> None:
        self.arrays = TableArrays(
            np.empty(0, np.uint8), np.zeros(1, np.int64), new_slots(0), np.empty(0, np.int32), np.zeros(1, np.int64)
        )

    def make_room(self, n_strings: int, n_bytes: int) -> None:
        """See to it that so many more strings, of so many bytes in all, can be added."""
        old = self.arrays
        known = int(old.n_strings[0])
        if known + n_strings > len(old.places) or old.start[known] + n_bytes > len(old.content):
            n_most, size = 2 * (known + n_strings), 2 * (int(old.start[known]) + n_bytes)
            self.arrays = TableArrays(
                _moved(old.content[: old.start[known]], size),
                _moved(old.start[: known + 1], n_most + 1),
                new_slots(n_most),
                np.empty(n_most, np.int32),
                old.n_strings,
            )
            _fill_slots(self.arrays)

    def strings(self) -> list[str]:
        """Return the strings in the order of their numbers."""
        known = int(self.arrays.n_strings[0])
        start = self.arrays.start[: known + 1].tolist()
        content = self.arrays.content[: start[-1]].tobytes()
        return [content[start[i] : start[i + 1]].decode() for i in range(known)]


def _moved(used: np.ndarray, length: int) -> np.ndarray:
    """Return an array of this length that starts with what is used of the old one."""
    moved = np.empty(length, used.dtype)
    moved[: len(used)] = used
    return moved


@kernel
def _fill_slots(table):
    for number in range(table.n_strings[0]):
        place = _place_of(table, table.content, table.start[number], table.start[number + 1])
        table.slots[place] = number
        table.places[number] = place


@kernel
def _place_of(table, text, start, end):
    """The slot of the string text[start:end], or the empty one where it belongs."""
    mask = np.uint64(len(table.slots) - 1)
    place = hash_bytes(text, start, end, SEED) & mask
    while table.slots[place] >= 0:
        known = table.slots[place]
        if same_bytes(table.content, table.start[known], table.start[known + 1], text, start, end):
            break
        place = (place + np.uint64(1)) & mask
    return place


@kernel
def number_of(table, text, start, end):
    """The number of the string text[start:end], which is added if it is new."""
    place = _place_of(table, text, start, end)
    if table.slots[place] < 0:
        number = table.n_strings[0]
        table.slots[place] = number
        table.places[number] = place
        table.n_strings[0] = number + 1
        first = table.start[number]
        for i in range(start, end):
            table.content[first + i - start] = text[i]
        table.start[number + 1] = first + end - start
    return table.slots[place]


@kernel
def forget(table, n_kept):
    """Take back the strings that were added last, down to the first `n_kept`."""
    for number in range(table.n_strings[0] - 1, n_kept - 1, -1):
        table.slots[table.places[number]] = -1
    table.n_strings[0] = n_kept
