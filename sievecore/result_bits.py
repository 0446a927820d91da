"""Which slots a match has found: one bit each, and one bit for each 64 of those, so that few are found fast.

    mark(bits, 70)   mark(bits, 3)   mark(bits, 70)

    words     1000 … | 1000000 | 0 | …          summary   11 0 …
    write_ids walks the summary: the ids come out ascending, each once, without those that are no longer alive

All bits are zero between matches.
"""

from typing import NamedTuple

import numpy as np

from sievecore.bits import lowest_bit
from sievecore.jit import kernel

__all__ = ["NO_ROOM", "ResultBits", "mark", "new_result_bits", "write_ids"]

NO_ROOM = -1
WORD_BITS = 64
ONE, SIX, TWELVE, LOW_BITS = (np.uint64(number) for number in (1, 6, 12, 63))


class ResultBits(NamedTuple):
    """Bits of slots, and a bit for each word of those that is not zero."""

    words: np.ndarray
    summary: np.ndarray


def new_result_bits(n_slots: int) -> ResultBits:
    """Room for so many slots."""
    n_words = n_slots // 64 + 1
    return ResultBits(np.zeros(n_words, np.uint64), np.zeros(n_words // 64 + 1, np.uint64))


@kernel
def mark(bits, slot):
    """Note that a slot was found. (Unsigned indexes spare the question whether they count from the end.)"""
    slot = np.uint64(slot)
    bits.words[slot >> SIX] |= ONE << (slot & LOW_BITS)
    bits.summary[slot >> TWELVE] |= ONE << ((slot >> SIX) & LOW_BITS)


@kernel
def write_ids(bits, alive, ids, found, start):
    """Write the ids of marked slots that are alive to found[start:], forget the marks; return the end, or NO_ROOM.

    There is room as long as all of the next word's would fit. Counting them all beforehand took a microsecond for
    a thousand.
    """
    in_a_row = len(ids) > 0 and ids[-1] - ids[0] == len(ids) - 1  # then they need not be read
    end, has_room = np.uint64(start), True
    for i in range(np.uint64(len(bits.summary))):
        summary = bits.summary[i]
        bits.summary[i] = 0
        while summary:
            place = (i << SIX) + lowest_bit(summary)
            summary &= summary - ONE
            word = bits.words[place] & alive[place]
            bits.words[place] = 0
            if np.int64(end) + WORD_BITS > len(found):
                has_room = False
            while word and has_room:
                slot = (place << SIX) + lowest_bit(word)
                found[end] = ids[0] + np.int64(slot) if in_a_row else ids[slot]
                end += ONE
                word &= word - ONE
    return np.int64(end) if has_room else NO_ROOM
