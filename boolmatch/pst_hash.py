"""PSTHash: each conjunction is filed under two access predicates at once, hashed together.

    price BETWEEN 50 AND 100 AND qty > 7 AND day = 'Mon'      access: day = 'Mon' and price BETWEEN 50 AND 100

    cells of day     11                                       keys: (day 11, price part 1), (day 11, price part 2)
    cells of price   … 8 … 15  16 … 23  24 …                  an event looks up the pairs of its own cells and parts,
    parts, level 1   ───1────  ───2───  ──3                   and only what it has both of becomes a candidate

PSTHash files a conjunction under every pair of cells that its access predicates cover, which takes the product of two
widths. Here a wide range is filed under *parts*: groups of 8 cells, of 64 and so on. It takes the finest level at
which it needs at most PARTS of them, so that a conjunction has at most PARTS squared entries. Parts may cover a little
more than the range: a candidate in vain. Canonical nodes of a binary tree cover exactly, but an event would have 8
nodes above each of 200 cells, and so 64 look-ups for two attributes; with parts of 1, 8 and 64 cells it has 9 at most.
A million dense conjunctions take 18 bytes each and 113 us an event; with up to 4 parts of 16 cells, 54 and 116.

An event with 30 attributes has 435 pairs of them. A bit says whether any conjunction uses two attributes together,
another whether there may be entries under a key; both err on the safe side only. The hash table keeps no keys: an
entry is *marked* with 8 bits of its key's hash, and with two more attributes that an event must have.

What has no two attributes, or none that would tell more than one alone, is filed as in PSTBloom. Where most
conjunctions fall back to that, PSTBloom is the better structure; `stats` says how many do, and so.
"""

from math import isqrt
from typing import Any, NamedTuple

import numpy as np

from boolmatch.coded_event import N_PRESENT
from boolmatch.conjunctions import Conjunctions
from boolmatch.matching import N_LOOKED_AT, check, decide
from boolmatch.pst_bloom import (
    FILED_ELSEWHERE,
    attribute_bits,
    choose_access,
    file_singly,
    find_by_pst_bloom,
    order_by_cell,
    signatures_of,
)
from boolmatch.selectivity import Profile, common_codes
from boolmatch.spaces import ABSENT, ATTRIBUTE_MASK
from sievecore.bits import lowest_bit, prefetch
from sievecore.breathing import breathe
from sievecore.hashing import SEED, mix
from sievecore.jit import builder, kernel
from sievecore.tables import columns

__all__ = [
    "PstHashFiling",
    "build_pst_hash",
    "describe_pst_hash",
    "find_by_pst_hash",
    "pst_hash_order",
    "pst_hash_scratch_size",
]

STEP = 3  # bits of a code from one level to the next
PARTS = 3
CONSIDERED = 8  # predicates of a conjunction, the least likely ones, that a pair is chosen from
WORTH = 0.8  # an access predicate that holds for more than this share of the cells tells too little
PLACE_ENTRIES = 4  # on average: a line of the cache has 8
KEY_BITS, PAIR_BITS = 8, 16  # of the bitmaps, for each entry and for each pair of attributes
WINDOW = 64
FEW_WORDS = 256

NO_PAIR = -1
PLACE_SHIFT, KEY_SHIFT, PAIR_SHIFT = range(3)
ONE, SIX, LOW_BITS, LEVEL_BITS = (np.uint64(number) for number in (1, 6, 63, 8))

# The mark of an entry, from the lowest bit: a tag of its key, and two attributes that an event must have.
TAG_MASK, NAME_BITS, NAME_MASK = np.uint64(0xFF), np.uint64(12), np.uint64(0xFFF)
FIRST_NAME, SECOND_NAME = np.uint64(8), np.uint64(20)
NAME_WORDS = 1 << 6


class PstHashFiling(NamedTuple):
    """Place i of the hash table has the pair_entries from place_start[i] on. The second half is PSTBloom's filing."""

    place_start: np.ndarray
    pair_entries: np.ndarray
    key_bits: np.ndarray  # a bit is set where there may be entries
    pair_bits: np.ndarray  # a bit is set for attributes that may be used together
    levels: np.ndarray  # of an attribute: a bit for each level that conjunctions are filed at
    shifts: np.ndarray  # from a hash to a bit of those, or a place
    n_conjunctions: np.ndarray

    tree_start: np.ndarray
    leaf_bits: np.ndarray
    node_start: np.ndarray
    entries: np.ndarray
    signatures: np.ndarray
    bit_of_attribute: np.ndarray
    always: np.ndarray


ENTRY = columns("conjunction", mark=np.uint32)
SIDE = columns("attribute", "low", "high", "level", likelihood=np.float64)
"""One of two access predicates: the parts of a level that cover it, and how likely an event has one of them."""


def pst_hash_order(table: Conjunctions, profile: Profile) -> np.ndarray:
    """The conjunctions by the cells of their access predicates, first and second; those with flags after all others."""
    access = choose_access(table)
    second = access.copy()
    sides = _choose_sides(table, profile)
    _set_cells(sides, access, second)
    breathe()
    by_second = order_by_cell(second, profile)
    order = by_second[order_by_cell(access[by_second], profile)]
    special = access["special"][order] == 1
    return np.concatenate([order[~special], order[special]])


@builder
def _set_cells(sides, first, second):
    for i in range(len(sides)):
        left, right = sides[i, 0], sides[i, 1]
        if left.attribute != NO_PAIR:
            first[i].attribute, first[i].low = left.attribute, left.low << (STEP * left.level)
            second[i].attribute, second[i].low = right.attribute, right.low << (STEP * right.level)


def build_pst_hash(table: Conjunctions, profile: Profile) -> PstHashFiling:
    """File the conjunctions of a table."""
    sides = _choose_sides(table, profile)
    breathe()
    n_entries = _count_entries(sides)
    sizes = (n_entries // PLACE_ENTRIES, n_entries * KEY_BITS, _count_pairs(sides) * PAIR_BITS)
    shifts = np.array([64 - max(6, int(size).bit_length()) for size in sizes], np.uint64)
    place_start, pair_entries = _file_pairs(sides, _marks(table, sides), shifts[PLACE_SHIFT])
    breathe()
    key_bits, pair_bits, levels = _mark_keys(sides, shifts, len(profile.n_codes))
    access, bits = choose_access(table), attribute_bits(profile)
    access["attribute"][sides["attribute"][:, 0] != NO_PAIR] = FILED_ELSEWHERE
    singles = file_singly(table, access, profile, bits, signatures_of(table, bits))
    n_conjunctions = np.array([table.n_conjunctions])
    return PstHashFiling(place_start, pair_entries, key_bits, pair_bits, levels, shifts, n_conjunctions, *singles)


def pst_hash_scratch_size(filing: PstHashFiling) -> int:
    return _room(int(filing.n_conjunctions[0])) + NAME_WORDS + WINDOW


def _room(n_conjunctions: int) -> int:
    """Words for the keys of an event; where it has more, the pairs of them would cost more than a scan."""
    return max(FEW_WORDS, 4 * isqrt(n_conjunctions))


def describe_pst_hash(filing: PstHashFiling) -> dict[str, Any]:
    """How many conjunctions have no pair of access predicates, and what to do if most have none."""
    n_single = len(np.unique(filing.entries)) + len(filing.always)
    advice = {"better": "pst-bloom"} if 2 * n_single > filing.n_conjunctions[0] else {}
    return {"filed_singly": n_single, **advice}


@builder
def _choose_sides(table, profile):
    """The two access predicates of each conjunction, or NO_PAIR."""
    chosen = np.empty((len(table.start) - 1, 2), SIDE)
    sides = np.empty(CONSIDERED, SIDE)
    for conjunction in range(len(chosen)):
        n_sides = _write_sides(table, profile, conjunction, sides)
        chosen[conjunction, 0].attribute = NO_PAIR
        least = 2.0
        for i in range(n_sides):
            for j in range(i):
                together = sides[i].likelihood * sides[j].likelihood
                if together < least:
                    least = together
                    chosen[conjunction, 0], chosen[conjunction, 1] = sides[j], sides[i]
    return chosen


@kernel
def _write_sides(table, profile, conjunction, sides):
    """Write the access predicates that may be chosen, of different attributes; return how many there are."""
    first, end = table.start[conjunction], table.start[conjunction + 1]
    n_sides = 0
    for position in range(first, min(end, first + CONSIDERED)):
        predicate = table.predicates[position]
        attribute = predicate.attribute & ATTRIBUTE_MASK
        if predicate.high == ABSENT:
            break
        is_new = True
        for i in range(n_sides):
            is_new &= sides[i].attribute != attribute
        if is_new:
            low, high = common_codes(table.predicates, first, end, position)
            n_sides += _write_side(profile, attribute, low, high, sides[n_sides])
    return n_sides


@kernel
def _write_side(profile, attribute, low, high, side):
    """Write a side, and return 1, if it tells enough."""
    level = 0
    while high - low >= PARTS:
        low, high, level = low >> STEP, high >> STEP, level + 1
    n_cells = ((high - low) + 1) << (STEP * level)
    side.attribute, side.low, side.high, side.level = attribute, low, high, level
    share = n_cells / profile.n_codes[attribute]
    side.likelihood = profile.weights[attribute] * share
    return 1 if share <= WORTH else 0


@builder
def _count_entries(sides):
    n_entries = 0
    for i in range(len(sides)):
        if sides[i, 0].attribute != NO_PAIR:
            n_entries += _n_parts(sides[i, 0]) * _n_parts(sides[i, 1])
    return n_entries


@kernel
def _n_parts(side):
    return np.int64(side.high) - side.low + 1


def _count_pairs(sides: np.ndarray) -> int:
    """How many pairs of attributes are used together."""
    attributes = np.sort(sides["attribute"][sides["attribute"][:, 0] != NO_PAIR], axis=1).astype(np.int64)
    return len(np.unique(attributes[:, 0] << 32 | attributes[:, 1]))


@kernel
def _attribute_hash(attribute):
    return mix(SEED, attribute)


@kernel
def _part_hash(attribute, level, part):
    return mix(mix(SEED, np.uint64(attribute) << LEVEL_BITS | np.uint64(level)), part)


@builder
def _marks(table, sides):
    """The mark of each conjunction without a tag: its two least likely attributes that are not hashed."""
    marks = np.zeros(len(sides), np.uint32)
    for i in range(len(sides)):
        shift = FIRST_NAME
        for position in range(table.start[i], table.start[i + 1]):
            attribute = table.predicates[position].attribute & ATTRIBUTE_MASK
            is_hashed = attribute == sides[i, 0].attribute or attribute == sides[i, 1].attribute
            if table.predicates[position].high != ABSENT and not is_hashed and shift <= SECOND_NAME:
                marks[i] |= np.uint32(_name(attribute) << shift)
                shift += NAME_BITS
    return marks


@kernel
def _name(attribute):
    """An attribute as a number of few bits; 0 stands for none."""
    return np.uint64(attribute + 1) & NAME_MASK


@builder
def _file_pairs(sides, marks, shift):
    """A counting sort of the entries by the place of their keys."""
    start = np.zeros((np.int64(1) << np.int64(np.uint64(64) - shift)) + 2, np.int32)
    hashes = np.empty(PARTS * PARTS, np.uint64)
    for i in range(len(sides)):
        for j in range(_write_hashes(sides[i, 0], sides[i, 1], hashes)):
            start[np.int64(hashes[j] >> shift) + 2] += 1
    for i in range(len(start) - 1):
        start[i + 1] += start[i]
    entries = np.empty(start[-1], ENTRY)
    for i in range(len(sides)):
        for j in range(_write_hashes(sides[i, 0], sides[i, 1], hashes)):
            place = np.int64(hashes[j] >> shift) + 1
            entry = entries[start[place]]
            entry.conjunction, entry.mark = i, marks[i] | np.uint32(hashes[j] & TAG_MASK)
            start[place] += 1
    return start[:-1].copy(), entries


@kernel
def _write_hashes(left, right, hashes):
    """Write the hashes of a conjunction's keys; return how many. Their halves are added: their order does not count."""
    n_hashes = 0
    if left.attribute == NO_PAIR:
        return n_hashes
    for left_part in range(left.low, left.high + 1):
        half = _part_hash(left.attribute, left.level, left_part)
        for right_part in range(right.low, right.high + 1):
            hashes[n_hashes] = half + _part_hash(right.attribute, right.level, right_part)
            n_hashes += 1
    return n_hashes


@builder
def _mark_keys(sides, shifts, n_attributes):
    key_bits = np.zeros(1 << np.int64(np.uint64(64) - shifts[KEY_SHIFT] - SIX), np.uint64)
    pair_bits = np.zeros(1 << np.int64(np.uint64(64) - shifts[PAIR_SHIFT] - SIX), np.uint64)
    levels = np.zeros(n_attributes, np.uint64)
    hashes = np.empty(PARTS * PARTS, np.uint64)
    for i in range(len(sides)):
        left, right = sides[i, 0], sides[i, 1]
        for j in range(_write_hashes(left, right, hashes)):
            _set_bit(key_bits, hashes[j] >> shifts[KEY_SHIFT])
        if left.attribute != NO_PAIR:
            together = _attribute_hash(left.attribute) + _attribute_hash(right.attribute)
            _set_bit(pair_bits, together >> shifts[PAIR_SHIFT])
            levels[left.attribute] |= ONE << np.uint64(left.level)
            levels[right.attribute] |= ONE << np.uint64(right.level)
    return key_bits, pair_bits, levels


@kernel
def _set_bit(words, number):
    words[number >> SIX] |= ONE << (number & LOW_BITS)


@kernel
def _has_bit(words, number):
    return words[number >> SIX] >> (number & LOW_BITS) & ONE != 0


@kernel
def find_by_pst_hash(filing, filed, work, flat):
    """Name the entries under the pairs of the event's keys, and what was filed singly."""
    words, n_words = work.scratch, _write_keys(filing, work.event, work.scratch, _room_in(work))
    if n_words > _room_in(work):
        for conjunction in range(filing.n_conjunctions[0]):
            check(filed, work, flat, conjunction)
        return
    _write_names(work.event, words[_room_in(work) :])
    n_keys = n_waiting = left = 0
    while left < n_words:
        right = _after(words, left)
        while right < n_words:
            if _has_bit(filing.pair_bits, (words[left + 1] + words[right + 1]) >> filing.shifts[PAIR_SHIFT]):
                n_keys, n_waiting = _look_up(filing, filed, work, flat, left, right, n_keys, n_waiting)
            right = _after(words, right)
        left = _after(words, left)
    n_waiting = _propose_keys(filing, filed, work, flat, n_keys, n_waiting)
    decide(filed, work, flat, n_waiting, 0)
    find_by_pst_bloom(filing, filed, work, flat)


@kernel
def _after(words, start):
    """Where the words of the next attribute start."""
    return start + np.int64(words[start])


@kernel
def _look_up(filing, filed, work, flat, left, right, n_keys, n_waiting):
    """Note the keys of two attributes that may have entries, and propose those entries whenever a window is full."""
    words, keys = work.scratch, work.scratch[len(work.scratch) - WINDOW :]
    for i in range(left + 2, _after(words, left)):
        for j in range(right + 2, _after(words, right)):
            key = words[i] + words[j]
            keys[n_keys] = key
            n_keys += np.int64(_has_bit(filing.key_bits, key >> filing.shifts[KEY_SHIFT]))
            if n_keys == WINDOW:
                n_waiting = _propose_keys(filing, filed, work, flat, n_keys, n_waiting)
                n_keys = 0
    return n_keys, n_waiting


@kernel
def _room_in(work):
    return len(work.scratch) - NAME_WORDS - WINDOW


@kernel
def _write_names(event, names):
    """Set the bits of the attributes that the event has."""
    names[:NAME_WORDS] = 0
    names[0] = 1
    for i in range(event.state[N_PRESENT]):
        _set_bit(names, _name(event.present[i]))


@kernel
def _write_keys(filing, event, words, room):
    """Write for each attribute how many words it takes, its hash, and its parts' hashes; return how many words."""
    n_words = 0
    for i in range(event.state[N_PRESENT]):
        attribute = event.present[i]
        levels, first = filing.levels[attribute], n_words
        n_words += 2 if levels else 0
        while levels:
            level = np.int64(lowest_bit(levels))
            low, high = event.values[attribute].low >> (STEP * level), event.values[attribute].high >> (STEP * level)
            if n_words + (high - low + 1) > room:
                return room + 1
            for part in range(low, high + 1):
                words[n_words] = _part_hash(attribute, level, part)
                n_words += 1
            levels &= levels - ONE
        if n_words > first:
            words[first], words[first + 1] = n_words - first, _attribute_hash(attribute)
    return n_words


@kernel
def _propose_keys(filing, filed, work, flat, n_keys, n_waiting):
    """Propose the entries under some keys, as far as their marks allow it."""
    keys, names = work.scratch[len(work.scratch) - WINDOW :], work.scratch[_room_in(work) :]
    shift = filing.shifts[PLACE_SHIFT]
    for i in range(n_keys):
        prefetch(filing.place_start, np.int64(keys[i] >> shift))
    for i in range(n_keys):
        place = keys[i] >> shift
        prefetch(filing.pair_entries, np.int64(filing.place_start[place]))
        prefetch(filing.pair_entries, np.int64(filing.place_start[place + ONE]) - 1)
    for i in range(n_keys):
        place = keys[i] >> shift
        first, end = np.uint32(filing.place_start[place]), np.uint32(filing.place_start[place + ONE])
        work.counts[N_LOOKED_AT] += end - first
        for j in range(first, end):
            entry = filing.pair_entries[j]
            work.waiting[n_waiting] = entry.conjunction
            n_waiting += _may_hold(names, np.uint64(entry.mark), keys[i])
            if n_waiting == len(work.waiting):
                decide(filed, work, flat, n_waiting, 0)
                n_waiting = 0
    return n_waiting


@kernel
def _may_hold(names, mark, key):
    """1 if an entry is filed under a key and names no attribute that the event lacks, else 0.

    Without a branch to be guessed: an event of a million dense conjunctions takes 113 us, and took 139 with one.
    """
    named = _has_bit(names, mark >> FIRST_NAME & NAME_MASK) & _has_bit(names, mark >> SECOND_NAME)
    return np.int64(named & ((mark ^ key) & TAG_MASK == 0))
