"""Predicate spaces: the constants of an attribute cut its values into cells, and a cell's number is its code.

    price > 100,  price BETWEEN 50 AND 100,  price = 75,  price = 'none'

    values     absent  other  false  true    … 50 … 75 … 100 …     … 'none' …
    codes        0       1      2     3      4  5 6  7 8  9  10    11  12   13

    price > 100   is [10, 10]        75 is 7, 80 is 8, 'abc' is 11: a predicate holds if the code is in its range
    BETWEEN       is  [5, 9]         an interval of values is one of codes, and a predicate holds if the two meet

No predicate is true in only part of a cell, so a value is looked up once an event, and everything after that compares
small integers: numbers, strings and booleans alike. These are the disjoint predicate spaces of PS-Tree (S. Ji and
H.-A. Jacobsen, 2018), with sorted ends and `directories` to them in place of its tree of digits. A cut that no
predicate needs any more is gone in the next segment that is built: its two cells have become one.
"""

import heapq
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from boolmatch.directories import NO_TEXT_PLACE, bucket_bounds, find_text, number_directories, text_slots
from boolmatch.ranges import ValueType
from boolmatch.rows import EVERY, HAS_HIGH, HAS_LOW, HIGH_CLOSED, LOW_CLOSED, NO_TEXT, ROW
from sievecore.breathing import breathe, breathing
from sievecore.hashing import SEED, mix, new_slots
from sievecore.jit import builder, kernel
from sievecore.ranking import ranked
from sievecore.rows import offsets
from sievecore.tables import columns

__all__ = [
    "ABSENT",
    "ATTRIBUTE_MASK",
    "CODED",
    "DETAIL_BIT",
    "EVERY_BIT",
    "FALSE_CODE",
    "OTHER_CODE",
    "TRUE_CODE",
    "Spaces",
    "build_spaces",
    "code_counts",
    "decode_rows",
    "find_attribute",
    "number_code",
    "renumbered",
    "text_code",
]

ABSENT, OTHER_CODE, FALSE_CODE, TRUE_CODE, FIRST_NUMBER = range(5)
EVERY_BIT, DETAIL_BIT = 1 << 30, 1 << 29
ATTRIBUTE_MASK = DETAIL_BIT - 1

NULL, ANY, BOOLEAN, NUMBER, STRING = (int(kind) for kind in ValueType)
NO_END = -1
CHUNK_TEXTS = 2000

CODED = columns("attribute", "low", "high")
"""A predicate of a segment: the segment's number of its attribute, with flags, and the codes that satisfy it."""


class Spaces(NamedTuple):
    """The cells of each attribute of a segment."""

    attributes: np.ndarray  # the number of each attribute outside of this segment, ascending
    attribute_slots: np.ndarray  # a hash table from those numbers
    number_start: np.ndarray  # of an attribute: its numbers, ascending
    numbers: np.ndarray
    number_directories: np.ndarray
    number_buckets: np.ndarray
    text_start: np.ndarray  # of an attribute: its strings, ascending
    text_bounds: np.ndarray  # where each string starts, and the last one ends
    text: np.ndarray
    text_slots: np.ndarray


def build_spaces(rows: np.ndarray, texts: Sequence[str]) -> tuple[Spaces, np.ndarray]:
    """The spaces that rows cut, and the rows in codes."""
    attributes, place = ranked(rows["attribute"], int(rows["attribute"].max(initial=-1)) + 1)
    local = place[rows["attribute"]]
    in_order, rank = _rank_texts(texts)
    breathe()
    number_start, numbers, number_places = _distinct_ends(rows, local, rank, NUMBER, len(attributes))
    breathe()
    text_start, text_ranks, text_places = _distinct_ends(rows, local, rank, STRING, len(attributes))
    encoded = [in_order[i].encode() for i in breathing(text_ranks.astype(np.int64).tolist())]
    directories, buckets = number_directories(number_start, numbers)
    text_bounds = offsets(map(len, encoded))
    text = np.frombuffer(b"".join(encoded) or b"\0", np.uint8).copy()
    spaces = Spaces(
        attributes=attributes,
        attribute_slots=new_slots(len(attributes)),
        number_start=number_start,
        numbers=numbers,
        number_directories=directories,
        number_buckets=buckets,
        text_start=text_start,
        text_bounds=text_bounds,
        text=text,
        text_slots=text_slots(text_start, text_bounds, text),
    )
    _enter_attributes(spaces)
    coded = np.empty(len(rows), CODED)
    _encode(spaces, rows, local, number_places, text_places, coded)
    return spaces, coded


def renumbered(spaces: Spaces, attributes: np.ndarray) -> Spaces:
    """The same spaces with other numbers for their attributes, ascending like the old ones."""
    spaces = spaces._replace(attributes=attributes, attribute_slots=new_slots(len(attributes)))
    _enter_attributes(spaces)
    return spaces


def _rank_texts(texts: Sequence[str]) -> tuple[list[str], np.ndarray]:
    """The distinct texts in order of code points, and the place of each text among them."""
    distinct = list(set(texts))
    chunks = (distinct[start : start + CHUNK_TEXTS] for start in range(0, len(distinct), CHUNK_TEXTS))
    in_order = list(breathing(heapq.merge(*[sorted(chunk) for chunk in breathing(chunks)])))
    rank = {text: place for place, text in enumerate(breathing(in_order))}
    return in_order, np.array([rank[text] for text in breathing(texts)], np.int32)


def _distinct_ends(
    rows: np.ndarray, local: np.ndarray, rank: np.ndarray, kind: int, n_attributes: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The ends of one type that each attribute has, ascending: slices, values, and the place of each row's two ends."""
    if not (rows["type"] == kind).any():
        return np.zeros(n_attributes + 1, np.int64), np.zeros(0), np.zeros((0, 2), np.int32)
    owners, values, number = _number_ends(rows, local, rank, kind)
    by_owner, start = _sorted_by_owner(owners, values, n_attributes)
    place = np.empty(len(owners), np.int32)
    place[by_owner] = np.arange(len(owners), dtype=np.int32)
    _renumber(number, place)
    return start, values[by_owner], number


@kernel
def _renumber(numbers, place):
    for i in range(len(numbers)):
        for side in range(2):
            if numbers[i, side] >= 0:
                numbers[i, side] = place[numbers[i, side]]


@builder
def _number_ends(rows, local, rank, kind):
    """The distinct ends of one type, as owners and values, and for the two ends of each row which they are."""
    number = np.full((len(rows), 2), NO_END, np.int32)
    owners, values = np.empty(16, np.int32), np.empty(16, np.float64)
    slots = np.full(64, NO_END, np.int32)
    n_distinct = 0
    for i in range(len(rows)):
        row = rows[i]
        if row.type != kind:
            continue
        for side in range(2):
            if not row.ends & (HAS_LOW if side == 0 else HAS_HIGH):
                continue
            value = row.low if side == 0 else row.high
            if kind == STRING:
                value = np.float64(rank[row.low_text if side == 0 else row.high_text])
            place = _end_place(slots, owners, values, local[i], value)
            if slots[place] < 0:
                if n_distinct == len(owners):
                    owners, values = _twice(owners), _twice(values)
                    slots = _rehashed(owners, values, n_distinct)
                    place = _end_place(slots, owners, values, local[i], value)
                slots[place] = n_distinct
                owners[n_distinct], values[n_distinct] = local[i], value
                n_distinct += 1
            number[i, side] = slots[place]
    return owners[:n_distinct].copy(), values[:n_distinct].copy(), number


@builder
def _twice(array):
    larger = np.empty(2 * len(array), array.dtype)
    larger[: len(array)] = array
    return larger


@builder
def _rehashed(owners, values, n_distinct):
    slots = np.full(4 * len(owners), NO_END, np.int32)
    for i in range(n_distinct):
        slots[_end_place(slots, owners, values, owners[i], values[i])] = i
    return slots


@builder
def _end_place(slots, owners, values, owner, value):
    """The slot of an end, or the empty one where it belongs."""
    mask = np.uint64(len(slots) - 1)
    place = mix(mix(SEED, owner), np.float64(value).view(np.int64)) & mask
    while slots[place] >= 0 and (owners[slots[place]] != owner or values[slots[place]] != value):
        place = (place + np.uint64(1)) & mask
    return place


@builder
def _sorted_by_owner(owners, values, n_owners):
    """An order by owner and then value, and where each owner's part of it starts."""
    start = np.zeros(n_owners + 1, np.int64)
    for owner in owners:
        start[owner + 1] += 1
    for i in range(n_owners):
        start[i + 1] += start[i]
    order = np.empty(len(owners), np.int64)
    free = start[:-1].copy()
    for i in range(len(owners)):
        order[free[owners[i]]] = i
        free[owners[i]] += 1
    for i in range(n_owners):
        part = order[start[i] : start[i + 1]].copy()
        order[start[i] : start[i + 1]] = part[np.argsort(values[part])]
    return order, start


@kernel
def _enter_attributes(spaces):
    mask = np.uint64(len(spaces.attribute_slots) - 1)
    for i in range(len(spaces.attributes)):
        place = mix(SEED, spaces.attributes[i]) & mask
        while spaces.attribute_slots[place] >= 0:
            place = (place + np.uint64(1)) & mask
        spaces.attribute_slots[place] = i


@kernel
def find_attribute(spaces, number):
    """The place here of an attribute with this number outside, or -1."""
    mask = np.uint64(len(spaces.attribute_slots) - 1)
    place = mix(SEED, number) & mask
    while spaces.attribute_slots[place] >= 0 and spaces.attributes[spaces.attribute_slots[place]] != number:
        place = (place + np.uint64(1)) & mask
    return spaces.attribute_slots[place]


@kernel
def _first_text_code(spaces, attribute):
    return FIRST_NUMBER + 2 * (spaces.number_start[attribute + 1] - spaces.number_start[attribute]) + 1


@kernel
def code_counts(spaces, attribute):
    """How many codes an attribute has."""
    n_texts = spaces.text_start[attribute + 1] - spaces.text_start[attribute]
    return _first_text_code(spaces, attribute) + 2 * n_texts + 1


@kernel
def number_code(spaces, attribute, number):
    """The code of a number that is no NaN."""
    first, end = spaces.number_start[attribute], spaces.number_start[attribute + 1]
    low, high = bucket_bounds(spaces.number_directories, spaces.number_buckets, spaces.number_start, attribute, number)
    while low < high:
        middle = (low + high) >> 1
        if spaces.numbers[middle] < number:
            low = middle + 1
        else:
            high = middle
    is_end = low < end and spaces.numbers[low] == number
    return FIRST_NUMBER + 2 * (low - first) + (1 if is_end else 0)


@kernel
def text_code(spaces, attribute, content, start, end):
    """The code of the string content[start:end]."""
    first, last = spaces.text_start[attribute], spaces.text_start[attribute + 1]
    known = find_text(spaces, attribute, content, start, end)
    if known != NO_TEXT_PLACE:
        return _first_text_code(spaces, attribute) + 2 * (known - first) + 1
    low, high = first, last
    while low < high:
        middle = (low + high) >> 1
        if _compare_text(spaces, middle, content, start, end) < 0:
            low = middle + 1
        else:
            high = middle
    is_end = low < last and _compare_text(spaces, low, content, start, end) == 0
    return _first_text_code(spaces, attribute) + 2 * (low - first) + (1 if is_end else 0)


@kernel
def _compare_text(spaces, text, content, start, end):
    """Below, at or above 0 as a string of the spaces is before, equal to or after content[start:end]."""
    i, last = spaces.text_bounds[text], spaces.text_bounds[text + 1]
    while i < last and start < end:
        difference = np.int64(spaces.text[i]) - np.int64(content[start])
        if difference != 0:
            return difference
        i, start = i + 1, start + 1
    return np.int64(last - i) - np.int64(end - start)


@kernel
def _encode(spaces, rows, local, number_places, text_places, coded):
    for i in range(len(rows)):
        row, attribute = rows[i], local[i]
        low = high = np.int64(ABSENT)
        if row.type == ANY:
            low, high = np.int64(OTHER_CODE), code_counts(spaces, attribute) - 1
        elif row.type == BOOLEAN:
            low, high = FALSE_CODE + np.int64(row.low), FALSE_CODE + np.int64(row.high)
        elif row.type == NUMBER:
            first, end = spaces.number_start[attribute], spaces.number_start[attribute + 1]
            low, high = _coded_ends(row.ends, number_places[i], first, end, FIRST_NUMBER)
        elif row.type == STRING:
            first, end = spaces.text_start[attribute], spaces.text_start[attribute + 1]
            low, high = _coded_ends(row.ends, text_places[i], first, end, _first_text_code(spaces, attribute))
        flags = (EVERY_BIT if row.ends & EVERY else 0) | (DETAIL_BIT if row.detail >= 0 else 0)
        coded[i].attribute, coded[i].low, coded[i].high = attribute | flags, low, high


@kernel
def _coded_ends(ends, places, first, end, base):
    """The codes between two ends, which stand at `places` among those of the attribute, first to end."""
    low, high = base, base + 2 * (end - first)
    if ends & HAS_LOW:
        low = base + 2 * (places[0] - first) + (1 if ends & LOW_CLOSED else 2)
    if ends & HAS_HIGH:
        high = base + 2 * (places[1] - first) + (1 if ends & HIGH_CLOSED else 0)
    return low, high


def decode_rows(spaces: Spaces, coded: np.ndarray) -> np.ndarray:
    """The rows that codes stand for; their texts are the strings of the spaces, and details are left out."""
    rows = np.zeros(len(coded), ROW)
    rows["low_text"] = rows["high_text"] = NO_TEXT
    rows["detail"] = NO_END
    _decode(spaces, coded, rows)
    return rows


@kernel
def _decode(spaces, coded, rows):
    for i in range(len(coded)):
        row, low, high = rows[i], coded[i].low, coded[i].high
        attribute = coded[i].attribute & ATTRIBUTE_MASK
        row.attribute = spaces.attributes[attribute]
        row.ends = EVERY if coded[i].attribute & EVERY_BIT else 0
        first_text = _first_text_code(spaces, attribute)
        if high == ABSENT:
            row.type = NULL
        elif low == OTHER_CODE:
            row.type = ANY
        elif high <= TRUE_CODE:
            row.type, row.low, row.high = BOOLEAN, low - FALSE_CODE, high - FALSE_CODE
            row.ends |= HAS_LOW | HAS_HIGH | LOW_CLOSED | HIGH_CLOSED
        elif high < first_text:
            row.type = NUMBER
            _decode_numbers(spaces, row, spaces.number_start[attribute], low - FIRST_NUMBER, high - FIRST_NUMBER)
            if high == first_text - 1:
                row.ends &= ~(HAS_HIGH | HIGH_CLOSED)
        else:
            row.type = STRING
            _decode_texts(row, spaces.text_start[attribute], low - first_text, high - first_text)
            if high == code_counts(spaces, attribute) - 1:
                row.ends &= ~(HAS_HIGH | HIGH_CLOSED)
                row.high_text = NO_TEXT


@kernel
def _decode_numbers(spaces, row, first, low, high):
    """Ends from codes that count from the attribute's first cell of numbers."""
    row.ends |= _decoded_ends(low, high)
    if low > 0:
        row.low = spaces.numbers[first + (low - 1) // 2]
    if first + high // 2 < len(spaces.numbers):
        row.high = spaces.numbers[first + high // 2]


@kernel
def _decode_texts(row, first, low, high):
    row.ends |= _decoded_ends(low, high)
    row.low_text = first + (low - 1) // 2 if low > 0 else NO_TEXT
    row.high_text = first + high // 2


@kernel
def _decoded_ends(low, high):
    ends = HAS_HIGH | (HIGH_CLOSED if high & 1 else 0)
    if low > 0:
        ends |= HAS_LOW | (LOW_CLOSED if low & 1 else 0)
    return ends
