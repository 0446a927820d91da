"""Conjunctions once more, in a third of the memory: a predicate is a word of 32 bits, and who wants it stands before.

    price 10-10 AND qty 4-7, wanted by target 17           attribute | low | high - low

    words   17 | price 10 0 | qty 4 3 | 31 | symbol 5 4 …

A plain event satisfies a predicate if its code, less `low`, is at most `high - low`: one unsigned comparison, and none
of a conjunction's is branched upon. A candidate is then a line of the cache or two instead of four. With a million
subscriptions that took an event of the dense workload from 101 to 78 us, of ads from 33 to 28.

The fields are as wide as the segment needs. Where 32 bits do not do (2^12 attributes with 2^11 cells, say), there are
no words, and candidates are decided by the table. That has everything, flags and all, and is what other events are
decided by. Conjunctions with flags have no words either; they come after all others.
"""

from typing import NamedTuple

import numpy as np

from boolmatch.conjunctions import Conjunctions
from sievecore.jit import kernel

__all__ = ["CODE_BITS", "N_PACKED", "Packed", "no_words", "pack", "packed_meet"]

WORD_BITS = 32
N_PACKED, CODE_BITS = range(2)


class Packed(NamedTuple):
    """Conjunction i has the words from table.start[i] + i on: its target, and its predicates."""

    words: np.ndarray
    layout: np.ndarray  # how many conjunctions have words, and how many bits a code has


def no_words() -> Packed:
    """For algorithms that decide by the table."""
    return Packed(np.zeros(0, np.uint32), np.zeros(2, np.int64))


def pack(table: Conjunctions, targets: np.ndarray, n_codes: np.ndarray) -> Packed:
    """The words of a table whose attributes have so many codes, if they fit."""
    code_bits = int(n_codes.max(initial=1) - 1).bit_length()
    attribute_bits = (len(n_codes) - 1).bit_length()
    if attribute_bits + 2 * code_bits > WORD_BITS:
        return no_words()
    n_packed = int(table.n_plain[0])
    words = np.empty(int(table.start[n_packed]) + n_packed, np.uint32)  # numpy asks for huge pages, a builder does not
    _write_words(table, targets, words, n_packed, np.uint32(code_bits))
    return Packed(words, np.array([n_packed, code_bits]))


@kernel
def _write_words(table, targets, words, n_packed, code_bits):
    for conjunction in range(n_packed):
        words[table.start[conjunction] + conjunction] = targets[conjunction]
        for position in range(table.start[conjunction], table.start[conjunction + 1]):
            predicate = table.predicates[position]
            fields = np.uint32(predicate.attribute) << code_bits | np.uint32(predicate.low)
            words[position + conjunction + 1] = fields << code_bits | np.uint32(predicate.high - predicate.low)


@kernel
def packed_meet(words, first, end, code_bits, points):
    """Whether a plain event satisfies the predicates in words[first:end]."""
    mask = np.uint32((np.uint32(1) << code_bits) - np.uint32(1))
    n_missed = np.uint32(0)
    for position in range(np.uint32(first), np.uint32(end)):
        word = words[position]
        code = np.uint32(points[word >> np.uint32(code_bits + code_bits)])
        n_missed |= np.uint32(np.uint32(code - np.uint32(word >> code_bits & mask)) > word & mask)
    return n_missed == 0
