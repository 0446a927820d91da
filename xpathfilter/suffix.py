"""Suffix families: subscriptions share the work of their last steps, and are walked from the last step back.

Each cluster family is a trie whose root is the access record, the record of the last step:

    /a/b//c   a//b//c   //c   //b/c[@x]           family of c          family of c[@x]

                                                  //c  •               /c[@x]
                                                  ├─ /b                └─ //b  •
                                                  │   └─ /a  •
                                                  └─ //b
                                                      └─ /a  •

A node is a step: a record and how that step is reached from the one before it (which is its child here). A walk
carries the set of document nodes at which the suffix so far can start, as one 64-bit word over a block:

    word            at the root of the family: the fresh nodes that satisfy the access record
    reach           their parents, or all their ancestors, as the step says
    word of a child reach & position record of the child; nothing left, nothing below is looked at
    terminal •      a match, if the step is //, or if the word has bit 0: the root element

    codes        record << 5 | WIDE | LAST | LEAF | TERMINAL | DESCENDANT, brothers side by side, LAST ends them
    first_child  where a node's children start in all of these arrays
    targets      what a terminal node stands for
    parents      the way back from a terminal to its family, for those who want to know the path
    roots        record * 2 + DESCENDANT: the node at the top of a family
    wide         where the groups of 1,024 brothers or more start and end; their first brothers are marked WIDE

The walk goes in breadth, 64 nodes at a time, and asks the cache for what the next round reads: at a million
subscriptions a trial of it went from about 4 to 1.8 ms a document. Brothers are sorted by record, and are looked at
one after the other, but not in a wide group: a million of //quote[@symbol = …]/price are brothers. If the block has
few position records, each is searched for among them.
"""

from typing import NamedTuple

import numpy as np

from sievecore.bits import lowest_bit, prefetch
from sievecore.hashing import SEED, mix, new_slots
from sievecore.jit import builder, kernel
from sievecore.rows import Rows
from sievecore.tables import columns
from xpathfilter.records import BLOCK_NODES, N_BLOCKS
from xpathfilter.terminals import note_found

__all__ = [
    "SuffixFamilies",
    "SuffixWalker",
    "build_suffix_families",
    "first_of_record",
    "match_suffix",
    "new_suffix_walker",
    "path_lengths",
    "suffix_paths",
    "wide_group",
]

DESCENDANT, TERMINAL, LEAF, LAST, WIDE = 1, 2, 4, 8, 16
RECORD_SHIFT = 5
WINDOW = 64

WIDE_SIZE = 1024
SEARCH_COST = 128
"""So many brothers are looked at in the time of one search, which waits for memory at each of its steps."""

BROTHERS = columns("first", "end")


class SuffixFamilies(NamedTuple):
    """All families of a segment; see the picture above. Node 0 is nobody's: it stands above the roots."""

    codes: np.ndarray
    first_child: np.ndarray
    parents: np.ndarray
    targets: np.ndarray
    roots: np.ndarray
    wide: np.ndarray


class SuffixWalker(NamedTuple):
    """Working memory of one thread in phase 2. `words` and `marks` are all zero between documents."""

    words: np.ndarray  # the position records of the block at hand
    queue_nodes: np.ndarray
    queue_words: np.ndarray
    marks: np.ndarray  # one bit a node: found in this document
    found: np.ndarray  # the nodes whose bit is set
    n_found: np.ndarray


def new_suffix_walker(families: SuffixFamilies) -> SuffixWalker:
    """Working memory for these families."""
    n_nodes = len(families.codes)
    return SuffixWalker(
        words=np.zeros(len(families.roots) // 2, np.uint64),
        queue_nodes=np.empty(n_nodes, np.int32),
        queue_words=np.empty(n_nodes, np.uint64),
        marks=np.zeros(n_nodes // 64 + 1, np.uint64),
        found=np.empty(n_nodes, np.int32),
        n_found=np.zeros(1, np.int64),
    )


def build_suffix_families(rows: Rows, n_records: int) -> tuple[SuffixFamilies, np.ndarray]:
    """Build the families of the rows, and tell the terminal node of each row."""
    terminal = np.empty(rows.n_rows, np.int32)
    parent, step = _build_trie(rows, new_slots(len(rows.values) + 1), terminal)
    is_terminal = np.zeros(len(parent), np.bool_)
    is_terminal[terminal] = True
    codes, first_child, parents, place = _lay_out(parent, step, is_terminal, 2 * n_records)
    roots = np.full(2 * n_records, -1, np.int32)
    if len(codes) > 1:
        top = np.arange(first_child[0], np.flatnonzero(codes[first_child[0] :] & LAST)[0] + first_child[0] + 1)
        roots[(codes[top] >> RECORD_SHIFT) * 2 + (codes[top] & DESCENDANT)] = top
    targets = np.full(len(codes), -1, np.int32)
    return SuffixFamilies(codes, first_child, parents, targets, roots, _wide_groups(codes)), place[terminal]


def _wide_groups(codes: np.ndarray) -> np.ndarray:
    """Mark the first brother of each wide group, and tell where they all are."""
    ends = np.flatnonzero(codes & LAST) + 1
    starts = np.concatenate([[1], ends[:-1]])[: len(ends)]
    is_wide = ends - starts >= WIDE_SIZE
    groups = np.zeros(int(is_wide.sum()), BROTHERS)
    groups["first"], groups["end"] = starts[is_wide], ends[is_wide]
    codes[groups["first"]] |= WIDE
    return groups


@builder
def _build_trie(rows, slots, terminal):
    """Enter each row; nodes are numbered as they appear, so a parent's number is below its children's."""
    steps = rows.values
    parent = np.empty(len(steps) + 1, np.int32)
    step = np.empty(len(steps) + 1, np.int32)
    parent[0], step[0] = -1, -1
    n_nodes = 1
    mask = np.uint64(len(slots) - 1)
    for row in range(len(terminal)):
        node = np.int32(0)
        for i in range(rows.start[row], rows.start[row + 1]):
            place = mix(mix(SEED, node), steps[i]) & mask
            while slots[place] >= 0 and (parent[slots[place]] != node or step[slots[place]] != steps[i]):
                place = (place + np.uint64(1)) & mask
            if slots[place] < 0:
                slots[place] = n_nodes
                parent[n_nodes], step[n_nodes] = node, steps[i]
                n_nodes += 1
            node = slots[place]
        terminal[row] = node
    return parent[:n_nodes].copy(), step[:n_nodes].copy()


@builder
def _lay_out(parent, step, is_terminal, n_steps):
    """Number the nodes anew: brothers side by side and sorted, a subtree in one stretch."""
    n_nodes = len(parent)
    children, child_start = _children_sorted(parent, step, n_steps)
    codes = np.zeros(n_nodes, np.int32)
    first_child = np.zeros(n_nodes, np.int32)
    parents = np.full(n_nodes, -1, np.int32)
    place = np.zeros(n_nodes, np.int32)
    waiting = np.empty(n_nodes, np.int32)
    waiting[0], n_waiting, n_placed = 0, 1, 1
    while n_waiting:
        n_waiting -= 1
        node = waiting[n_waiting]
        start, end = child_start[node], child_start[node + 1]
        first_child[place[node]] = n_placed
        for i in range(start, end):
            child = children[i]
            code = (step[child] >> 1) << RECORD_SHIFT | (step[child] & 1)
            code |= TERMINAL if is_terminal[child] else 0
            code |= LEAF if child_start[child] == child_start[child + 1] else 0
            code |= LAST if i == end - 1 else 0
            place[child] = n_placed
            codes[n_placed], parents[n_placed] = code, place[node]
            n_placed += 1
        for i in range(end - 1, start - 1, -1):
            waiting[n_waiting] = children[i]
            n_waiting += 1
    return codes, first_child, parents, place


@builder
def _children_sorted(parent, step, n_steps):
    """The children of each node, by step: two counting sorts, by step and then by parent."""
    n_nodes = len(parent)
    step_start = np.zeros(n_steps + 1, np.int64)
    child_start = np.zeros(n_nodes + 1, np.int64)
    for node in range(1, n_nodes):
        step_start[step[node] + 1] += 1
        child_start[parent[node] + 1] += 1
    for i in range(n_steps):
        step_start[i + 1] += step_start[i]
    for i in range(n_nodes):
        child_start[i + 1] += child_start[i]
    by_step = np.empty(n_nodes - 1, np.int32)
    for node in range(1, n_nodes):
        by_step[step_start[step[node]]] = node
        step_start[step[node]] += 1
    children = np.empty(n_nodes - 1, np.int32)
    next_place = child_start.copy()
    for child in by_step:
        children[next_place[parent[child]]] = child
        next_place[parent[child]] += 1
    return children, child_start


@builder
def path_lengths(families, terminals):
    """How many steps the path of each terminal has."""
    lengths = np.zeros(len(terminals), np.int64)
    for i in range(len(terminals)):
        node = terminals[i]
        while node > 0:
            lengths[i] += 1
            node = families.parents[node]
    return lengths


@builder
def suffix_paths(families, terminals, row_start):
    """The steps of each terminal's path, as `build_suffix_families` took them."""
    steps = np.empty(row_start[len(terminals)], np.int32)
    for i in range(len(terminals)):
        node, place = terminals[i], row_start[i + 1]
        while node > 0:
            place -= 1
            code = families.codes[node]
            steps[place] = (code >> RECORD_SHIFT) << 1 | (code & DESCENDANT)
            node = families.parents[node]
    return steps


@kernel
def match_suffix(families, blocks, walker):
    """Walk the families of each block's records."""
    for block in range(blocks.counts[N_BLOCKS]):
        _load(blocks, block, walker.words, True)
        _walk(families, blocks, block, walker)
        _load(blocks, block, walker.words, False)


@kernel
def _load(blocks, block, words, present):
    for i in range(blocks.blocks[block].pair_start, blocks.blocks[block].pair_end):
        pair = blocks.pairs[i]
        words[pair.record] = pair.word if present else np.uint64(0)


@kernel
def _walk(families, blocks, block, walker):
    nodes, node_words = walker.queue_nodes, walker.queue_words
    first_bit = block * BLOCK_NODES
    head, tail = 0, _wake_families(families, blocks, blocks.blocks[block], walker)
    while head < tail:
        end = min(tail, head + WINDOW)
        for i in range(head, end):
            to_ancestors = families.codes[nodes[i]] & DESCENDANT != 0
            nodes[i] = families.first_child[nodes[i]]
            node_words[i] = _reached(blocks.relatives, first_bit, node_words[i], to_ancestors)
            prefetch(families.codes, np.int64(nodes[i]))
        for i in range(head, end):
            if node_words[i]:
                tail = _meet_children(families, blocks, blocks.blocks[block], walker, nodes[i], node_words[i], tail)
        head = end


@kernel
def _wake_families(families, blocks, of_block, walker):
    """Queue the families of the block's records; return how many were queued."""
    tail = 0
    for i in range(of_block.pair_start, of_block.pair_end):
        pair = blocks.pairs[i]
        word = pair.word & of_block.fresh
        if word:
            for side in range(2):
                root = families.roots[2 * pair.record + side]
                if root >= 0:
                    tail = _meet(families, walker, root, families.codes[root], word, tail)
    return tail


@kernel
def _reached(relatives, first_bit, word, to_ancestors):
    """The parents, or all ancestors, of the nodes in `word`."""
    reach = np.uint64(0)
    while word:
        of_node = relatives[first_bit + np.int64(lowest_bit(word))]
        reach |= of_node.ancestors if to_ancestors else of_node.parent
        word &= word - np.uint64(1)
    return reach


@kernel
def _meet_children(families, blocks, of_block, walker, child, reach, tail):
    if families.codes[child] & WIDE:
        brothers = wide_group(families, child)
        if (of_block.pair_end - of_block.pair_start) * SEARCH_COST < brothers.end - brothers.first:
            return _seek_children(families, blocks, of_block, walker, brothers, reach, tail)
    while True:
        code = families.codes[child]
        word = walker.words[code >> RECORD_SHIFT] & reach
        if word:
            tail = _meet(families, walker, child, code, word, tail)
        if code & LAST:
            return tail
        child += 1


@kernel
def wide_group(families, first):
    """The wide group that starts with the node `first`."""
    low, high = 0, len(families.wide) - 1
    while low < high:
        middle = (low + high) // 2
        if families.wide[middle].first < first:
            low = middle + 1
        else:
            high = middle
    return families.wide[low]


@kernel
def _seek_children(families, blocks, of_block, walker, brothers, reach, tail):
    """Meet the children of a wide group that satisfy a record of the block."""
    for i in range(of_block.pair_start, of_block.pair_end):
        pair = blocks.pairs[i]
        word = pair.word & reach
        if word:
            child = first_of_record(families, brothers.first, brothers.end, pair.record)
            while child < brothers.end and families.codes[child] >> RECORD_SHIFT == pair.record:
                tail = _meet(families, walker, child, families.codes[child], word, tail)
                child += 1
    return tail


@kernel
def first_of_record(families, first, end, record):
    """The first brother from `first` on that has this record or a higher one, or `end`."""
    while first < end:
        middle = (first + end) // 2
        if families.codes[middle] >> RECORD_SHIFT < record:
            first = middle + 1
        else:
            end = middle
    return first


@kernel
def _meet(families, walker, node, code, word, tail):
    """Note a match at a satisfied node, and queue it if it has children."""
    if code & TERMINAL and (code & DESCENDANT or word & np.uint64(1)):
        note_found(walker, node)
    if not code & LEAF:
        prefetch(families.first_child, np.int64(node))
        walker.queue_nodes[tail] = node
        walker.queue_words[tail] = word
        tail += 1
    return tail
