"""Directories: where a value stands among the sorted ends of its attribute, without a search through all of them.

    numbers     3  4  9  20  21  22  40  97          bucket of x: (x - 3) * factor, rounded down
    buckets     0: 3 4 9     1: 20 21 22     2: 40     3: 97        21 is in bucket 1, and looked for there

    strings     a hash table tells the place of one that is an end; others are searched for

Rounding keeps order: what is in a lower bucket is less, so the search in one bucket is exact whatever the numbers are.
Where they are too uneven (1e-300, 1, 1e300), buckets go by the bits of a number, about its logarithm. The search within
a bucket halves, so that the worst numbers take no longer than before. This is PS-Tree's promise, a look-up whose time
does not grow with the number of spaces, in two bytes an end; its digits would take a node each.

Attributes with few ends have no directory. Look-ups of random values, one after the other, against binary search:

    ns a look-up, before and after             10 ends       1,000     100,000    1,000,000
    numbers, evenly spread                    11    11     45    14     87    16    130    19
    all of 0, 1, 2, …                         12    12     46     4     88     5    130     7
    numbers, exponents spread                 13    13     45    21     87    27    130    38
    strings that are ends                     36    36     86    26    210    52    352    82
    strings that are not                      25    25     73    91    148   172    230   280
"""

import numpy as np

from sievecore.hashing import SEED, hash_bytes, mix, new_slots, same_bytes
from sievecore.jit import kernel
from sievecore.rows import offsets
from sievecore.tables import columns

__all__ = ["NO_TEXT_PLACE", "bucket_bounds", "find_text", "number_directories", "text_slots"]

FEW = 16
BUCKET_ENDS = 2
NO_TEXT_PLACE = -1
ALL_BUT_SIGN = (1 << 63) - 1

DIRECTORY = columns("start", "n_buckets", "by_bits", low=np.float64, factor=np.float64)
"""Of an attribute: bucket i has the ends from buckets[start + i] to buckets[start + i + 1]."""


def number_directories(number_start: np.ndarray, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A directory for each attribute, and their buckets."""
    n_ends = np.diff(number_start)
    n_buckets = np.where(n_ends > FEW, n_ends // BUCKET_ENDS, 0)
    start = offsets(n_buckets + 1)
    directories = np.zeros(len(n_ends), DIRECTORY)
    directories["start"], directories["n_buckets"] = start[:-1], n_buckets
    buckets = np.empty(start[-1], np.int32)
    _fill_all(number_start, numbers, directories, buckets)
    return directories, buckets


@kernel
def _fill_all(number_start, numbers, directories, buckets):
    """Fill the buckets of all attributes, by the numbers or by their bits, as it is cheaper."""
    for attribute in range(len(directories)):
        first, end = number_start[attribute], number_start[attribute + 1]
        if directories[attribute].n_buckets > 0:
            by_bits = _fill(numbers, first, end, directories[attribute], 1, buckets)
            if by_bits < _fill(numbers, first, end, directories[attribute], 0, buckets):
                _fill(numbers, first, end, directories[attribute], 1, buckets)


@kernel
def _fill(numbers, first, end, directory, by_bits, buckets):
    """Fill the buckets of an attribute; return what they cost: the sum of their squared sizes."""
    directory.by_bits, directory.low, directory.factor = by_bits, 0.0, 0.0
    low, high = first, end - 1
    while low < high and np.isinf(numbers[low]):
        low += 1
    while low < high and np.isinf(numbers[high]):
        high -= 1
    directory.low = _scale(directory, numbers[low])
    directory.factor = directory.n_buckets / (_scale(directory, numbers[high]) - directory.low)
    place, cost = first, 0.0
    for bucket in range(directory.n_buckets):
        buckets[directory.start + bucket], before = place, place
        while place < end and _bucket(directory, numbers[place]) == bucket:
            place += 1
        cost += np.float64(place - before) ** 2
    buckets[directory.start + directory.n_buckets] = end
    return cost


@kernel
def _bucket(directory, number):
    """Which bucket a number belongs to. Where the factor is 0 or infinite, the product may be no number: the first."""
    position = (_scale(directory, number) - directory.low) * directory.factor
    if not position > 0.0:
        return 0
    return np.int64(min(position, np.float64(directory.n_buckets - 1)))


@kernel
def _scale(directory, number):
    """The number, or its bits in the order of numbers: about its logarithm."""
    if directory.by_bits == 0:
        return number
    bits = np.float64(number).view(np.int64)
    return np.float64(bits if bits >= 0 else -(bits & ALL_BUT_SIGN))


@kernel
def bucket_bounds(directories, buckets, number_start, attribute, number):
    """Between which places of an attribute's ends a number stands: it is above those before, and below those after."""
    directory = directories[attribute]
    if directory.n_buckets == 0:
        return number_start[attribute], number_start[attribute + 1]
    place = directory.start + _bucket(directory, number)
    return np.int64(buckets[place]), np.int64(buckets[place + 1])


def text_slots(text_start: np.ndarray, text_bounds: np.ndarray, text: np.ndarray) -> np.ndarray:
    """A hash table of the strings of all attributes that have more than a few."""
    n_texts = np.diff(text_start)
    slots = new_slots(int(n_texts[n_texts > FEW].sum()))
    _enter_texts(text_start, text_bounds, text, slots)
    return slots


@kernel
def _enter_texts(text_start, text_bounds, text, slots):
    mask = np.uint64(len(slots) - 1)
    for attribute in range(len(text_start) - 1):
        if text_start[attribute + 1] - text_start[attribute] > FEW:
            for i in range(text_start[attribute], text_start[attribute + 1]):
                place = hash_bytes(text, text_bounds[i], text_bounds[i + 1], mix(SEED, attribute)) & mask
                while slots[place] >= 0:
                    place = (place + np.uint64(1)) & mask
                slots[place] = i


@kernel
def find_text(spaces, attribute, content, start, end):
    """The place of a string among all, or NO_TEXT_PLACE if it is no end or the attribute has few of them."""
    first, last = spaces.text_start[attribute], spaces.text_start[attribute + 1]
    if last - first <= FEW:
        return NO_TEXT_PLACE
    mask = np.uint64(len(spaces.text_slots) - 1)
    place = hash_bytes(content, start, end, mix(SEED, attribute)) & mask
    while spaces.text_slots[place] >= 0:
        text = np.int64(spaces.text_slots[place])
        bounds = spaces.text_bounds
        if first <= text < last and same_bytes(spaces.text, bounds[text], bounds[text + 1], content, start, end):
            return text
        place = (place + np.uint64(1)) & mask
    return NO_TEXT_PLACE
