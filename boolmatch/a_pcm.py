"""A-PCM: similar events are compressed into one, and a BE-Tree is walked once for all of them.

    batch ──▶ clusters of similar events ──▶ 64 events a word ──▶ word of each predicate
                                                                      │
    root 1111 ─┬─ price [1, 20] 0110 ─── qty [4, 4] 0010        walk: the nodes that some event reaches, and which
               └─ day [3, 3]    1000                            scan: their conjunctions, each the AND of its words
                                                                      │
                      targets × events, sorted by target, turned by 64 × 64 bits ──▶ of each event: ids, ascending

Adaptive parallel compressed matching (M. Sadoghi and H.-A. Jacobsen, ICDE 2014). As in the paper, each distinct
predicate is decided once (`predicate_words`), events are reordered by similarity (`event_clusters`), the walk first
collects the nodes and then scans them, and events that share too little with all others are matched one by one.

What differs: words have a bit an event, so a node or a conjunction that no *single* event can reach is passed over,
where the paper's OR lets it through; a cluster is a word of up to 64 events; and smaller clusters share a word, since
their bits do not get into each other's way. Threads take whole words instead of paths of one walk: nothing to
wait for, and all they share is a counter.

Conjunctions with flags are decided again for the events whose bits are left, with the event's own values. Events with
several values or intervals are matched one by one.
"""

from typing import Any, NamedTuple

import numpy as np

from boolmatch.be_tree import FEW_PARTITIONS, build_be_tree, find_by_be_tree, find_partition
from boolmatch.be_tree_growth import NONE, ROOT
from boolmatch.coded_event import load_event, unload_event, with_room
from boolmatch.conjunctions import Conjunctions
from boolmatch.event_clusters import cluster_events, encode_events, new_coded_events
from boolmatch.flat_events import FlatEvents
from boolmatch.matching import N_CLUSTERS, N_COMPRESSED, N_EVENTS, N_LOOKED_AT, Work, accept_target, check
from boolmatch.predicate_words import (
    N_PRESENT,
    Words,
    load_words,
    number_predicates,
    predicate_word,
    range_word,
    unload_words,
    words_in,
    words_size,
)
from boolmatch.runs import N_DONE, Run, largest_event
from boolmatch.selectivity import Profile
from sievecore.atomics import fetch_add
from sievecore.bits import lowest_bit, prefetch
from sievecore.jit import kernel
from sievecore.result_bits import NO_ROOM, write_ids
from sievecore.snapshots import Layer

__all__ = ["APCMFiling", "a_pcm_scratch_size", "build_a_pcm", "match_by_clusters"]

WORD = 64
FLAGGED = np.uint64(1 << 32)  # what is found is a target, or this and a conjunction
AHEAD = 4  # nodes
LINE, MOST_LINES = 16, 16  # numbers in a line of the cache
DIGIT_BITS = np.uint64(11)
N_DIGITS = 1 << 11
CHUNK = 8  # lone events that a thread takes at a time


class APCMFiling(NamedTuple):
    """A frozen BE-Tree, and the distinct predicates."""

    nodes: np.ndarray
    attributes: np.ndarray
    entries: np.ndarray
    signatures: np.ndarray
    bit_of_attribute: np.ndarray
    numbers: np.ndarray
    ahead_start: np.ndarray
    ahead: np.ndarray
    cell_start: np.ndarray


class Clusters(NamedTuple):
    """The events order[start[i]:start[i + 1]] are matched together, or one by one from `first_alone` on."""

    order: np.ndarray
    start: np.ndarray
    first_alone: np.ndarray


class Memory(NamedTuple):
    """Working memory of one thread."""

    words: Words
    reached: np.ndarray  # nodes
    reaching: np.ndarray  # the events that reach each
    found: np.ndarray  # targets, or conjunctions with flags
    holding: np.ndarray  # the events that want each; and after turning, of each event what it wants
    found_too: np.ndarray
    holding_too: np.ndarray
    digit_start: np.ndarray


def build_a_pcm(table: Conjunctions, profile: Profile) -> APCMFiling:
    """File the conjunctions of a table."""
    return APCMFiling(*build_be_tree(table, profile), *number_predicates(table, profile))


def a_pcm_scratch_size(filing: Any) -> int:
    """Words of working memory: for the walk of a single event and of many, and for what is found."""
    return sum(_scratch_sizes(filing))


def _scratch_sizes(filing: Any) -> list[int]:
    n_nodes, n_found = len(filing.nodes), len(filing.entries) + WORD
    return [n_nodes, n_nodes, n_nodes, n_found, n_found, n_found, n_found, N_DIGITS + 1, words_size(filing)]


def match_by_clusters(layer: Layer[Any], flat: FlatEvents, n_threads: int) -> list[np.ndarray]:
    """The ids that want each event, ascending."""
    run = _ClusteredRun(layer, flat)
    return run.run(min(n_threads, len(run.clusters.start) - 1))


class _ClusteredRun(Run):
    """Clusters of events."""

    def __init__(self, layer: Layer[Any], flat: FlatEvents) -> None:
        super().__init__(layer, flat)
        self.coded = new_coded_events(flat)
        with layer.segment.scratches.lend() as work:
            event = with_room(work.event, largest_event(flat))
            encode_events(layer.segment.filed.spaces, flat, event, self.coded)
        order, first_alone = cluster_events(self.coded)
        together = np.arange(0, first_alone, WORD)
        alone = np.arange(first_alone, flat.n_events, CHUNK)
        start = np.concatenate([together, alone, [flat.n_events]])
        self.clusters = Clusters(order, start, np.array([first_alone]))

    def memory(self, work: Work) -> Memory:
        """Slices of the scratch; `find_by_be_tree` uses the first one."""
        sizes = _scratch_sizes(self.layer.segment.filing)
        _, reached, reaching, found, holding, found_too, holding_too, digits, rest = np.split(
            work.scratch, np.cumsum(sizes[:-1])
        )
        n_values = WORD * largest_event(self.flat)
        words = words_in(rest, self.layer.segment.filing, n_values)
        return Memory(
            words, reached.view(np.int64), reaching, found, holding, found_too, holding_too, digits.view(np.int64)
        )

    def match(
        self, work: Work, memory: Memory, progress: np.ndarray, events: np.ndarray, ends: np.ndarray, ids: np.ndarray
    ) -> bool:
        segment, results = self.layer.segment, (self.layer.alive, events, ends, ids)
        more: bool = match_clusters(
            segment.filing,
            segment.filed,
            self.flat,
            self.coded,
            self.clusters,
            memory,
            work,
            self.next,
            progress,
            *results,
        )
        return more


# Cells of `progress` after the first: the place at hand, where the cluster starts and ends, how much was found.
PLACE, START, END, N_HELD = range(1, 5)


@kernel
def match_clusters(
    filing, filed, flat, coded, clusters, memory, work, next_cluster, progress, alive, events, ends, ids
):
    """Match clusters until none is left, or until there is no room for an event's ids: then return True."""
    progress[N_DONE], end = 0, 0
    while True:
        if progress[PLACE] == progress[END] and not _take_cluster(
            filing, filed, coded, clusters, memory, work, next_cluster, progress
        ):
            return False
        place, n_held = progress[PLACE], progress[N_HELD]
        if progress[START] >= clusters.first_alone[0] or (n_held and memory.found[n_held - 1] >= len(filed.ids)):
            load_event(filed.spaces, flat, clusters.order[place], work.event)
            if progress[START] < clusters.first_alone[0]:
                _accept_held(filed, work, flat, memory, place - progress[START], n_held)
            else:
                find_by_be_tree(filing, filed, work, flat)
            unload_event(work.event)
            end = write_ids(work.bits, alive, filed.ids, ids, end)
        else:
            end = _write_held(filed, work, memory, place - progress[START], n_held, alive, ids, end)
        if end == NO_ROOM:
            return True
        work.counts[N_EVENTS] += 1
        events[progress[N_DONE]], ends[progress[N_DONE]] = clusters.order[place], end
        progress[N_DONE] += 1
        progress[PLACE] += 1


@kernel
def _take_cluster(filing, filed, coded, clusters, memory, work, next_cluster, progress):
    """Take the next cluster, and find what holds for its events; False if there is none."""
    cluster = fetch_add(next_cluster, 0, 1)
    if cluster >= len(clusters.start) - 1:
        return False
    first, end = clusters.start[cluster], clusters.start[cluster + 1]
    progress[PLACE] = progress[START] = first
    progress[END] = end
    if first < clusters.first_alone[0]:
        load_words(filing, memory.words, coded, clusters.order, first, end)
        n_reached = _reach(filing, memory)
        n_held = _scan(filing, filed, memory, work, n_reached)
        unload_words(filing, memory.words)
        _sort(memory, n_held)
        _turn(memory, n_held)
        progress[N_HELD] = n_held
        work.counts[N_COMPRESSED] += end - first
        work.counts[N_CLUSTERS] += 1
    return True


@kernel
def _reach(filing, memory):
    """Collect the nodes that some event reaches; return how many there are."""
    reached, reaching, words = memory.reached, memory.reaching, memory.words
    reached[0], reaching[0] = ROOT, words.all_events[0]
    at, n_reached = 0, 1
    while at < n_reached:
        node, attribute = filing.nodes[reached[at]], filing.attributes[reached[at]]
        middle = (node.low + node.high) >> 1
        if node.left != NONE:
            events = reaching[at] & range_word(filing, words, attribute, node.low, middle)
            n_reached = _note_node(memory, n_reached, node.left, events)
        if node.right != NONE:
            events = reaching[at] & range_word(filing, words, attribute, middle + 1, node.high)
            n_reached = _note_node(memory, n_reached, node.right, events)
        if node.n_partitions:
            n_reached = _reach_partitions(filing, memory, node, reaching[at], n_reached)
        at += 1
    return n_reached


@kernel
def _note_node(memory, n_reached, node, events):
    memory.reached[n_reached], memory.reaching[n_reached] = node, events
    return n_reached + (events != 0)


@kernel
def _reach_partitions(filing, memory, node, events, n_reached):
    words, first, end = memory.words, node.partitions, node.partitions + node.n_partitions
    n_present = words.state[N_PRESENT]
    if node.n_partitions <= FEW_PARTITIONS * n_present:
        for top in range(first, end):
            n_reached = _note_node(memory, n_reached, top, events & words.having[filing.attributes[top]])
        return n_reached
    for i in range(n_present):
        if events & words.having[words.present[i]]:
            top = find_partition(filing.attributes, first, end, words.present[i])
            if top != NONE:
                n_reached = _note_node(memory, n_reached, top, events & words.having[words.present[i]])
    return n_reached


@kernel
def _scan(filing, filed, memory, work, n_reached):
    """Decide the conjunctions of all nodes that were reached, and note whom those that hold for some event are for.

    Return how many that are. A conjunction with flags, which is to be decided again, is noted itself.
    """
    table, n_plain = filed.table, filed.table.n_plain[0]
    n_held, n_looked_at = 0, 0
    for at in range(n_reached):
        _ask_for_nodes(filing, table, memory, at, n_reached)
        node = filing.nodes[memory.reached[at]]
        n_looked_at += node.n_entries
        for entry in range(np.uint32(node.entries), np.uint32(node.entries + node.n_entries)):
            conjunction = np.uint32(filing.entries[entry])
            events = memory.reaching[at]
            last = np.uint32(table.start[np.uint32(conjunction + np.uint32(1))])
            for position in range(np.uint32(table.start[conjunction]), last):
                events &= predicate_word(filing, table, memory.words, position)
                if events == 0:
                    break
            if events != 0:
                target = np.uint64(filed.targets.targets[conjunction])
                memory.found[n_held] = target if conjunction < n_plain else FLAGGED + np.uint64(conjunction)
                memory.holding[n_held] = events
                n_held += 1
    work.counts[N_LOOKED_AT] += n_looked_at
    return n_held


@kernel
def _ask_for_nodes(filing, table, memory, at, n_reached):
    """Ask the cache for what is needed to scan the nodes ahead, one step of the way earlier than the next."""
    if at + 4 * AHEAD < n_reached:
        prefetch(filing.nodes, memory.reached[at + 4 * AHEAD])
    if at + 3 * AHEAD < n_reached:
        prefetch(filing.entries, np.int64(filing.nodes[memory.reached[at + 3 * AHEAD]].entries))
    if at + 2 * AHEAD < n_reached and filing.nodes[memory.reached[at + 2 * AHEAD]].n_entries:
        entry = filing.nodes[memory.reached[at + 2 * AHEAD]].entries
        prefetch(table.start, np.int64(filing.entries[entry]))
    if at + AHEAD < n_reached and filing.nodes[memory.reached[at + AHEAD]].n_entries:
        node = filing.nodes[memory.reached[at + AHEAD]]
        position = np.int64(table.start[filing.entries[node.entries]])
        for line in range(min(node.n_entries // 2 + 1, MOST_LINES)):
            prefetch(filing.numbers, position + line * LINE)


@kernel
def _sort(memory, n_held):
    """Sort what was found, by two digits at a time, as many as the largest has."""
    largest, shift = np.uint64(0), np.uint64(0)
    for i in range(n_held):
        largest |= memory.found[i]
    while largest >> shift:
        _sort_by_digit(memory.found, memory.holding, memory.found_too, memory.holding_too, n_held, shift, memory)
        shift += DIGIT_BITS
        _sort_by_digit(memory.found_too, memory.holding_too, memory.found, memory.holding, n_held, shift, memory)
        shift += DIGIT_BITS


@kernel
def _sort_by_digit(found, holding, to_found, to_holding, n_held, shift, memory):
    start, mask = memory.digit_start, np.uint64(N_DIGITS - 1)
    start[:] = 0
    for i in range(n_held):
        start[((found[i] >> shift) & mask) + np.uint64(1)] += 1
    for digit in range(N_DIGITS):
        start[digit + 1] += start[digit]
    for i in range(n_held):
        digit = (found[i] >> shift) & mask
        place = np.uint64(start[digit])
        to_found[place], to_holding[place] = found[i], holding[i]
        start[digit] += 1


@kernel
def _turn(memory, n_held):
    """Turn the matrix of conjunctions and events, 64 × 64 bits at a time: row i of a block is then of event i."""
    for first in range(0, n_held, WORD):
        rows = memory.holding[first : first + WORD]
        rows[min(WORD, n_held - first) :] = 0
        width, mask = 32, np.uint64(0xFFFFFFFF)
        while width:
            shift, row = np.uint64(width), 0
            while row < WORD:
                swapped = ((rows[row] >> shift) ^ rows[row + width]) & mask
                rows[row] ^= swapped << shift
                rows[row + width] ^= swapped
                row = (row + width + 1) & ~width
            width >>= 1
            mask ^= mask << np.uint64(width)


@kernel
def _write_held(filed, work, memory, event, n_held, alive, ids, end):
    """Write the ids for an event of the cluster, if all targets are slots; return the end, or NO_ROOM."""
    before, in_a_row = np.int64(-1), filed.ids[-1] - filed.ids[0] == len(filed.ids) - 1  # then they need not be read
    for first in range(0, n_held, WORD):
        row = memory.holding[first + event]
        if end + WORD > len(ids):
            return NO_ROOM
        while row:
            slot = np.int64(memory.found[first + np.int64(lowest_bit(row))])
            row &= row - np.uint64(1)
            if slot != before and alive[slot >> 6] >> np.uint64(slot & 63) & np.uint64(1):
                ids[end] = filed.ids[0] + slot if in_a_row else filed.ids[slot]
                end += 1
            before = slot
    return end


@kernel
def _accept_held(filed, work, flat, memory, event, n_held):
    """Mark who wants what holds for the loaded event of the cluster."""
    for first in range(0, n_held, WORD):
        row = memory.holding[first + event]
        while row:
            found = memory.found[first + np.int64(lowest_bit(row))]
            row &= row - np.uint64(1)
            if found < FLAGGED:
                accept_target(filed, work, flat, np.int64(found))
            else:
                check(filed, work, flat, np.int64(found - FLAGGED))
