"""What all algorithms have in hand while they match, and the last step that they share: decide a candidate.

    algorithm ──▶ candidate conjunction ──▶ check: do all its predicates hold? ──▶ mark who wants it

An algorithm is a *filing* of conjunctions and a kernel that names candidates for an event. It may name a conjunction
twice, and some in vain, but never leave one out that holds.
"""

from typing import NamedTuple

import numpy as np

from boolmatch.coded_event import IS_PLAIN, CodedEvent, new_coded_event
from boolmatch.conjunctions import Conjunctions, all_hold, all_meet
from boolmatch.packed import CODE_BITS, N_PACKED, Packed, packed_meet
from boolmatch.spaces import Spaces
from boolmatch.targets import Targets, is_true, new_stack
from sievecore.bits import prefetch
from sievecore.jit import kernel
from sievecore.result_bits import ResultBits, mark, new_result_bits
from sievecore.tables import columns

__all__ = [
    "COUNT_NAMES",
    "N_CHECKED",
    "N_CLUSTERS",
    "N_COMPRESSED",
    "N_COUNTS",
    "N_EVENTS",
    "N_FOUND",
    "N_LOOKED_AT",
    "Filed",
    "Work",
    "accept_target",
    "check",
    "decide",
    "new_work",
    "propose",
]

# Cells of `Work.counts`: events, candidates looked at by the algorithm, those decided, those that held; and of events
# that were matched together: how many, and in how many clusters.
N_EVENTS, N_LOOKED_AT, N_CHECKED, N_FOUND, N_COMPRESSED, N_CLUSTERS = range(6)
N_COUNTS = 6
COUNT_NAMES = ("events", "looked_at", "checked", "found", "compressed", "clusters")

# Candidates that are asked for together: 36, 31, 30 and 32 us an event with 32, 64, 128 and 256, sparse.
WINDOW = 128
LINE_PREDICATES = 4
N_SLICES = 1024
# Room for the results of a hundred events that a thousand subscriptions want. Whenever it is full, one event is matched
# again: with 4,096, doubled each time, 64 such events a call took 8% longer. What is never written takes no memory.
N_IDS = 1 << 17

SLICE = columns("start", "end")


class Filed(NamedTuple):
    """The frozen subscriptions of a segment, without the filing."""

    ids: np.ndarray
    spaces: Spaces
    table: Conjunctions
    targets: Targets
    leaves: Conjunctions
    packed: Packed


class Work(NamedTuple):
    """Working memory of one thread for one segment."""

    event: CodedEvent
    bits: ResultBits
    stack: np.ndarray
    counts: np.ndarray
    waiting: np.ndarray  # candidates that are asked for from memory, before they are decided
    found: np.ndarray  # targets of those that hold, before they are marked
    slices: np.ndarray  # slices of a filing that are asked for, before they are looked at
    scratch: np.ndarray  # words that the algorithm uses as it likes
    ids: np.ndarray  # results, until they are handed out


def new_work(filed: Filed, n_scratch: int = 0) -> Work:
    """Working memory for one thread."""
    return Work(
        new_coded_event(filed.spaces),
        new_result_bits(len(filed.ids)),
        new_stack(filed.targets),
        np.zeros(N_COUNTS, np.int64),
        np.zeros(WINDOW, np.int32),
        np.zeros(WINDOW, np.int32),
        np.zeros(N_SLICES, SLICE),
        np.zeros(n_scratch, np.uint64),
        np.empty(N_IDS, np.int64),
    )


@kernel
def propose(filed, work, flat, n_waiting, conjunction, may_hold, n_known):
    """Add a candidate to those that wait, if it may hold; return how many wait now.

    The first `n_known` predicates of each are known to hold in a plain event, if they have no flags. Whether it may
    hold is not branched upon, since that would be guessed wrong often: 62 instead of 57 us an event, dense.
    """
    work.waiting[np.uint32(n_waiting)] = conjunction
    n_waiting += may_hold
    if n_waiting < WINDOW:
        return n_waiting
    decide(filed, work, flat, n_waiting, n_known)
    return 0


@kernel
def decide(filed, work, flat, n_waiting, n_known):
    """Decide those that wait, and mark who wants those that hold."""
    n_packed = filed.packed.layout[N_PACKED] if work.event.state[IS_PLAIN] else 0
    if n_packed:
        n_found = _decide_packed(filed, work, flat, n_waiting, n_known, n_packed)
    else:
        n_found = _decide_by_table(filed, work, flat, n_waiting, n_known)
    for i in range(np.uint32(n_found)):
        accept_target(filed, work, flat, np.int64(work.found[i]))
    work.counts[N_CHECKED] += n_waiting
    work.counts[N_FOUND] += n_found


@kernel
def _decide_packed(filed, work, flat, n_waiting, n_known, n_packed):
    """Note the targets of those that hold, without a branch to be guessed; return how many there are."""
    start, words, waiting = filed.table.start, filed.packed.words, work.waiting
    code_bits = np.uint32(filed.packed.layout[CODE_BITS])
    for i in range(n_waiting):
        prefetch(start, np.int64(waiting[i]))
    for i in range(n_waiting):
        conjunction = np.uint32(waiting[i])
        prefetch(words, np.int64(start[conjunction]) + conjunction)
        prefetch(words, np.int64(start[conjunction + np.uint32(1)]) + conjunction)
    n_found = np.uint32(0)
    for i in range(np.uint32(n_waiting)):
        conjunction = np.uint32(waiting[i])
        if conjunction < n_packed:
            header = np.uint32(start[conjunction]) + conjunction
            after = np.uint32(start[conjunction + np.uint32(1)]) + conjunction + np.uint32(1)
            target = words[header]
            found = packed_meet(words, header + np.uint32(1 + n_known), after, code_bits, work.event.points)
        else:
            target = np.uint32(filed.targets.targets[conjunction])
            found = all_hold(filed.table, conjunction, work.event, flat)
        prefetch(work.bits.words, np.int64(target >> np.uint32(6)))
        work.found[n_found] = target
        n_found += np.uint32(found)
    return n_found


@kernel
def _decide_by_table(filed, work, flat, n_waiting, n_known):
    """The same without words."""
    table, waiting = filed.table, work.waiting
    for i in range(n_waiting):
        prefetch(table.start, np.int64(waiting[i]))
        prefetch(filed.targets.targets, np.int64(waiting[i]))
    for i in range(n_waiting):
        start = np.int64(table.start[np.uint32(waiting[i])])
        prefetch(table.predicates, start)
        prefetch(table.predicates, start + LINE_PREDICATES)
    n_plain = table.n_plain[0] if work.event.state[IS_PLAIN] else 0
    n_found = np.uint32(0)
    for i in range(np.uint32(n_waiting)):
        conjunction = np.uint32(waiting[i])
        if conjunction < n_plain:
            after = np.uint32(conjunction + np.uint32(1))
            found = all_meet(table, table.start[conjunction] + n_known, table.start[after], work.event.points)
        else:
            found = all_hold(table, conjunction, work.event, flat)
        if found:
            work.found[n_found] = filed.targets.targets[conjunction]
            n_found += np.uint32(1)
    return n_found


@kernel
def check(filed, work, flat, conjunction):
    """Decide a candidate, and mark who wants it if it holds."""
    work.counts[N_CHECKED] += 1
    if all_hold(filed.table, conjunction, work.event, flat):
        work.counts[N_FOUND] += 1
        accept_target(filed, work, flat, np.int64(filed.targets.targets[conjunction]))


@kernel
def accept_target(filed, work, flat, target):
    """Mark the slot, or all the slots of a shared list."""
    targets, n_slots = filed.targets, len(filed.ids)
    if target < n_slots:
        mark(work.bits, target)
        return
    for i in range(targets.shared_start[target - n_slots], targets.shared_start[target - n_slots + 1]):
        slot = targets.shared[i]
        if slot >= 0:
            mark(work.bits, slot)
        elif is_true(targets, filed.leaves, ~slot, work.event, flat, work.stack):
            mark(work.bits, targets.program_slots[~slot])
