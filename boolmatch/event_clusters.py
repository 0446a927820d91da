"""Events of a batch brought together by what they share, so that similar ones can be matched in one go.

    events   0 {a:1 b:2 c:3}   1 {d:9}   2 {a:1 b:2 c:7}   3 {e:5 f:6}   4 {b:2 c:3}

    pair (b, 2) ──▶ 0 2 4        event 0 leads: 2 shares two pairs with it, 4 two as well, the others none
    pair (c, 3) ──▶ 0 4          order   0 2 4 | 1 3        together: 0 2 4        alone: 1 3
    pair (a, 1) ──▶ 0 2

The online stream re-ordering of A-PCM (M. Sadoghi and H.-A. Jacobsen, 2014), with another way to find clusters. The
paper inserts the events of a batch into a BE-Tree and takes its leaves. There, two events of which 70% is the same part
ways at the first attribute in which they differ; here, a leader counts the pairs it shares with every other event,
and takes those that share at least half of its own, and then those with at least `THRESHOLD`. It looks only at events
that have one of its pairs. A pair is an attribute and the cell of its value, so values that no subscription tells apart
are the same.
"""

from typing import NamedTuple

import numpy as np

from boolmatch.coded_event import IS_PLAIN, N_PRESENT, load_event, unload_event
from boolmatch.flat_events import FlatEvents
from sievecore.hashing import SEED, mix
from sievecore.jit import builder, kernel

__all__ = ["CodedEvents", "cluster_events", "encode_events", "new_coded_events"]

BATCH = 1024  # events that are compared with each other, as in the paper
THRESHOLD = 2  # shared pairs, as in the paper
LARGEST = 64
EMPTY = -1


class CodedEvents(NamedTuple):
    """The pairs of event i are those from start[i] on, as many as `n_pairs` says."""

    start: np.ndarray
    n_pairs: np.ndarray
    is_plain: np.ndarray
    attributes: np.ndarray
    codes: np.ndarray


def new_coded_events(flat: FlatEvents) -> CodedEvents:
    """Room for the codes of events."""
    n_pairs = len(flat.pairs)
    return CodedEvents(
        flat.start,
        np.zeros(flat.n_events, np.int32),
        np.zeros(flat.n_events, np.bool_),
        np.zeros(n_pairs, np.int32),
        np.zeros(n_pairs, np.int32),
    )


@kernel
def encode_events(spaces, flat, event, coded):
    """Look up the values of all events; of those that are not plain, only the attributes can be relied on."""
    for number in range(len(flat.start) - 1):
        load_event(spaces, flat, number, event)
        first = flat.start[number]
        coded.n_pairs[number], coded.is_plain[number] = event.state[N_PRESENT], event.state[IS_PLAIN] != 0
        for i in range(event.state[N_PRESENT]):
            coded.attributes[first + i] = event.present[i]
            coded.codes[first + i] = event.points[event.present[i]]
        unload_event(event)


@builder
def cluster_events(coded):
    """An order of the events: from the front clusters, one after another; from the end those that are alone.

    Return the order and where the first lone event stands in it.
    """
    n_events = len(coded.n_pairs)
    order = np.empty(n_events, np.int32)
    taken = ~coded.is_plain
    n_together, first_alone = 0, n_events
    for event in range(n_events):
        if taken[event]:
            first_alone -= 1
            order[first_alone] = event
    for first in range(0, n_events, BATCH):
        end = min(first + BATCH, n_events)
        n_together, first_alone = _cluster_batch(coded, taken, first, end, order, n_together, first_alone)
    return order, first_alone


@builder
def _cluster_batch(coded, taken, first, end, order, n_together, first_alone):
    numbers, list_start, listed = _list_pairs(coded, first, end)
    shared, touched = np.zeros(end - first, np.int32), np.empty(end - first, np.int32)
    for leader in range(first, end):
        if taken[leader]:
            continue
        taken[leader] = True
        n_touched, before = 0, n_together
        for i in range(coded.n_pairs[leader]):
            pair = numbers[coded.start[leader] - coded.start[first] + i]
            for j in range(list_start[pair], list_start[pair + 1]):
                n_touched = _touch(listed[j] - first, taken[listed[j]], shared, touched, n_touched)
        for least in (max(THRESHOLD, coded.n_pairs[leader] // 2), THRESHOLD):
            for i in range(n_touched):
                follower = first + touched[i]
                if shared[touched[i]] >= least and not taken[follower] and n_together - before < LARGEST - 1:
                    order[n_together] = follower
                    n_together, taken[follower] = n_together + 1, True
        shared[touched[:n_touched]] = 0
        if n_together > before:
            order[n_together] = leader
            n_together += 1
        else:
            first_alone -= 1
            order[first_alone] = leader
    return n_together, first_alone


@kernel
def _touch(event, is_taken, shared, touched, n_touched):
    if is_taken:
        return n_touched
    if shared[event] == 0:
        touched[n_touched] = event
        n_touched += 1
    shared[event] += 1
    return n_touched


@builder
def _list_pairs(coded, first, end):
    """Number the distinct pairs of some events, and list the plain events that have each."""
    offset = coded.start[first]
    numbers = np.full(coded.start[end] - offset, EMPTY, np.int32)
    list_start = np.zeros(len(numbers) + 2, np.int32)
    slots = np.full(_power_of_two(2 * len(numbers)), EMPTY, np.int32)
    n_distinct = 0
    for event in range(first, end):
        for i in range(coded.start[event], coded.start[event] + coded.n_pairs[event] * coded.is_plain[event]):
            place = _pair_place(slots, coded, i)
            if slots[place] == EMPTY:
                slots[place], numbers[i - offset] = i, n_distinct
                n_distinct += 1
            else:
                numbers[i - offset] = numbers[slots[place] - offset]
            list_start[numbers[i - offset] + 2] += 1
    for i in range(len(list_start) - 1):
        list_start[i + 1] += list_start[i]
    listed = np.empty(list_start[-1], np.int32)
    for event in range(first, end):
        for i in range(coded.start[event], coded.start[event] + coded.n_pairs[event] * coded.is_plain[event]):
            pair = numbers[i - offset]
            listed[list_start[pair + 1]] = event
            list_start[pair + 1] += 1
    return numbers, list_start, listed


@kernel
def _power_of_two(least):
    size = 8
    while size < least:
        size *= 2
    return size


@kernel
def _pair_place(slots, coded, i):
    """The slot of a pair that is equal to pair i, or the empty one where it belongs."""
    mask = np.uint64(len(slots) - 1)
    place = mix(mix(SEED, coded.attributes[i]), coded.codes[i]) & mask
    while slots[place] != EMPTY:
        other = slots[place]
        if coded.attributes[other] == coded.attributes[i] and coded.codes[other] == coded.codes[i]:
            break
        place = (place + np.uint64(1)) & mask
    return place
