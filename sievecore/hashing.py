"""Hashing for open-addressing tables inside kernels.

A table is an int32 array of `slots`, a power of two long and at most half full; -1 is an empty slot.
A hash only says where to look first: whoever looks compares the key itself, so two keys with one hash
cost a step more and never a wrong answer.
"""

import numpy as np

from sievecore.jit import kernel

__all__ = ["SEED", "hash_bytes", "mix", "new_slots", "same_bytes"]

SEED = np.uint64(0xCBF29CE484222325)
_BYTE_FACTOR = np.uint64(0x100000001B3)
_WORD_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_FINAL_FACTOR = np.uint64(0xBF58476D1CE4E5B9)
_SHIFT = np.uint64(29)


@kernel
def mix(state, value):
    """Take one integer into a hash."""
    state = (state ^ np.uint64(value)) * _WORD_FACTOR
    state = (state ^ (state >> _SHIFT)) * _FINAL_FACTOR
    return state ^ (state >> _SHIFT)


@kernel
def hash_bytes(content, start, end, state):
    """Take the bytes content[start:end] into a hash (FNV-1a, then mixed)."""
    for i in range(start, end):
        state = (state ^ np.uint64(content[i])) * _BYTE_FACTOR
    return mix(state, end - start)


@kernel
def same_bytes(left, left_start, left_end, right, right_start, right_end):
    """Whether two byte ranges hold the same bytes."""
    if left_end - left_start != right_end - right_start:
        return False
    for i in range(left_end - left_start):
        if left[left_start + i] != right[right_start + i]:
            return False
    return True


def new_slots(n_keys: int) -> np.ndarray:
    """An empty table with room for `n_keys`."""
    size = 8
    while size < 2 * n_keys:
        size *= 2
    return np.full(size, -1, np.int32)
