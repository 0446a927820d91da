"""BE-Tree: space cut by attribute and then by halves of its codes, again and again, with small buckets in the nodes.

    event {price: 25, day: 'Mon'}                      root's bucket
     price ──▶ top [1, 40] ──▶ right [21, 40] …        the bucket of each node on the way; left [1, 20] is not entered
     day   ──▶ top [1, 7]  ──▶ left [1, 3] ──▶ …
     qty       is not entered, the event has none

`be_tree_growth` says how the tree grows. Here it is frozen: the entries of all buckets lie side by side in the order of
a walk, the top nodes of a directory are neighbours and ascend by attribute, and the conjunctions of a segment lie in
the order of their entries. Beside each entry stands its signature, as in PSTBloom: of the 4,830 entries that an event
of the ads workload meets, 1,340 are left to be decided, and 1,070 hold.

After M. Sadoghi and H.-A. Jacobsen, BE-Tree, SIGMOD 2011. The paper's buckets have 5 to 20 entries. Here a node costs
a cache miss and an entry far less: with buckets of up to 16, 32 and 64, an event took 68, 55 and 53 us in the A-PCM
workload, 22, 21 and 19 us in ads, and 131, 117 and 121 us in dense.
"""

from typing import NamedTuple

import numpy as np

from boolmatch.be_tree_growth import NONE, ROOT, BETree
from boolmatch.coded_event import N_PRESENT
from boolmatch.conjunctions import Conjunctions
from boolmatch.matching import N_LOOKED_AT, decide, propose
from boolmatch.pst_bloom import attribute_bits, lacking_bits, signatures_of
from boolmatch.selectivity import Profile
from boolmatch.spaces import ABSENT, ATTRIBUTE_MASK
from sievecore.breathing import breathe
from sievecore.jit import builder, kernel
from sievecore.tables import columns

__all__ = ["MAX_SIZE", "BETreeFiling", "FrozenTree", "be_tree_order", "build_be_tree", "find_by_be_tree", "freeze"]

MAX_SIZE = 64
FEW_PARTITIONS = 4  # times the attributes of an event: a directory that is faster read than searched

CNODE = columns("low", "high", "left", "right", "partitions", "n_partitions", "entries", "n_entries")
"""A range of codes, its halves or -1, and slices of nodes and of entries."""


class FrozenTree(NamedTuple):
    """Node 0 is the root."""

    nodes: np.ndarray
    attributes: np.ndarray  # of each node; -1 of the root
    entries: np.ndarray  # conjunctions


class BETreeFiling(NamedTuple):
    """A frozen tree with signatures."""

    nodes: np.ndarray
    attributes: np.ndarray
    entries: np.ndarray
    signatures: np.ndarray
    bit_of_attribute: np.ndarray


def be_tree_order(table: Conjunctions, profile: Profile) -> np.ndarray:
    """The conjunctions in the order of the entries, those with flags after all others."""
    entries = freeze(BETree.of_all(table, profile, MAX_SIZE)).entries
    special = np.zeros(table.n_conjunctions, np.bool_)
    flagged = np.flatnonzero(table.predicates["attribute"] > ATTRIBUTE_MASK)
    special[np.searchsorted(table.start, flagged, "right") - 1] = True
    return np.concatenate([entries[~special[entries]], entries[special[entries]]]).astype(np.int64)


def build_be_tree(table: Conjunctions, profile: Profile) -> BETreeFiling:
    """File the conjunctions of a table."""
    tree = freeze(BETree.of_all(table, profile, MAX_SIZE))
    breathe()
    bits = attribute_bits(profile)
    return BETreeFiling(*tree, signatures_of(table, bits)[tree.entries], bits)


def freeze(tree: BETree) -> FrozenTree:
    """The arrays to match with."""
    growth = tree.growth
    return FrozenTree(*_freeze(growth, int((growth.home != NONE).sum())))


@builder
def _freeze(growth, n_entries):
    n_nodes = len(growth.nodes)
    nodes, attributes = np.zeros(n_nodes, CNODE), np.full(n_nodes, NONE, np.int32)
    entries = np.empty(n_entries, np.int32)
    grown, waiting = np.zeros(n_nodes, np.int32), np.zeros(n_nodes, np.int32)  # of a frozen node; frozen nodes
    n_frozen, n_waiting, n_written = 1, 1, 0
    while n_waiting:
        n_waiting -= 1
        number = waiting[n_waiting]
        node, source = nodes[number], growth.nodes[grown[number]]
        attributes[number], node.low, node.high = source.attribute, source.low, source.high
        node.entries, node.n_entries = n_written, source.size
        _write_bucket(growth, source.bucket, entries[n_written : n_written + source.size])
        n_written += source.size
        first = n_frozen
        node.left, n_frozen = _number_half(source.left, grown, n_frozen)
        node.right, n_frozen = _number_half(source.right, grown, n_frozen)
        node.partitions, n_frozen = n_frozen, _number_partitions(growth, source.partitions, grown, n_frozen)
        node.n_partitions = n_frozen - node.partitions
        for below in range(n_frozen - 1, first - 1, -1):
            waiting[n_waiting] = below
            n_waiting += 1
    return nodes[:n_frozen].copy(), attributes[:n_frozen].copy(), entries


@kernel
def _number_half(half, grown, n_frozen):
    if half == NONE:
        return NONE, n_frozen
    grown[n_frozen] = half
    return n_frozen, n_frozen + 1


@builder
def _number_partitions(growth, top, grown, n_frozen):
    """Number the top nodes of a directory by attribute."""
    first = n_frozen
    while top != NONE:
        grown[n_frozen] = top
        n_frozen, top = n_frozen + 1, growth.nodes[top].next
    tops = grown[first:n_frozen].copy()
    attributes = np.array([growth.nodes[top].attribute for top in tops])
    grown[first:n_frozen] = tops[np.argsort(attributes)]
    return n_frozen


@builder
def _write_bucket(growth, conjunction, entries):
    for i in range(len(entries)):
        entries[i] = conjunction
        conjunction = growth.next[conjunction]
    entries.sort()


@kernel
def find_by_be_tree(filing, filed, work, flat):
    """Walk down wherever the event leads; `work.scratch` holds the nodes that are yet to be visited."""
    event, waiting = work.event, work.scratch
    lacking, n_candidates = lacking_bits(filing, event), 0
    waiting[0], n_nodes = ROOT, 1
    while n_nodes:
        n_nodes -= 1
        number = np.int64(waiting[n_nodes])
        node = filing.nodes[number]
        n_candidates = _propose_bucket(filing, filed, work, flat, lacking, node, n_candidates)
        n_nodes = _enter_halves(filing, event, number, waiting, n_nodes)
        n_nodes = _enter_partitions(filing, event, node, waiting, n_nodes)
    decide(filed, work, flat, n_candidates, 0)


@kernel
def _propose_bucket(filing, filed, work, flat, lacking, node, n_candidates):
    work.counts[N_LOOKED_AT] += node.n_entries
    for i in range(node.entries, node.entries + node.n_entries):
        may_hold = filing.signatures[i] & lacking == 0
        n_candidates = propose(filed, work, flat, n_candidates, filing.entries[i], may_hold, 0)
    return n_candidates


@kernel
def _enter_halves(filing, event, number, waiting, n_nodes):
    """Add the halves of a node that meet the event's codes to those that wait; return how many wait now."""
    if number == ROOT:
        return n_nodes
    node, value = filing.nodes[number], event.values[filing.attributes[number]]
    middle = (node.low + node.high) >> 1
    if node.left != NONE and value.low <= middle:
        waiting[n_nodes] = node.left
        n_nodes += 1
    if node.right != NONE and value.high > middle:
        waiting[n_nodes] = node.right
        n_nodes += 1
    return n_nodes


@kernel
def _enter_partitions(filing, event, node, waiting, n_nodes):
    """Add the top nodes of attributes that the event has."""
    first, end, n_present = node.partitions, node.partitions + node.n_partitions, event.state[N_PRESENT]
    if node.n_partitions <= FEW_PARTITIONS * n_present:
        for top in range(first, end):
            if event.points[filing.attributes[top]] != ABSENT:
                waiting[n_nodes] = top
                n_nodes += 1
        return n_nodes
    for i in range(n_present):
        top = find_partition(filing.attributes, first, end, event.present[i])
        if top != NONE:
            waiting[n_nodes] = top
            n_nodes += 1
    return n_nodes


@kernel
def find_partition(attributes, first, end, attribute):
    """The top node of an attribute among those of a directory."""
    last = end
    while first < end:
        middle = (first + end) >> 1
        if attributes[middle] < attribute:
            first = middle + 1
        else:
            end = middle
    return first if first < last and attributes[first] == attribute else NONE
