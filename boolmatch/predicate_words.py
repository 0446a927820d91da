"""Each distinct predicate decided once for up to 64 events: a word a predicate, a bit an event.

    events    0 {price: 3}   1 {price: 7, qty: 1}   2 {price: 7}              codes of the values

    at or below code     0 1 2 3 4 5 6 7 8            predicate       word: bits 0 1 2
    price                . . . 0 0 0 0 012 012        price [5, 8]    (at or below 8) without (at or below 4): 1 2
    qty                  . 1 …                        qty [1, 1]      1

This is the bitmap of A-PCM (M. Sadoghi and H.-A. Jacobsen, 2014), turned by 90 degrees: the paper keeps for each event
a bit a predicate, precomputed for every attribute and value, and compresses events by OR. A word that is not zero is
that OR; its bits are the events it is made of. So a conjunction is decided for all events of a cluster by the AND of
its words, there are no false candidates to be decided again, and clusters of 64 cost as much as clusters of 8. Instead
of a precomputed row for every value, of which a million one-sided ranges would need a million times a million bits,
words come from the running OR over an attribute's codes: two loads a predicate, whatever its width.

That pays where conjunctions share predicates: 600 uses of each in the A-PCM workload, but 20 in ads and 1.9 in sparse,
where most would be decided in vain. Predicates of attributes with fewer than `FEWEST_USES` are decided by the same two
loads when a conjunction asks, which took sparse from 24 to 18 us an event; so is IS NULL. Attributes with very many
codes have no running OR, but a sorted list of the events' values. For predicates with flags a word says which events
may satisfy them.
"""

from typing import NamedTuple

import numpy as np

from boolmatch.conjunctions import Conjunctions
from boolmatch.selectivity import Profile
from boolmatch.spaces import ABSENT, ATTRIBUTE_MASK
from sievecore.hashing import SEED, mix, new_slots
from sievecore.jit import builder, kernel
from sievecore.rows import offsets
from sievecore.tables import columns

__all__ = [
    "N_PRESENT",
    "Numbering",
    "Words",
    "load_words",
    "number_predicates",
    "predicate_word",
    "range_word",
    "unload_words",
    "words_in",
    "words_size",
]

ASK = -1
MOST_CODES = 1 << 14
FEWEST_USES = 64
END = 0
N_PRESENT, N_VALUES = range(2)

BOUNDS = columns("low", "high")
VALUE = columns("code", "next", word=np.uint64)
"""A value of an attribute, the next larger one, and the events that have it."""


class Numbering(NamedTuple):
    """The distinct predicates that are decided ahead."""

    numbers: np.ndarray  # of each predicate of the table, or ASK
    ahead_start: np.ndarray  # of an attribute: its predicates
    ahead: np.ndarray
    cell_start: np.ndarray  # of an attribute: its codes; none if there are too many


def number_predicates(table: Conjunctions, profile: Profile) -> Numbering:
    """Number the distinct predicates by attribute and code."""
    first, numbers = _distinct(table.predicates, new_slots(len(table.predicates)))
    distinct = table.predicates[first]
    attributes, n_attributes = distinct["attribute"] & ATTRIBUTE_MASK, len(profile.n_codes)
    n_uses = np.bincount(table.predicates["attribute"] & ATTRIBUTE_MASK, minlength=n_attributes)
    shared = n_uses >= FEWEST_USES * np.bincount(attributes, minlength=n_attributes)
    has_cells = profile.n_codes <= MOST_CODES
    ahead = np.flatnonzero((shared & has_cells)[attributes] & (distinct["high"] != ABSENT))
    first_cell = offsets(profile.n_codes)
    ahead = ahead[np.argsort(first_cell[attributes[ahead]] + distinct["low"][ahead])]
    place = np.full(len(distinct) + 1, ASK, np.int32)
    place[ahead] = np.arange(len(ahead))
    bounds = np.empty(len(ahead), BOUNDS)
    bounds["low"], bounds["high"] = distinct["low"][ahead], distinct["high"][ahead]
    ahead_start = offsets(np.bincount(attributes[ahead], minlength=n_attributes))
    return Numbering(place[numbers], ahead_start, bounds, offsets(np.where(has_cells, profile.n_codes, 0)))


@builder
def _distinct(predicates, slots):
    """Where each distinct predicate stands first, and for each predicate which of those it is."""
    numbers = np.empty(len(predicates), np.int32)
    first = np.empty(len(predicates), np.int32)
    n_distinct = 0
    for i in range(len(predicates)):
        place = _predicate_place(slots, predicates, first, i)
        if slots[place] < 0:
            slots[place] = n_distinct
            first[n_distinct] = i
            n_distinct += 1
        numbers[i] = slots[place]
    return first[:n_distinct].copy(), numbers


@kernel
def _predicate_place(slots, predicates, first, i):
    one, mask = predicates[i], np.uint64(len(slots) - 1)
    attribute = one.attribute & ATTRIBUTE_MASK
    place = mix(mix(SEED, attribute), np.int64(one.low) << 32 | one.high) & mask
    while slots[place] >= 0:
        other = predicates[first[slots[place]]]
        if other.attribute & ATTRIBUTE_MASK == attribute and other.low == one.low and other.high == one.high:
            break
        place = (place + np.uint64(1)) & mask
    return place


class Words(NamedTuple):
    """Working memory of one thread. `having`, `at_or_below`, `words` and `lowest` are zero between clusters."""

    state: np.ndarray
    all_events: np.ndarray  # the bits of all events of the cluster
    present: np.ndarray  # attributes that some event has
    having: np.ndarray  # of an attribute: the events that have it
    at_or_below: np.ndarray  # of a cell: the events whose value is in it or in a lower one
    words: np.ndarray  # of a predicate that is decided ahead
    lowest: np.ndarray  # of an attribute without cells: its first value, or END
    values: np.ndarray  # the first one stands at 1


def words_size(filing: Numbering) -> int:
    """How many words of working memory it takes."""
    return 3 * (len(filing.cell_start) - 1) + int(filing.cell_start[-1]) + len(filing.ahead)


def words_in(scratch: np.ndarray, filing: Numbering, n_values: int) -> Words:
    """Working memory for clusters with up to so many values in all, most of it in `scratch`."""
    n_attributes, n_cells = len(filing.cell_start) - 1, int(filing.cell_start[-1])
    sizes = [n_attributes, n_attributes, n_attributes, n_cells, len(filing.ahead)]
    present, having, lowest, at_or_below, words, _ = np.split(scratch, np.cumsum(sizes))
    return Words(
        state=np.zeros(2, np.int64),
        all_events=np.zeros(1, np.uint64),
        present=present.view(np.int64),
        having=having,
        at_or_below=at_or_below,
        words=words,
        lowest=lowest.view(np.int64),
        values=np.zeros(n_values + 1, VALUE),
    )


@kernel
def load_words(filing, words, coded, order, first, end):
    """Decide the predicates for the plain events order[first:end]."""
    words.state[N_PRESENT], words.state[N_VALUES], words.all_events[0] = 0, 1, 0
    for place in range(first, end):
        bit = np.uint64(1) << np.uint64(place - first)
        words.all_events[0] |= bit
        start = coded.start[order[place]]
        for i in range(start, start + coded.n_pairs[order[place]]):
            _note_value(filing, words, coded.attributes[i], coded.codes[i], bit)
    for i in range(words.state[N_PRESENT]):
        attribute = words.present[i]
        cell, last = filing.cell_start[attribute], filing.cell_start[attribute + 1]
        for at in range(cell + 1, last):
            words.at_or_below[at] |= words.at_or_below[at - 1]
        for number in range(filing.ahead_start[attribute], filing.ahead_start[attribute + 1]):
            bounds = filing.ahead[number]
            words.words[number] = words.at_or_below[cell + bounds.high] & ~words.at_or_below[cell + bounds.low - 1]


@kernel
def _note_value(filing, words, attribute, code, bit):
    if words.having[attribute] == 0:
        words.present[words.state[N_PRESENT]] = attribute
        words.state[N_PRESENT] += 1
    words.having[attribute] |= bit
    if filing.cell_start[attribute] < filing.cell_start[attribute + 1]:
        words.at_or_below[filing.cell_start[attribute] + code] |= bit
    else:
        _insert_value(words, attribute, code, bit)


@kernel
def _insert_value(words, attribute, code, bit):
    """Keep the values of an attribute sorted; up to 64 of them, so a list will do."""
    before, at = END, words.lowest[attribute]
    while at != END and words.values[at].code < code:
        before, at = at, words.values[at].next
    new = words.state[N_VALUES]
    words.state[N_VALUES] += 1
    words.values[new].code, words.values[new].next, words.values[new].word = code, at, bit
    if before == END:
        words.lowest[attribute] = new
    else:
        words.values[before].next = new


@kernel
def unload_words(filing, words):
    """Make the memory ready for the next cluster."""
    for i in range(words.state[N_PRESENT]):
        attribute = words.present[i]
        words.having[attribute], words.lowest[attribute] = 0, END
        words.at_or_below[filing.cell_start[attribute] : filing.cell_start[attribute + 1]] = 0
        words.words[filing.ahead_start[attribute] : filing.ahead_start[attribute + 1]] = 0


@kernel
def range_word(filing, words, attribute, low, high):
    """The events whose value of an attribute is from low to high."""
    cell = filing.cell_start[attribute]
    if words.having[attribute] == 0:
        return np.uint64(0)
    if cell < filing.cell_start[attribute + 1]:
        return words.at_or_below[cell + high] & ~words.at_or_below[cell + low - 1]
    found, at = np.uint64(0), words.lowest[attribute]
    while at != END and words.values[at].code <= high:
        if words.values[at].code >= low:
            found |= words.values[at].word
        at = words.values[at].next
    return found


@kernel
def predicate_word(filing, table, words, position):
    """The events that satisfy a predicate of the table, or may do so if it has a flag."""
    number = filing.numbers[position]
    if number != ASK:
        return words.words[np.uint32(number)]
    predicate = table.predicates[position]
    attribute = predicate.attribute & ATTRIBUTE_MASK
    if predicate.high == ABSENT:
        return words.all_events[0] & ~words.having[attribute]
    return range_word(filing, words, attribute, predicate.low, predicate.high)
