"""Phase 1: a flat document becomes position records.

DeltaFilter's position record has a bit for each depth of one open path. Ours has a bit for each node of a
**block**, a connected piece of the document of up to 64 nodes, so that phase 2 looks at a family once a block
and not once a path:

    <a><b i="1"><c/></b><b i="1"><d/></b><b/></a>

    merged tree     a ─┬─ b[@i=1] ─┬─ c        bit    0  1        2  3  4
                       │           └─ d        node   a  b[@i=1]  c  d  b
                       └─ b                    records   a 00001   b 10010   b[@i=1] 00010   c 00100 ...

    parents of {c, d}   = relatives[2].parent | relatives[3].parent = {b[@i=1]}
    ancestors of {c, d} = relatives[2].ancestors | relatives[3].ancestors = {a, b[@i=1]}

Before that, siblings that satisfy the same records are **merged** into one node, and their children with them:
no chain of steps can tell them apart. Of a thousand rows of a table, those that no predicate singles out
become one. A document larger than 64 merged nodes is cut in document order; each further block starts with the
path that leads to it, which takes part as ancestors but is not *fresh*, so nothing starts from it twice.

Phase 1 is for all elements or for a part of them, a stretch in document order. The path that leads to a part comes
first in its tree and is not fresh either. (An element that merges with a node of that path needs no start of its own:
that node was fresh where the path was.)
"""

from typing import Any, NamedTuple

import numpy as np

from sievecore.hashing import SEED, mix
from sievecore.jit import kernel
from sievecore.tables import columns
from xpathfilter.flatten import N_ELEMENTS, N_LEVELS, N_NAMES
from xpathfilter.values import ValueScratch, new_value_scratch, satisfied_records
from xpathfilter.words import Words, find_name

__all__ = ["BLOCK_NODES", "Blocks", "MergedTree", "RecordScratch", "find_records", "grown", "new_record_scratch"]

BLOCK_NODES = 64
WILDCARD = np.array([ord("*")], np.uint8)

# Cells of `MergedTree.counts`.
N_NODES, N_PATH, MERGE_STAMP = range(3)
# Cells of `Blocks.counts`.
N_BLOCKS, N_PAIRS = range(2)

OK, FULL_NODES, FULL_NODE_RECORDS, FULL_NAMES, FULL_BLOCKS, FULL_PAIRS = range(6)


NODE = columns("parent", "depth", "first_child", "last_child", "next_sibling", "record_start", "record_end")
"""A node satisfies records[record_start:record_end]; -1 is no node."""
SLOT = columns("node", stamp=np.int64)
TRANSLATION = columns("exact", "wildcard")
"""The vocabulary's number of a name of the document and of {its uri}*, or -1."""

RELATIVES = np.dtype([("parent", np.uint64), ("ancestors", np.uint64)])
BLOCK = columns("pair_start", "pair_end", fresh=np.uint64)
PAIR = columns("record", word=np.uint64)


class MergedTree(NamedTuple):
    """Elements, merged; node 0 is the root element, and the first nodes are the path that leads to a part."""

    counts: np.ndarray
    nodes: np.ndarray
    node_of_element: np.ndarray
    records: np.ndarray
    slots: np.ndarray  # a hash table from (parent, records) to node
    names: np.ndarray


class Blocks(NamedTuple):
    """The position records of a document, block by block."""

    counts: np.ndarray
    blocks: np.ndarray  # `fresh`: the bits that are not in an earlier block
    relatives: np.ndarray  # of block * 64 + bit: the bit of its parent, the bits of its ancestors
    pairs: np.ndarray
    bit_of_node: np.ndarray


class RecordScratch(NamedTuple):
    """Working memory of phase 1 for one thread and one vocabulary."""

    values: ValueScratch
    tree: MergedTree
    blocks: Blocks
    words: np.ndarray  # a position record for each record number; all zero between blocks
    touched: np.ndarray


def new_record_scratch(words: Words) -> RecordScratch:
    """Working memory for small documents; it grows with what it meets."""
    n_records = words.n_records
    tree = MergedTree(
        counts=np.zeros(3, np.int64),
        nodes=np.zeros(256, NODE),
        node_of_element=np.zeros(256, np.int32),
        records=np.zeros(2048 + n_records, np.int32),
        slots=np.zeros(512, SLOT),
        names=np.zeros(64, TRANSLATION),
    )
    blocks = Blocks(
        counts=np.zeros(2, np.int64),
        blocks=np.zeros(8, BLOCK),
        relatives=np.zeros(8 * BLOCK_NODES, RELATIVES),
        pairs=np.zeros(2048, PAIR),
        bit_of_node=np.zeros(256, np.int32),
    )
    return RecordScratch(
        new_value_scratch(words), tree, blocks, np.zeros(n_records, np.uint64), np.zeros(n_records, np.int32)
    )


GROWING = {
    FULL_NODES: ({"nodes", "node_of_element", "slots"}, {"bit_of_node"}),
    FULL_NODE_RECORDS: ({"records"}, set[str]()),
    FULL_NAMES: ({"names"}, set[str]()),
    FULL_BLOCKS: (set[str](), {"blocks", "relatives"}),
    FULL_PAIRS: (set[str](), {"pairs"}),
}


def grown(scratch: RecordScratch, code: int) -> RecordScratch:
    """The scratch with twice the room for what phase 1 reported full."""

    def larger(part: Any, fields: set[str]) -> Any:
        arrays = {field: getattr(part, field) for field in fields}
        return part._replace(**{field: np.zeros(2 * len(array), array.dtype) for field, array in arrays.items()})

    of_tree, of_blocks = GROWING[code]
    return scratch._replace(tree=larger(scratch.tree, of_tree), blocks=larger(scratch.blocks, of_blocks))


@kernel
def find_records(words, scratch, flat, merging, first, end):
    """Phase 1 of the elements from `first` to `end`; return OK or what is full.

    With `merging`, elements are merged and, unless too deep, cut into blocks.
    """
    code = _merge_elements(words, scratch, flat, merging, first, end)
    if code == OK and merging and flat.counts[N_LEVELS] <= BLOCK_NODES:
        code = _cut_blocks(scratch)
    return code


@kernel
def _merge_elements(words, scratch, flat, merging, first, end):
    """Fill the merged tree; without `merging` each element keeps a node of its own. Return OK or what is full."""
    tree = scratch.tree
    if flat.counts[N_ELEMENTS] > len(tree.nodes):
        return FULL_NODES
    if flat.counts[N_NAMES] > len(tree.names):
        return FULL_NAMES
    _translate_names(words, flat, tree.names)
    tree.counts[N_NODES] = 0
    tree.counts[MERGE_STAMP] += 1
    n_records = _add_path(words, scratch, flat, merging, flat.elements[first].parent)
    tree.counts[N_PATH] = tree.counts[N_NODES]
    for element in range(first, end):
        if n_records >= 0:
            n_records = _add_element(words, scratch, flat, merging, element, n_records)
    return OK if n_records >= 0 else FULL_NODE_RECORDS


@kernel
def _add_path(words, scratch, flat, merging, last):
    """Add the elements from the root down to `last`; return how many records they have, or -1 if there is no room."""
    way_down = scratch.tree.node_of_element  # of the elements on the path, until their nodes are known
    below = np.int32(-1)
    while last >= 0:
        way_down[last] = below
        below, last = last, flat.elements[last].parent
    n_records, element = np.int64(0), below
    while element >= 0 and n_records >= 0:
        below = way_down[element]
        n_records = _add_element(words, scratch, flat, merging, element, n_records)
        element = below
    return n_records


@kernel
def _add_element(words, scratch, flat, merging, element, start):
    """Find the node of an element whose parent has one; return how many records there are now, or -1."""
    tree = scratch.tree
    if start + len(words.record_start) > len(tree.records):
        return np.int64(-1)
    end = np.int64(_find_element_records(words, scratch.values, flat, tree, element, start))
    above = flat.elements[element].parent
    parent = tree.node_of_element[above] if above >= 0 else np.int32(-1)
    n_nodes = tree.counts[N_NODES]
    tree.node_of_element[element] = _node(tree, parent, flat.elements[element].depth, start, end, merging)
    return end if tree.counts[N_NODES] > n_nodes else np.int64(start)


@kernel
def _translate_names(words, flat, names):
    text = flat.name_text
    for i in range(flat.counts[N_NAMES]):
        name = flat.names[i]
        names[i].exact = find_name(words, text, name.uri_start, name.uri_end, text, name.local_start, name.local_end)
        names[i].wildcard = -1
        if name.uri_start < name.uri_end:
            names[i].wildcard = find_name(words, text, name.uri_start, name.uri_end, WILDCARD, 0, 1)


@kernel
def _find_element_records(words, values, flat, tree, element, n_records):
    """Append the element's records for its name, for {uri}* and for *."""
    translation = tree.names[flat.elements[element].name]
    for name in (translation.exact, translation.wildcard, np.int32(0)):
        if name >= 0:
            n_records = satisfied_records(words, values, flat, tree.names, element, name, tree.records, n_records)
    return n_records


@kernel
def _node(tree, parent, depth, start, end, merging):
    """The node for an element with these records below `parent`: one that is there, or a new one."""
    mask = np.uint64(len(tree.slots) - 1)
    place = mix(SEED, parent)
    for i in range(start, end):
        place = mix(place, tree.records[i])
    place &= mask
    stamp = tree.counts[MERGE_STAMP]
    while merging and tree.slots[place].stamp == stamp:
        number = tree.slots[place].node
        if tree.nodes[number].parent == parent and _same_records(tree, number, start, end):
            return number
        place = (place + np.uint64(1)) & mask
    number = np.int32(tree.counts[N_NODES])
    tree.counts[N_NODES] += 1
    tree.slots[place].node, tree.slots[place].stamp = number, stamp
    node = tree.nodes[number]
    node.parent, node.depth = parent, depth
    node.first_child = node.last_child = node.next_sibling = -1
    node.record_start, node.record_end = start, end
    if parent >= 0:
        above = tree.nodes[parent]
        if above.first_child < 0:
            above.first_child = number
        else:
            tree.nodes[above.last_child].next_sibling = number
        above.last_child = number
    return number


@kernel
def _same_records(tree, number, start, end):
    node = tree.nodes[number]
    if node.record_end - node.record_start != end - start:
        return False
    for i in range(end - start):
        if tree.records[node.record_start + i] != tree.records[start + i]:
            return False
    return True


@kernel
def _cut_blocks(scratch):
    """Cut the merged tree, no deeper than 64, into blocks. Return OK or what is full."""
    nodes, blocks = scratch.tree.nodes, scratch.blocks
    blocks.counts[:] = 0
    number, used, n_touched = np.int32(0), 0, 0
    while number >= 0:
        if used == BLOCK_NODES:
            if _close_block(scratch, n_touched) != OK:
                return FULL_PAIRS
            used = 0
        if used == 0:
            if blocks.counts[N_BLOCKS] == len(blocks.blocks):
                return FULL_BLOCKS
            used, n_touched = _open_block(scratch, nodes[number].parent)
        n_touched = _place_node(scratch, number, used, n_touched)
        if number >= scratch.tree.counts[N_PATH]:
            blocks.blocks[blocks.counts[N_BLOCKS]].fresh |= np.uint64(1) << np.uint64(used)
        used += 1
        number = _next_node(nodes, number)
    return _close_block(scratch, n_touched)


@kernel
def _next_node(nodes, number):
    """The node after this one in document order, or -1."""
    if nodes[number].first_child >= 0:
        return nodes[number].first_child
    while number >= 0 and nodes[number].next_sibling < 0:
        number = nodes[number].parent
    return nodes[number].next_sibling if number >= 0 else number


@kernel
def _open_block(scratch, last_ancestor):
    """Start a block with the path to `last_ancestor`, a node at depth n on bit n; return bits used and touched."""
    nodes, blocks = scratch.tree.nodes, scratch.blocks
    block = blocks.counts[N_BLOCKS]
    blocks.blocks[block].fresh = 0
    if last_ancestor < 0:
        return 0, 0
    number, n_touched = last_ancestor, 0
    while number >= 0:
        bit = nodes[number].depth
        blocks.bit_of_node[number] = bit
        relatives = blocks.relatives[block * BLOCK_NODES + bit]
        relatives.parent = (np.uint64(1) << np.uint64(bit)) >> np.uint64(1)
        relatives.ancestors = (np.uint64(1) << np.uint64(bit)) - np.uint64(1)
        n_touched = _set_bits(scratch, number, bit, n_touched)
        number = nodes[number].parent
    return np.int64(nodes[last_ancestor].depth) + 1, n_touched


@kernel
def _place_node(scratch, number, bit, n_touched):
    """Give a bit to a node whose parent has one, if it has a parent."""
    blocks, parent = scratch.blocks, scratch.tree.nodes[number].parent
    first = blocks.counts[N_BLOCKS] * BLOCK_NODES
    blocks.bit_of_node[number] = bit
    relatives = blocks.relatives[first + bit]
    relatives.parent = relatives.ancestors = 0
    if parent >= 0:
        parent_bit = blocks.bit_of_node[parent]
        relatives.parent = np.uint64(1) << np.uint64(parent_bit)
        relatives.ancestors = blocks.relatives[first + parent_bit].ancestors | relatives.parent
    return _set_bits(scratch, number, bit, n_touched)


@kernel
def _set_bits(scratch, number, bit, n_touched):
    node, words = scratch.tree.nodes[number], scratch.words
    for i in range(node.record_start, node.record_end):
        record = scratch.tree.records[i]
        if words[record] == 0:
            scratch.touched[n_touched] = record
            n_touched += 1
        words[record] |= np.uint64(1) << np.uint64(bit)
    return n_touched


@kernel
def _close_block(scratch, n_touched):
    """Move the block's position records into pairs."""
    blocks, words = scratch.blocks, scratch.words
    number, first = blocks.counts[N_BLOCKS], blocks.counts[N_PAIRS]
    end = first + n_touched
    full = end > len(blocks.pairs)
    for i in range(n_touched):
        record = scratch.touched[i]
        if not full:
            pair = blocks.pairs[first + i]
            pair.record, pair.word = record, words[record]
        words[record] = 0
    if full:
        return FULL_PAIRS
    blocks.counts[N_PAIRS] = end
    blocks.blocks[number].pair_start, blocks.blocks[number].pair_end = first, end
    blocks.counts[N_BLOCKS] += 1
    return OK
