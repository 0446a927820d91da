"""Phase 1: a flat document becomes position records.

DeltaFilter's position record has a bit for each depth of one open path. Ours has a bit for each node of a
**block**, a connected piece of the document of up to 64 nodes, so that phase 2 looks at a family once a block
and not once a path:

    <a><b i="1"><c/></b><b i="1"><d/></b><b/></a>

    merged tree     a ─┬─ b[@i=1] ─┬─ c        bit    0  1        2  3  4
                       │           └─ d        node   a  b[@i=1]  c  d  b
                       └─ b                    records   a 00001   b 10010   b[@i=1] 00010   c 00100 ...

    parents of {c, d} = {b[@i=1]}: parent_word[2] | parent_word[3]
    ancestors         = {a, b[@i=1]}: ancestors_word[2] | ancestors_word[3]

Before that, siblings that satisfy the same records are **merged** into one node, and their children with them:
no chain of steps can tell them apart. Of a thousand rows of a table, those that no predicate singles out
become one. A document larger than 64 merged nodes is cut in document order; each further block starts with the
path that leads to it, which takes part as ancestors but is not *fresh*, so nothing starts from it twice.

A task is some of a block's (record, word) pairs; it wakes the families of those records.
"""

from typing import NamedTuple

import numpy as np

from sievecore.hashing import SEED, mix
from sievecore.jit import kernel
from xpathfilter.flatten import N_ELEMENTS, N_LEVELS, N_NAMES
from xpathfilter.values import ValueScratch, new_value_scratch, satisfied_records
from xpathfilter.vocabulary import Words, find_name

__all__ = ["BLOCK_NODES", "Blocks", "MergedTree", "RecordScratch", "find_records", "grown", "new_record_scratch"]

BLOCK_NODES = 64
WILDCARD = np.array([ord("*")], np.uint8)

# Cells of `MergedTree.counts`.
N_NODES, N_NODE_RECORDS, MERGE_STAMP = range(3)
# Cells of `Blocks.counts`.
N_BLOCKS, N_PAIRS, N_TASKS = range(3)

OK, FULL_NODES, FULL_NODE_RECORDS, FULL_NAMES, FULL_BLOCKS, FULL_PAIRS = range(6)


class MergedTree(NamedTuple):
    """The document's elements, merged; node 0 is the root element."""

    counts: np.ndarray
    node_of_element: np.ndarray
    parent: np.ndarray
    depth: np.ndarray
    first_child: np.ndarray
    last_child: np.ndarray
    next_sibling: np.ndarray
    record_start: np.ndarray  # the records node i satisfies are [record_start[i], record_start[i + 1])
    records: np.ndarray
    slots: np.ndarray  # a hash table from (parent, records) to node
    slot_stamp: np.ndarray
    names: np.ndarray  # the vocabulary's number of each name of the document, or -1
    wildcard_names: np.ndarray  # the same for {uri}*


class Blocks(NamedTuple):
    """The position records of a document, block by block."""

    counts: np.ndarray
    parent_word: np.ndarray  # block * 64 + bit: the bit of its parent
    ancestors_word: np.ndarray  # block * 64 + bit: the bits of all its ancestors
    fresh: np.ndarray  # the bits that are not in an earlier block
    pair_start: np.ndarray
    pair_record: np.ndarray
    pair_word: np.ndarray
    task_block: np.ndarray
    task_start: np.ndarray  # the pairs of a task are [task_start, task_end)
    task_end: np.ndarray
    bit_of_node: np.ndarray


class RecordScratch(NamedTuple):
    """Working memory of phase 1 for one thread and one vocabulary."""

    values: ValueScratch
    tree: MergedTree
    blocks: Blocks
    words: np.ndarray  # a position record for each record number; all zero between blocks
    touched: np.ndarray


def new_record_scratch(words: Words, rows: int = 256) -> RecordScratch:
    """Working memory with room for documents of about `rows` elements (a power of two)."""
    n_records = len(words.record_name)
    return RecordScratch(
        new_value_scratch(words),
        _new_tree(rows, 8 * rows + n_records),
        _new_blocks(rows, 16 * rows),
        np.zeros(n_records, np.uint64),
        np.zeros(n_records, np.int32),
    )


def _new_tree(rows: int, n_node_records: int) -> MergedTree:
    columns = {field: np.zeros(rows, np.int32) for field in MergedTree._fields}
    return MergedTree(
        **columns
        | {
            "counts": np.zeros(3, np.int64),
            "record_start": np.zeros(rows + 1, np.int32),
            "records": np.zeros(n_node_records, np.int32),
            "slots": np.zeros(2 * rows, np.int32),
            "slot_stamp": np.zeros(2 * rows, np.int64),
        }
    )


def _new_blocks(rows: int, n_pairs: int) -> Blocks:
    n_blocks = max(4, rows // 16)
    words = {field: np.zeros(n_blocks * BLOCK_NODES, np.uint64) for field in ("parent_word", "ancestors_word")}
    tasks = {field: np.zeros(n_pairs, np.int32) for field in ("task_block", "task_start", "task_end")}
    return Blocks(
        counts=np.zeros(3, np.int64),
        fresh=np.zeros(n_blocks, np.uint64),
        pair_start=np.zeros(n_blocks + 1, np.int32),
        pair_record=np.zeros(n_pairs, np.int32),
        pair_word=np.zeros(n_pairs, np.uint64),
        bit_of_node=np.zeros(rows, np.int32),
        **words,
        **tasks,
    )


def grown(scratch: RecordScratch, code: int) -> RecordScratch:
    """The scratch with twice the room for what phase 1 reported full."""
    tree, blocks = scratch.tree, scratch.blocks
    if code == FULL_NODES:
        rows = 2 * len(tree.parent)
        fresh = _new_tree(rows, len(tree.records))._replace(names=tree.names, wildcard_names=tree.wildcard_names)
        return scratch._replace(tree=fresh, blocks=blocks._replace(bit_of_node=np.zeros(rows, np.int32)))
    if code == FULL_NODE_RECORDS:
        return scratch._replace(tree=tree._replace(records=np.zeros(2 * len(tree.records), np.int32)))
    if code == FULL_NAMES:
        names = {field: np.zeros(2 * len(tree.names), np.int32) for field in ("names", "wildcard_names")}
        return scratch._replace(tree=tree._replace(**names))
    rows = len(tree.parent)
    factor = {FULL_BLOCKS: (2, 1), FULL_PAIRS: (1, 2)}[code]
    larger = _new_blocks(factor[0] * len(blocks.fresh) * 16, factor[1] * len(blocks.pair_word))
    return scratch._replace(blocks=larger._replace(bit_of_node=np.zeros(rows, np.int32)))


@kernel
def find_records(words, scratch, flat, merging, pairs_per_task):
    """Phase 1 as a whole; with `merging`, elements are merged and, unless too deep, cut into blocks of tasks."""
    code = merge_elements(words, scratch, flat, merging)
    if code == OK and merging and flat.counts[N_LEVELS] <= BLOCK_NODES:
        code = cut_blocks(scratch, pairs_per_task)
    return code


@kernel
def merge_elements(words, scratch, flat, merging):
    """Fill the merged tree; without `merging` each element keeps a node of its own. Return OK or what is full."""
    tree = scratch.tree
    n_elements = flat.counts[N_ELEMENTS]
    if n_elements > len(tree.parent):
        return FULL_NODES
    if flat.counts[N_NAMES] > len(tree.names):
        return FULL_NAMES
    _translate_names(words, flat, tree)
    tree.counts[N_NODES] = 0
    tree.counts[N_NODE_RECORDS] = 0
    tree.counts[MERGE_STAMP] += 1
    for element in range(n_elements):
        start = tree.counts[N_NODE_RECORDS]
        if start + len(words.record_name) > len(tree.records):
            return FULL_NODE_RECORDS
        end = _find_records(words, scratch.values, flat, tree, element, start)
        parent = flat.parent[element]
        if parent >= 0:
            parent = tree.node_of_element[parent]
        tree.node_of_element[element] = _node(tree, parent, flat.depth[element], start, end, merging)
    return OK


@kernel
def _translate_names(words, flat, tree):
    text = flat.name_text
    for i in range(flat.counts[N_NAMES]):
        uri = flat.name_uri_start[i], flat.name_uri_end[i]
        tree.names[i] = find_name(words, text, uri[0], uri[1], text, flat.name_local_start[i], flat.name_local_end[i])
        tree.wildcard_names[i] = -1
        if uri[0] < uri[1]:
            tree.wildcard_names[i] = find_name(words, text, uri[0], uri[1], WILDCARD, 0, 1)


@kernel
def _find_records(words, values, flat, tree, element, n_records):
    """Append the element's records for its name, for {uri}* and for *."""
    name = tree.names[flat.name[element]]
    if name >= 0:
        n_records = satisfied_records(words, values, flat, tree.names, element, name, tree.records, n_records)
    name = tree.wildcard_names[flat.name[element]]
    if name >= 0:
        n_records = satisfied_records(words, values, flat, tree.names, element, name, tree.records, n_records)
    return satisfied_records(words, values, flat, tree.names, element, 0, tree.records, n_records)


@kernel
def _node(tree, parent, depth, start, end, merging):
    """The node for an element with these records below `parent`: one that is there, or a new one."""
    mask = np.uint64(len(tree.slots) - 1)
    place = mix(SEED, parent)
    for i in range(start, end):
        place = mix(place, tree.records[i])
    place &= mask
    while merging and tree.slot_stamp[place] == tree.counts[MERGE_STAMP]:
        node = tree.slots[place]
        if tree.parent[node] == parent and _same_records(tree, node, start, end):
            return node
        place = (place + np.uint64(1)) & mask
    node = np.int32(tree.counts[N_NODES])
    tree.slots[place], tree.slot_stamp[place] = node, tree.counts[MERGE_STAMP]
    tree.counts[N_NODES] += 1
    tree.counts[N_NODE_RECORDS] = end
    tree.record_start[node], tree.record_start[node + 1] = start, end
    tree.parent[node], tree.depth[node] = parent, depth
    tree.first_child[node] = tree.last_child[node] = tree.next_sibling[node] = -1
    if parent >= 0:
        if tree.first_child[parent] < 0:
            tree.first_child[parent] = node
        else:
            tree.next_sibling[tree.last_child[parent]] = node
        tree.last_child[parent] = node
    return node


@kernel
def _same_records(tree, node, start, end):
    first = tree.record_start[node]
    if tree.record_start[node + 1] - first != end - start:
        return False
    for i in range(end - start):
        if tree.records[first + i] != tree.records[start + i]:
            return False
    return True


@kernel
def next_node(tree, node):
    """The node after `node` in document order, or -1."""
    if tree.first_child[node] >= 0:
        return tree.first_child[node]
    while node >= 0 and tree.next_sibling[node] < 0:
        node = tree.parent[node]
    return tree.next_sibling[node] if node >= 0 else node


@kernel
def cut_blocks(scratch, pairs_per_task):
    """Cut the merged tree, no deeper than 64, into blocks and tasks. Return OK or what is full."""
    tree, blocks = scratch.tree, scratch.blocks
    blocks.counts[:] = 0
    node, used, n_touched = np.int32(0), 0, 0
    while node >= 0:
        if used == BLOCK_NODES:
            if _close_block(scratch, n_touched, pairs_per_task) != OK:
                return FULL_PAIRS
            used = n_touched = 0
        if used == 0:
            if blocks.counts[N_BLOCKS] == len(blocks.fresh):
                return FULL_BLOCKS
            used, n_touched = _open_block(scratch, tree.parent[node])
        n_touched = _place(scratch, node, used, n_touched)
        blocks.fresh[blocks.counts[N_BLOCKS]] |= np.uint64(1) << np.uint64(used)
        used += 1
        node = next_node(tree, node)
    return _close_block(scratch, n_touched, pairs_per_task)


@kernel
def _open_block(scratch, last_ancestor):
    """Start a block with the path to `last_ancestor`, a node at depth n on bit n."""
    tree, blocks = scratch.tree, scratch.blocks
    blocks.fresh[blocks.counts[N_BLOCKS]] = 0
    if last_ancestor < 0:
        return 0, 0
    first = blocks.counts[N_BLOCKS] * BLOCK_NODES
    node, n_touched = last_ancestor, 0
    while node >= 0:
        bit = tree.depth[node]
        blocks.bit_of_node[node] = bit
        blocks.ancestors_word[first + bit] = (np.uint64(1) << np.uint64(bit)) - np.uint64(1)
        blocks.parent_word[first + bit] = (np.uint64(1) << np.uint64(bit)) >> np.uint64(1)
        n_touched = _set_bits(scratch, node, bit, n_touched)
        node = tree.parent[node]
    return tree.depth[last_ancestor] + 1, n_touched


@kernel
def _place(scratch, node, bit, n_touched):
    scratch.blocks.bit_of_node[node] = bit
    _link(scratch, node, bit)
    return _set_bits(scratch, node, bit, n_touched)


@kernel
def _link(scratch, node, bit):
    """Note the parent and the ancestors of a node whose parent has its bit."""
    blocks = scratch.blocks
    first = blocks.counts[N_BLOCKS] * BLOCK_NODES
    parent = scratch.tree.parent[node]
    blocks.parent_word[first + bit] = blocks.ancestors_word[first + bit] = 0
    if parent >= 0:
        parent_bit = blocks.bit_of_node[parent]
        parent_word = np.uint64(1) << np.uint64(parent_bit)
        blocks.parent_word[first + bit] = parent_word
        blocks.ancestors_word[first + bit] = blocks.ancestors_word[first + parent_bit] | parent_word


@kernel
def _set_bits(scratch, node, bit, n_touched):
    tree, words = scratch.tree, scratch.words
    for i in range(tree.record_start[node], tree.record_start[node + 1]):
        record = tree.records[i]
        if words[record] == 0:
            scratch.touched[n_touched] = record
            n_touched += 1
        words[record] |= np.uint64(1) << np.uint64(bit)
    return n_touched


@kernel
def _close_block(scratch, n_touched, pairs_per_task):
    """Move the block's position records into pairs, and make tasks of them."""
    blocks, words = scratch.blocks, scratch.words
    block, first = blocks.counts[N_BLOCKS], blocks.counts[N_PAIRS]
    full = first + n_touched > len(blocks.pair_word)
    for i in range(n_touched):
        record = scratch.touched[i]
        if not full:
            blocks.pair_record[first + i] = record
            blocks.pair_word[first + i] = words[record]
        words[record] = 0
    if full:
        return FULL_PAIRS
    blocks.counts[N_PAIRS] = first + n_touched
    blocks.pair_start[block], blocks.pair_start[block + 1] = first, first + n_touched
    for start in range(first, first + n_touched, pairs_per_task):
        task = blocks.counts[N_TASKS]
        blocks.task_block[task] = block
        blocks.task_start[task] = start
        blocks.task_end[task] = min(start + pairs_per_task, first + n_touched)
        blocks.counts[N_TASKS] += 1
    blocks.counts[N_BLOCKS] += 1
    return OK
