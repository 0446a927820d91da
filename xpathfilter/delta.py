"""Delta families: the published column-by-column clusters of DeltaFilter, kept as the baseline and a second oracle.

    family of access record c        cluster, 2 records         cluster, 3 records
                                     column  0    1             column  0
                                             /a   //b                   /a
                                             /c   //c                   //b
                                                                        //c

An internal event is one root-to-leaf path. Its position records have a bit for each depth: bit n says that the
element at depth n satisfies the record. Each cluster of each satisfied access record, if no longer than the path,
is evaluated column by column, from the first step to the last:

    parent    (word << 1) & record          ancestor    mask(word) & record: bits above the lowest one of word

A word that is not 0 after the last record is a match. Elements are not merged and results are not shared between
paths: one evaluation for each internal event, as in "Parallel XML Matching Algorithm for Publish/Subscribe
Systems" (S. Cardoso Ferreira), section III.
"""

from typing import NamedTuple

import numpy as np

from sievecore.jit import builder, kernel
from sievecore.rows import Rows
from xpathfilter.records import N_NODES
from xpathfilter.terminals import note_found

__all__ = ["DeltaFamilies", "DeltaWalker", "build_delta_families", "delta_paths", "match_delta", "new_delta_walker"]


class DeltaFamilies(NamedTuple):
    """All clusters. Columns are numbered through; a column's steps are record * 2 + (1 for a descendant)."""

    family_start: np.ndarray  # of a record: its clusters
    cluster_start: np.ndarray  # of a cluster: its columns
    cluster_size: np.ndarray  # how many records each of its columns has
    column_start: np.ndarray  # of a column: its steps
    steps: np.ndarray
    targets: np.ndarray  # what a column stands for


class DeltaWalker(NamedTuple):
    """Working memory of one thread in phase 2. `words` and `marks` are all zero between documents."""

    words: np.ndarray
    marks: np.ndarray
    found: np.ndarray
    n_found: np.ndarray


def new_delta_walker(families: DeltaFamilies) -> DeltaWalker:
    """Working memory for these families."""
    n_columns = len(families.targets)
    return DeltaWalker(
        words=np.zeros(len(families.family_start) - 1, np.uint64),
        marks=np.zeros(n_columns // 64 + 1, np.uint64),
        found=np.empty(n_columns, np.int32),
        n_found=np.zeros(1, np.int64),
    )


def build_delta_families(rows: Rows, n_records: int) -> tuple[DeltaFamilies, np.ndarray]:
    """Build the clusters of distinct rows, and tell the column of each row."""
    n_rows, sizes = rows.n_rows, np.diff(rows.start)
    access = rows.values[rows.start[:-1]] >> 1
    order = np.lexsort((sizes, access))
    column = np.empty(n_rows, np.int32)
    column[order] = np.arange(n_rows)
    opens_cluster = np.ones(n_rows, np.bool_)
    opens_cluster[1:] = (np.diff(access[order]) != 0) | (np.diff(sizes[order]) != 0)
    first_columns = np.flatnonzero(opens_cluster)
    column_start = np.concatenate([[0], np.cumsum(sizes[order])]).astype(np.int64)
    n_clusters = np.bincount(access[order][first_columns], minlength=n_records)
    families = DeltaFamilies(
        family_start=np.concatenate([[0], np.cumsum(n_clusters)]).astype(np.int64),
        cluster_start=np.append(first_columns, n_rows).astype(np.int64),
        cluster_size=sizes[order][first_columns].astype(np.int32),
        column_start=column_start,
        steps=_lay_out(rows, order, column_start),
        targets=np.full(n_rows, -1, np.int32),
    )
    return families, column


@builder
def _lay_out(rows, order, column_start):
    laid_out = np.empty(len(rows.values), np.int32)
    for column in range(len(order)):
        last = rows.start[order[column] + 1] - 1
        for i in range(column_start[column + 1] - column_start[column]):
            laid_out[column_start[column] + i] = rows.values[last - i]
    return laid_out


@builder
def delta_paths(families, columns, row_start):
    """The steps of each column, last first, as `build_delta_families` took them."""
    steps = np.empty(row_start[len(columns)], np.int32)
    for i in range(len(columns)):
        last = families.column_start[columns[i] + 1] - 1
        for j in range(row_start[i + 1] - row_start[i]):
            steps[row_start[i] + j] = families.steps[last - j]
    return steps


@kernel
def match_delta(families, tree, walker):
    """Evaluate the internal event of each leaf."""
    for node in range(tree.counts[N_NODES]):
        if tree.nodes[node].first_child < 0:
            _set_path(tree, node, walker.words, True)
            _evaluate_families(families, tree, node, walker)
            _set_path(tree, node, walker.words, False)


@kernel
def _set_path(tree, node, words, present):
    while node >= 0:
        bit = np.uint64(1) << np.uint64(tree.nodes[node].depth)
        for i in range(tree.nodes[node].record_start, tree.nodes[node].record_end):
            if present:
                words[tree.records[i]] |= bit
            else:
                words[tree.records[i]] = 0
        node = tree.nodes[node].parent


@kernel
def _evaluate_families(families, tree, leaf, walker):
    """Evaluate the family of every record on the path, once: at the deepest element that satisfies it."""
    length = tree.nodes[leaf].depth + 1
    node = leaf
    while node >= 0:
        above = (np.uint64(2) << np.uint64(tree.nodes[node].depth)) - np.uint64(1)
        for i in range(tree.nodes[node].record_start, tree.nodes[node].record_end):
            record = tree.records[i]
            if walker.words[record] & ~above == 0:
                for cluster in range(families.family_start[record], families.family_start[record + 1]):
                    if families.cluster_size[cluster] <= length:
                        _evaluate_cluster(families, cluster, walker)
        node = tree.nodes[node].parent


@kernel
def _evaluate_cluster(families, cluster, walker):
    for column in range(families.cluster_start[cluster], families.cluster_start[cluster + 1]):
        if _evaluate_column(families, column, walker.words):
            note_found(walker, column)


@kernel
def _evaluate_column(families, column, words):
    first = families.steps[families.column_start[column]]
    word = words[first >> 1]
    if not first & 1:
        word &= np.uint64(1)
    for i in range(families.column_start[column] + 1, families.column_start[column + 1]):
        if word == 0:
            return False
        step = families.steps[i]
        if step & 1:
            word = ~((word & (~word + np.uint64(1))) * np.uint64(2) - np.uint64(1)) & words[step >> 1]
        else:
            word = (word << np.uint64(1)) & words[step >> 1]
    return word != 0
