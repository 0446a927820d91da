"""Documents deeper than a word is wide: the same walks, one path at a time, with as many words as it takes.

A node's path has a bit for each depth, as in DeltaFilter, spread over `n_words` words of 64. The parents of a set
are its bits shifted down by one across words, the ancestors all bits below the highest one:

    depth            0 ····· 63 │ 64 ····· 127 │ 128 ··
    set              ·········· │ ···1·····1·· │ ······
    parents          ·········· │ ··1·····1··· │ ······
    ancestors        1111111111 │ 111111111··· │ ······

Nothing is shared between paths here, so such documents cost more; the answers are the same. In a wide group of
brothers the walk goes on to the next of the path's own records, instead of looking at each brother.
"""

from typing import NamedTuple

import numpy as np

from sievecore.jit import kernel
from xpathfilter.delta import DeltaFamilies
from xpathfilter.records import N_NODES
from xpathfilter.suffix import (
    DESCENDANT,
    LAST,
    LEAF,
    RECORD_SHIFT,
    TERMINAL,
    WIDE,
    SuffixFamilies,
    first_of_record,
    path_lengths,
    wide_group,
)
from xpathfilter.terminals import note_found

__all__ = ["DeepScratch", "match_delta_deep", "match_suffix_at", "match_suffix_deep", "new_deep_scratch"]

LOW = np.uint64(1)


class DeepScratch(NamedTuple):
    """Working memory: position records of several words, and a stack of sets for the walk."""

    words: np.ndarray  # a row for each record; all zero between documents
    sets: np.ndarray  # a row for each step of the longest path, and one more
    cursors: np.ndarray  # the child each level of the walk is at
    wide_ends: np.ndarray  # of each level: where its wide group of children ends, or -1
    live: np.ndarray  # the records of the path
    n_live: np.ndarray


def new_deep_scratch(families: SuffixFamilies | DeltaFamilies, n_records: int, n_levels: int) -> DeepScratch:
    """Working memory for documents of `n_levels`."""
    if isinstance(families, SuffixFamilies):
        longest = int(path_lengths(families, np.arange(len(families.codes), dtype=np.int32)).max())
    else:
        longest = int(families.cluster_size.max(initial=0))
    n_words = (n_levels + 63) // 64
    return DeepScratch(
        np.zeros((n_records, n_words), np.uint64),
        np.zeros((longest + 2, n_words), np.uint64),
        np.zeros(longest + 2, np.int32),
        np.zeros(longest + 2, np.int32),
        np.zeros(n_records, np.int32),
        np.zeros(1, np.int64),
    )


@kernel
def match_suffix_deep(families, tree, walker, deep):
    """Walk the families of each node's records back along that node's own path."""
    for node in range(tree.counts[N_NODES]):
        match_suffix_at(families, tree, node, walker, deep)


@kernel
def match_suffix_at(families, tree, node, walker, deep):
    """Walk the families of one node's records back along its path."""
    _set_path(tree, node, deep, True)
    for i in range(tree.nodes[node].record_start, tree.nodes[node].record_end):
        record = tree.records[i]
        for root in families.roots[2 * record : 2 * record + 2]:
            if root >= 0:
                deep.sets[0, :] = 0
                deep.sets[0, tree.nodes[node].depth >> 6] = LOW << np.uint64(tree.nodes[node].depth & 63)
                _walk(families, root, walker, deep)
    _set_path(tree, node, deep, False)


@kernel
def _walk(families, root, walker, deep):
    level = 0
    if _meet(families, root, walker, deep.sets[0]):
        _descend(families, root, deep, 0)
        level = 1
    while level:
        child = deep.cursors[level - 1]
        if child < 0:
            level -= 1
            continue
        code = families.codes[child]
        deep.cursors[level - 1] = _next_brother(families, deep, level - 1, child, code)
        _intersect(deep.sets[level - 1], deep.words[code >> RECORD_SHIFT], deep.sets[level])
        if not _is_empty(deep.sets[level]) and _meet(families, child, walker, deep.sets[level]):
            _descend(families, child, deep, level)
            level += 1


@kernel
def _descend(families, node, deep, level):
    """Put the cursor of a level on the first child of a node."""
    child = families.first_child[node]
    deep.cursors[level], deep.wide_ends[level] = child, -1
    if families.codes[child] & WIDE:
        brothers = wide_group(families, child)
        if deep.n_live[0] * deep.n_live[0] < brothers.end - brothers.first:
            deep.wide_ends[level] = brothers.end


@kernel
def _next_brother(families, deep, level, child, code):
    """The brother to look at after this one, or -1."""
    if code & LAST:
        return -1
    end = deep.wide_ends[level]
    if end < 0 or families.codes[child + 1] >> RECORD_SHIFT == code >> RECORD_SHIFT:
        return child + 1
    nearest = -1
    for i in range(deep.n_live[0]):
        if deep.live[i] > code >> RECORD_SHIFT and (nearest < 0 or deep.live[i] < nearest):
            nearest = deep.live[i]
    if nearest < 0:
        return -1
    child = first_of_record(families, child + 1, end, nearest)
    return child if child < end else -1


@kernel
def _meet(families, node, walker, word_set):
    """Note a match; turn the set into what it reaches. Return whether there is anything below to look at."""
    code = families.codes[node]
    if code & TERMINAL and (code & DESCENDANT or word_set[0] & LOW):
        note_found(walker, node)
    if code & LEAF:
        return False
    if code & DESCENDANT:
        _to_ancestors(word_set)
    else:
        _shift_down(word_set)
    return True


@kernel
def _is_empty(word_set):
    for word in word_set:
        if word:
            return False
    return True


@kernel
def _intersect(left, right, result):
    for i in range(len(result)):
        result[i] = left[i] & right[i]


@kernel
def _shift_down(word_set):
    for i in range(len(word_set)):
        above = word_set[i + 1] << np.uint64(63) if i + 1 < len(word_set) else np.uint64(0)
        word_set[i] = (word_set[i] >> LOW) | above


@kernel
def _to_ancestors(word_set):
    top = len(word_set) - 1
    while top >= 0 and word_set[top] == 0:
        top -= 1
    if top < 0:
        return
    word = word_set[top]
    for distance in (1, 2, 4, 8, 16, 32):
        word |= word >> np.uint64(distance)
    word_set[top] = word >> LOW
    word_set[:top] = ~np.uint64(0)


@kernel
def _set_path(tree, node, deep, present):
    deep.n_live[0] = 0
    while node >= 0:
        word, bit = tree.nodes[node].depth >> 6, LOW << np.uint64(tree.nodes[node].depth & 63)
        for i in range(tree.nodes[node].record_start, tree.nodes[node].record_end):
            record = tree.records[i]
            if present:
                if _is_empty(deep.words[record]):
                    deep.live[deep.n_live[0]] = record
                    deep.n_live[0] += 1
                deep.words[record, word] |= bit
            else:
                deep.words[record, word] = 0
        node = tree.nodes[node].parent


@kernel
def match_delta_deep(families, tree, walker, deep):
    """Evaluate every column of every access record on each root-to-leaf path."""
    for leaf in range(tree.counts[N_NODES]):
        if tree.nodes[leaf].first_child >= 0:
            continue
        _set_path(tree, leaf, deep, True)
        node = leaf
        while node >= 0:
            for i in range(tree.nodes[node].record_start, tree.nodes[node].record_end):
                record = tree.records[i]
                first, last = families.family_start[record], families.family_start[record + 1]
                for column in range(families.cluster_start[first], families.cluster_start[last]):
                    if _evaluate_column(families, column, deep.words, deep.sets[0]):
                        note_found(walker, column)
            node = tree.nodes[node].parent
        _set_path(tree, leaf, deep, False)


@kernel
def _evaluate_column(families, column, words, word_set):
    first = families.steps[families.column_start[column]]
    for i in range(len(word_set)):
        word_set[i] = words[first >> 1, i]
    if not first & 1:
        word_set[0] &= LOW
        word_set[1:] = 0
    for i in range(families.column_start[column] + 1, families.column_start[column + 1]):
        if _is_empty(word_set):
            return False
        step = families.steps[i]
        if step & 1:
            _to_descendants(word_set)
        else:
            _shift_up(word_set)
        _intersect(word_set, words[step >> 1], word_set)
    return not _is_empty(word_set)


@kernel
def _shift_up(word_set):
    for i in range(len(word_set) - 1, -1, -1):
        below = word_set[i - 1] >> np.uint64(63) if i else np.uint64(0)
        word_set[i] = (word_set[i] << LOW) | below


@kernel
def _to_descendants(word_set):
    bottom = 0
    while bottom < len(word_set) and word_set[bottom] == 0:
        bottom += 1
    if bottom == len(word_set):
        return
    word = word_set[bottom]
    word_set[bottom] = ~((word & (~word + LOW)) * np.uint64(2) - LOW)
    word_set[bottom + 1 :] = ~np.uint64(0)
