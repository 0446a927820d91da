"""PSTBloom: each conjunction is filed under one access predicate, with a signature of its others.

    price BETWEEN 50 AND 100 AND qty > 7 AND day = 'Mon'        access: day = 'Mon'    signature: price qty day

    cells of day             the tree over them                 entries of a node: (conjunction, signature)
    … 9 10 11 12 …           9─10  11─12                        an event with day = 'Mon' looks at the entries of
                               └──┬──┘                          that cell and of all nodes above it; those with a
                                 9─12                           signature bit that the event lacks are passed over

The access predicate is the least likely one. A range is attached to the nodes of a binary tree over the cells that
together cover it, at most two a level, so that a wide one costs as little as a narrow one: PS-Tree links a subscription
to every cell of the range, and an insert of a wide predicate then touches every cell. A list (IN, <>) is attached range
by range. A signature has a bit for each attribute of the conjunction (attributes share the 64 bits). The paper keeps a
Bloom filter of subscriptions in each cell, and asks it once a predicate; one word beside the entry asks for all of them
at once, and in order of memory.

A leaf is a cell where many conjunctions are filed. Where they are few, cells that lie side by side share a leaf, so
that there are not more nodes than entries; then the access predicate has to be decided too. Of 30,000 attributes with
205 cells and 33 conjunctions each (sparse), each is one leaf: an event looks at 30 nodes instead of 240 and at 36% more
entries, and the filing takes 14 MB instead of 65.

Conjunctions lie in the order of their access cells, so that candidates are neighbours.
"""

from typing import NamedTuple

import numpy as np

from boolmatch.coded_event import N_PRESENT
from boolmatch.conjunctions import Conjunctions
from boolmatch.matching import N_LOOKED_AT, check, decide, propose
from boolmatch.selectivity import Profile, common_codes
from boolmatch.spaces import ABSENT, ATTRIBUTE_MASK, DETAIL_BIT
from sievecore.bits import prefetch
from sievecore.breathing import breathe
from sievecore.jit import builder, kernel
from sievecore.rows import offsets
from sievecore.tables import columns

__all__ = [
    "FILED_ELSEWHERE",
    "PstBloomFiling",
    "attribute_bits",
    "build_pst_bloom",
    "choose_access",
    "file_singly",
    "find_by_pst_bloom",
    "lacking_bits",
    "order_by_cell",
    "pst_bloom_order",
    "signatures_of",
]

NO_ACCESS, FILED_ELSEWHERE = -1, -2
FEW = 64  # conjunctions of an attribute that are not worth a tree
LEAF_CONJUNCTIONS = 4  # of a leaf that is more than a cell
GROUP = 16  # attributes whose slices are asked for together
ASKED_FOR, LINE_SIGNATURES, LINE_ENTRIES = 128, 8, 16
MANY_RANGES = 64  # of a list (IN) that is filed under its hull instead of under each


class PstBloomFiling(NamedTuple):
    """Node i of an attribute's tree has the entries from node_start[tree_start[attribute] + i] on."""

    tree_start: np.ndarray
    leaf_bits: np.ndarray  # of an attribute: a leaf of its tree is 2 to the power of this many cells
    node_start: np.ndarray
    entries: np.ndarray  # conjunctions
    signatures: np.ndarray
    bit_of_attribute: np.ndarray
    always: np.ndarray  # conjunctions without a predicate to file them under


ACCESS = columns("attribute", "low", "high", "detail", "special")
"""`detail` is that of a predicate with a few ranges, or -1; `special` is 1 if some predicate has a flag."""


def pst_bloom_order(table: Conjunctions, profile: Profile) -> np.ndarray:
    """The conjunctions in the order of their access cells, and there by length; those with flags after all others."""
    access = choose_access(table)
    by_length = np.argsort(np.diff(table.start), kind="stable")
    by_cell = by_length[order_by_cell(access[by_length], profile)]
    special = access["special"][by_cell] == 1
    return np.concatenate([by_cell[~special], by_cell[special]])


def build_pst_bloom(table: Conjunctions, profile: Profile) -> PstBloomFiling:
    """File the conjunctions of a table."""
    bits = attribute_bits(profile)
    return file_singly(table, choose_access(table), profile, bits, signatures_of(table, bits))


def file_singly(
    table: Conjunctions, access: np.ndarray, profile: Profile, bits: np.ndarray, signatures: np.ndarray
) -> PstBloomFiling:
    """File each conjunction under its access predicate; those that are `FILED_ELSEWHERE` are left out."""
    leaf_bits = _leaf_bits(access, profile)
    tree_start = offsets(2 * (((profile.n_codes.astype(np.int64) - 1) >> leaf_bits) + 1))
    node_start, entries = _file(table, access, tree_start, leaf_bits)
    breathe()
    always = np.flatnonzero(access["attribute"] == NO_ACCESS).astype(np.int32)
    return PstBloomFiling(tree_start, leaf_bits, node_start, entries, signatures[entries], bits, always)


def _leaf_bits(access: np.ndarray, profile: Profile) -> np.ndarray:
    """How many cells to a leaf: so many that it has a few conjunctions, and one leaf where all are few."""
    attributes = access["attribute"][access["attribute"] >= 0]
    n_filed = np.bincount(attributes, minlength=len(profile.n_codes))
    n_cells = np.where(
        n_filed <= FEW, 2 * profile.n_codes, LEAF_CONJUNCTIONS * profile.n_codes // np.maximum(1, n_filed)
    )
    return np.log2(np.maximum(1, n_cells)).astype(np.int32)


def attribute_bits(profile: Profile) -> np.ndarray:
    """A bit for each attribute; the ones named most often share theirs with the ones named least."""
    bits = np.empty(len(profile.weights), np.uint64)
    by_weight = np.argsort(-profile.weights, kind="stable")
    bits[by_weight] = np.uint64(1) << (np.arange(len(bits)) % 64).astype(np.uint64)
    return bits


@builder
def choose_access(table):
    """The access predicate of each conjunction: the attribute of its first predicate, and the codes all those meet."""
    access = np.empty(len(table.start) - 1, ACCESS)
    for conjunction in range(len(access)):
        first, end = table.start[conjunction], table.start[conjunction + 1]
        chosen = access[conjunction]
        chosen.attribute, chosen.detail, chosen.special = NO_ACCESS, -1, 0
        for position in range(first, end):
            chosen.special |= table.predicates[position].attribute > ATTRIBUTE_MASK
        if first < end and table.predicates[first].high != ABSENT:
            chosen.attribute = table.predicates[first].attribute & ATTRIBUTE_MASK
            chosen.low, chosen.high = common_codes(table.predicates, first, end, first)
            if table.predicates[first].attribute & DETAIL_BIT:
                detail = table.details[np.searchsorted(table.detailed, first)]
                is_short = table.range_start[detail + 1] - table.range_start[detail] <= MANY_RANGES
                chosen.detail = detail if is_short else -1
    return access


def order_by_cell(access: np.ndarray, profile: Profile) -> np.ndarray:
    """The order of access predicates by attribute and lowest code; equal ones stay as they are."""
    return _counting_sort(access, offsets(profile.n_codes))


@builder
def _counting_sort(access, first_cell):
    n_cells = first_cell[-1] + 1
    start = np.zeros(n_cells + 1, np.int64)
    for chosen in access:
        start[_cell(chosen, first_cell) + 1] += 1
    for i in range(n_cells):
        start[i + 1] += start[i]
    order = np.empty(len(access), np.int64)
    for conjunction in range(len(access)):
        cell = _cell(access[conjunction], first_cell)
        order[start[cell]] = conjunction
        start[cell] += 1
    return order


@kernel
def _cell(chosen, first_cell):
    return first_cell[-1] if chosen.attribute < 0 else first_cell[chosen.attribute] + chosen.low


@builder
def _file(table, access, tree_start, leaf_bits):
    """Attach each conjunction to the nodes that cover its access codes: where nodes start, and their entries."""
    node_start = np.zeros(tree_start[-1] + 2, np.int32)
    nodes = np.empty(64 * MANY_RANGES, np.int64)
    for chosen in access:
        for i in range(_access_nodes(table, chosen, tree_start, leaf_bits, nodes)):
            node_start[nodes[i] + 2] += 1
    for i in range(len(node_start) - 1):
        node_start[i + 1] += node_start[i]
    entries = np.empty(node_start[-1], np.int32)
    for conjunction in range(len(access)):
        for i in range(_access_nodes(table, access[conjunction], tree_start, leaf_bits, nodes)):
            entries[node_start[nodes[i] + 1]] = conjunction
            node_start[nodes[i] + 1] += 1
    return node_start[:-1].copy(), entries


@kernel
def _access_nodes(table, chosen, tree_start, leaf_bits, nodes):
    """Write the fewest nodes that cover the access codes, or each range of a list of them; return how many."""
    if chosen.attribute < 0:
        return 0
    base, bits = tree_start[chosen.attribute], leaf_bits[chosen.attribute]
    n_leaves = (tree_start[chosen.attribute + 1] - base) // 2
    if chosen.detail < 0:
        return _covering_nodes(base, n_leaves, chosen.low >> bits, chosen.high >> bits, nodes, 0)
    n_nodes, after = 0, 0
    for i in range(table.range_start[chosen.detail], table.range_start[chosen.detail + 1]):
        first, last = max(after, table.ranges[i].low >> bits), table.ranges[i].high >> bits
        n_nodes = _covering_nodes(base, n_leaves, first, last, nodes, n_nodes)
        after = max(after, last + 1)
    return n_nodes


@kernel
def _covering_nodes(base, n_leaves, low, high, nodes, n_nodes):
    """Add the fewest nodes that cover some codes; return how many there are now. Leaf i of n is node n + i."""
    left, right = n_leaves + low, n_leaves + high + 1
    while left < right:
        if left & 1:
            nodes[n_nodes] = base + left
            n_nodes, left = n_nodes + 1, left + 1
        if right & 1:
            right -= 1
            nodes[n_nodes] = base + right
            n_nodes += 1
        left, right = left >> 1, right >> 1
    return n_nodes


@builder
def signatures_of(table, bits):
    """For each conjunction the bits of the attributes that an event must have."""
    signatures = np.zeros(len(table.start) - 1, np.uint64)
    for conjunction in range(len(signatures)):
        for position in range(table.start[conjunction], table.start[conjunction + 1]):
            predicate = table.predicates[position]
            if predicate.high != ABSENT:
                signatures[conjunction] |= bits[predicate.attribute & ATTRIBUTE_MASK]
    return signatures


@kernel
def find_by_pst_bloom(filing, filed, work, flat):
    """Name the entries of the cells that the event's values lie in, if their signatures allow it.

    A candidate's access predicate is known to hold if leaves are cells; attributes with larger leaves come last.
    """
    lacking = lacking_bits(filing, work.event)
    _propose_attributes(filing, filed, work, flat, lacking, 1)
    _propose_attributes(filing, filed, work, flat, lacking, 0)
    for conjunction in filing.always:
        check(filed, work, flat, conjunction)


@kernel
def _propose_attributes(filing, filed, work, flat, lacking, n_known):
    n_present, n_waiting = work.event.state[N_PRESENT], 0
    for first in range(0, n_present, GROUP):
        end = min(first + GROUP, n_present)
        _ask_for_nodes(filing, work.event, first, end, n_known)
        for i in range(_write_slices(filing, work.event, first, end, work.slices, n_known)):
            n_waiting = _propose_entries(filing, filed, work, flat, lacking, i, n_waiting, n_known)
    decide(filed, work, flat, n_waiting, n_known)


@kernel
def lacking_bits(filing, event):
    """The bits of signatures that no attribute of the event has."""
    lacking = ~np.uint64(0)
    for i in range(event.state[N_PRESENT]):
        lacking &= ~filing.bit_of_attribute[event.present[i]]
    return lacking


@kernel
def _ask_for_nodes(filing, event, first, end, n_known):
    """Ask the cache for where the entries of some attributes start."""
    for i in range(first, end):
        if (filing.leaf_bits[event.present[i]] == 0) != n_known:
            continue
        base, left, right = _leaves_of(filing, event, event.present[i])
        while right >= 1:
            prefetch(filing.node_start, base + left)
            left, right = left >> 1, right >> 1


@kernel
def _write_slices(filing, event, first, end, slices, n_known):
    """Write the slices of entries of some attributes and ask the cache for them; return how many there are."""
    n_slices = 0
    for i in range(first, end):
        if (filing.leaf_bits[event.present[i]] == 0) != n_known:
            continue
        base, left, right = _leaves_of(filing, event, event.present[i])
        while right >= 1:
            found = slices[n_slices]
            found.start, found.end = filing.node_start[base + left], filing.node_start[base + right + 1]
            if found.start < found.end:
                _ask_for_entries(filing, np.int64(found.start), np.int64(found.end))
                n_slices += 1
            left, right = left >> 1, right >> 1
    return n_slices


@kernel
def _ask_for_entries(filing, first, end):
    """Ask the cache for the first lines of a slice; it foresees the others when it has seen some.

    With one line, and not `ASKED_FOR` entries, an event took 22.5 instead of 19.5 us, sparse, and 57 instead of 50,
    dense.
    """
    end = min(end, first + ASKED_FOR)
    for entry in range(first, end, LINE_SIGNATURES):
        prefetch(filing.signatures, entry)
    for entry in range(first, end, LINE_ENTRIES):
        prefetch(filing.entries, entry)


@kernel
def _leaves_of(filing, event, attribute):
    """Where the attribute's tree starts, and the leaves in it of the event's lowest and highest code."""
    base = filing.tree_start[attribute]
    n_leaves = (filing.tree_start[attribute + 1] - base) // 2
    value, bits = event.values[attribute], filing.leaf_bits[attribute]
    return base, n_leaves + (value.low >> bits), n_leaves + (value.high >> bits)


@kernel
def _propose_entries(filing, filed, work, flat, lacking, i, n_waiting, n_known):
    first, end = work.slices[i].start, work.slices[i].end
    work.counts[N_LOOKED_AT] += end - first
    for entry in range(np.uint32(first), np.uint32(end)):
        may_hold = filing.signatures[entry] & lacking == 0
        n_waiting = propose(filed, work, flat, n_waiting, filing.entries[entry], may_hold, n_known)
    return n_waiting
