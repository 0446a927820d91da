"""Matching tree: conjunctions that begin alike share the tests that they begin with.

    A1  mark = FORD AND model = FOCUS        root ── mark ─┬─ FORD ── model ─┬─ FOCUS   A1
    A2  mark = FORD AND model = MONDEO            │        │                 └─ MONDEO  A2
    A3  mark = BMW                                │        └─ BMW   A3
    A4  year BETWEEN 2014 AND 2016                └─ year ─── 2014–2016   A4

Attributes have one order, those named most often first, and a conjunction is a path of tests in that order (Aguilera et
al., 1999). Attributes that it does not name take no part in its path: chains of "don't care" are collapsed. An event
goes down every edge whose codes its own meet, and what hangs on the nodes it comes to are candidates. A *fixed* edge
has one code and is found by binary search. *Ranges* are sorted by their low end and know how far those before them
reach: the event looks back from the last one that starts early enough, to where none reaches any more.

The rules by which terms cover each other (Schitinin and Tsesko, 2016) are those of codes: a fixed term covers an equal
one, a range a number in it or an interval that meets it, and polygons come as attributes that are true or false.

Candidates tree and final revision, as there: a path ends after DEPTH tests, or where fewer than SHARED conjunctions
have come along it, and the rest is for `check`, behind a signature as in PSTBloom. They choose by name instead, and put
few most frequent ones into the tree; but of 30,000 names those say nothing about nearly all conjunctions. The walk may
be exponential in DEPTH, so not in the number of names.

    a million subscriptions, us an event        dense   ads   apcm   sparse
    one test                                      221   129    274       67
    4 tests, where 2048 share them                225   129    198       69
    4 tests, where 512 share them                 232   134    226       68
    4 tests, where 64 share them                  554   148    274       69
    4 tests                                      1756   472    692      174

Of these only apcm has beginnings that so many share; for the others the tree has hardly more than its first level.
"""

from typing import NamedTuple

import numpy as np

from boolmatch.coded_event import N_PRESENT
from boolmatch.conjunctions import Conjunctions
from boolmatch.matching import N_LOOKED_AT, decide, propose
from boolmatch.pst_bloom import attribute_bits, choose_access, lacking_bits, signatures_of
from boolmatch.selectivity import Profile, common_codes
from boolmatch.spaces import ABSENT, ATTRIBUTE_MASK
from sievecore.breathing import breathe
from sievecore.jit import builder, kernel
from sievecore.rows import Rows, number_rows
from sievecore.tables import columns

__all__ = [
    "MatchingTreeFiling",
    "build_matching_tree",
    "find_by_matching_tree",
    "matching_tree_order",
    "matching_tree_scratch_size",
]

DEPTH = 4
SHARED = 2048
NO_TEST = 0
NO_GROUP = -1

TEST = columns("rank", "attribute", "low", "high")
NODE = columns("low", "high", "reach", "group_start", "entry_start")
"""A node, and the edge to it: its codes, and how far the ranges up to it reach. Groups and entries end where those of
the next node start."""
GROUP = columns("attribute", "fixed", "ranges", "end")
"""The children of a node that test one attribute are nodes: fixed ones, and from `ranges` to `end` the others."""


class MatchingTreeFiling(NamedTuple):
    """Nodes lie level by level, so that the children of a node are neighbours; node 0 is the root."""

    nodes: np.ndarray
    groups: np.ndarray
    root_groups: np.ndarray  # of an attribute: its group at the root
    entries: np.ndarray  # conjunctions
    signatures: np.ndarray
    bit_of_attribute: np.ndarray
    stack_size: np.ndarray


def matching_tree_order(table: Conjunctions, profile: Profile) -> np.ndarray:
    """The conjunctions in the order of their paths; those with flags after all others."""
    order, _, _ = _sorted_paths(table, profile)
    special = choose_access(table)["special"][order] == 1
    return np.concatenate([order[~special], order[special]])


def build_matching_tree(table: Conjunctions, profile: Profile) -> MatchingTreeFiling:
    """Grow the tree of a table."""
    order, tests, paths = _sorted_paths(table, profile)
    breathe()
    level_start = _level_starts(paths)
    nodes = np.zeros(level_start[-1] + 1, NODE)
    n_children, owner = _plant(paths, tests, level_start, nodes)
    groups = np.empty(level_start[-1], GROUP)
    groups = groups[: _write_groups(nodes, n_children, groups)].copy()
    entries = _hang(owner, order, nodes)
    breathe()
    root_groups = np.full(len(profile.n_codes), NO_GROUP, np.int32)
    at_root = groups["attribute"][: nodes["group_start"][1]]
    root_groups[at_root] = np.arange(len(at_root))
    stack_size = np.array([_most_children(n_children, level_start)])
    bits = attribute_bits(profile)
    signatures = signatures_of(table, bits)[entries]
    return MatchingTreeFiling(nodes, groups, root_groups, entries, signatures, bits, stack_size)


def matching_tree_scratch_size(filing: MatchingTreeFiling) -> int:
    """While one node of each level is open, the other children of those above it wait on the stack."""
    return int(filing.stack_size[0])


def _sorted_paths(table: Conjunctions, profile: Profile) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The conjunctions in the order of their paths, the tests, and the paths in that order."""
    tests, paths = _paths(table, profile)
    order = np.lexsort(paths.T[::-1])
    paths = paths[order]
    _cut_paths(paths, SHARED)
    return order, tests, paths


def _paths(table: Conjunctions, profile: Profile) -> tuple[np.ndarray, np.ndarray]:
    """The distinct tests in order, from 1 on, and for each conjunction its first ones; NO_TEST after the last."""
    ranks = np.empty(len(profile.weights), np.int32)
    ranks[np.argsort(-profile.weights, kind="stable")] = np.arange(len(ranks))
    rows, paths = _write_paths(table, ranks)
    breathe()
    first, number = number_rows(Rows(rows.view(np.int32), np.arange(0, 4 * len(rows) + 1, 4)))
    distinct = rows[first]
    is_range = distinct["low"] != distinct["high"]
    by_content = np.lexsort((distinct["high"], distinct["low"], is_range, distinct["rank"]))
    place = np.empty(len(by_content) + 1, np.int32)
    place[by_content], place[-1] = np.arange(1, len(by_content) + 1), NO_TEST
    numbers = np.append(number, -1)
    return distinct[by_content], place[numbers[paths]]


@builder
def _write_paths(table, ranks):
    """The tests of all conjunctions, and where the first ones of each stand; -1 after the last."""
    n_tests, paths = 0, np.full((len(table.start) - 1, DEPTH), -1, np.int64)
    tests = np.empty(len(table.predicates) + 1, TEST)
    for conjunction in range(len(paths)):
        first, end, n_before = table.start[conjunction], table.start[conjunction + 1], n_tests
        for position in range(first, end):
            predicate = table.predicates[position]
            attribute = predicate.attribute & ATTRIBUTE_MASK
            if predicate.high != ABSENT and _is_wanted(tests, n_before, n_tests, ranks[attribute]):
                low, high = common_codes(table.predicates, first, end, position)
                place = _make_place(tests, n_before, n_tests, ranks[attribute])
                tests[place].rank, tests[place].attribute = ranks[attribute], attribute
                tests[place].low, tests[place].high = low, high
                n_tests = min(n_tests + 1, n_before + DEPTH)
        for i in range(n_before, n_tests):
            paths[conjunction, i - n_before] = i
    return tests[:n_tests].copy(), paths


@kernel
def _is_wanted(tests, first, end, rank):
    """Whether an attribute of this rank is among the first DEPTH of a conjunction, and not there yet."""
    for i in range(first, end):
        if tests[i].rank == rank:
            return False
    return end - first < DEPTH or tests[end - 1].rank > rank


@kernel
def _make_place(tests, first, end, rank):
    """Where a test belongs; those after it move up, and the last one is lost if there are DEPTH already."""
    place = min(end, first + DEPTH - 1)
    while place > first and tests[place - 1].rank > rank:
        tests[place] = tests[place - 1]
        place -= 1
    return place


@builder
def _cut_paths(paths, n_shared):
    """Let sorted paths end where fewer than so many of them are the same up to there."""
    for level in range(1, DEPTH):
        first = 0
        for i in range(1, len(paths) + 1):
            if i == len(paths) or _shared(paths, i) < level:
                if i - first < n_shared:
                    paths[first:i, level:] = NO_TEST
                first = i


@builder
def _level_starts(paths):
    """Where the nodes of each level start: the root, those after one test, after two, …"""
    starts = np.zeros(DEPTH + 2, np.int64)
    starts[1] = 1
    for i in range(len(paths)):
        for level in range(_shared(paths, i), DEPTH):
            starts[level + 2] += paths[i, level] != NO_TEST
    for level in range(1, DEPTH + 1):
        starts[level + 1] += starts[level]
    return starts


@kernel
def _shared(paths, i):
    """How many tests a path has in common with the one before it."""
    level = 0
    while i > 0 and level < DEPTH and paths[i, level] == paths[i - 1, level]:
        level += 1
    return level


@builder
def _plant(paths, tests, level_start, nodes):
    """Write the edges from sorted paths: how many children each node has, and the node that each path ends at."""
    n_children, owner = np.zeros(len(nodes), np.int64), np.zeros(len(paths), np.int64)
    newest = level_start[:-1] - 1
    newest[0] = 0
    for i in range(len(paths)):
        for level in range(_shared(paths, i), DEPTH):
            if paths[i, level] != NO_TEST:
                newest[level + 1] += 1
                n_children[newest[level]] += 1
                node, test = nodes[newest[level + 1]], tests[paths[i, level] - 1]
                node.low, node.high, node.reach = test.low, test.high, test.attribute
        depth = 0
        while depth < DEPTH and paths[i, depth] != NO_TEST:
            depth += 1
        owner[i] = newest[depth]
    return n_children, owner


@builder
def _hang(owner, order, nodes):
    """The conjunctions node by node."""
    free = np.zeros(len(nodes), np.int64)
    for node in owner:
        free[node + 1] += 1
    for i in range(1, len(nodes)):
        free[i] += free[i - 1]
        nodes[i].entry_start = free[i]
    entries = np.empty(len(owner), np.int32)
    for i in range(len(owner)):
        entries[free[owner[i]]] = order[i]
        free[owner[i]] += 1
    return entries


@builder
def _write_groups(nodes, n_children, groups):
    """Group the children of each node by the attribute they test, which `reach` has so far; return how many groups."""
    n_groups, child = 0, 1
    for i in range(len(nodes) - 1):
        nodes[i].group_start = n_groups
        end = child + n_children[i]
        while child < end:
            group = groups[n_groups]
            n_groups += 1
            group.attribute = nodes[child].reach
            group.fixed = child
            while child < end and nodes[child].reach == group.attribute and nodes[child].low == nodes[child].high:
                child += 1
            group.ranges, reach = child, ABSENT
            while child < end and nodes[child].reach == group.attribute:
                reach = max(reach, nodes[child].high)
                nodes[child].reach = reach
                child += 1
            group.end = child
    nodes[-1].group_start = n_groups
    return n_groups


@builder
def _most_children(n_children, level_start):
    """The most children that a node of each level has, all levels together."""
    total = 0
    for level in range(DEPTH):
        most = 0
        for i in range(level_start[level], level_start[level + 1]):
            most = max(most, n_children[i])
        total += most
    return total


@kernel
def find_by_matching_tree(filing, filed, work, flat):
    """Name what hangs on the nodes that the event comes to."""
    event, lacking = work.event, lacking_bits(filing, work.event)
    n_waiting = _propose_node(filing, filed, work, flat, lacking, 0, 0)
    for i in range(event.state[N_PRESENT]):
        group, n_open = filing.root_groups[event.present[i]], 0
        if group != NO_GROUP:
            n_open = _enter(filing, event, group, work.scratch, n_open)
        while n_open > 0:
            n_open -= 1
            node = np.int64(work.scratch[n_open])
            n_waiting = _propose_node(filing, filed, work, flat, lacking, node, n_waiting)
            for below in range(filing.nodes[node].group_start, filing.nodes[node + 1].group_start):
                n_open = _enter(filing, event, below, work.scratch, n_open)
    decide(filed, work, flat, n_waiting, 0)


@kernel
def _enter(filing, event, number, stack, n_open):
    """Put the children of a group that cover the event's value on the stack; return how many are there."""
    group, nodes = filing.groups[number], filing.nodes
    value = event.values[group.attribute]
    if value.high == ABSENT:
        return n_open
    child = _first_above(nodes, group.fixed, group.ranges, value.low - 1)
    while child < group.ranges and nodes[child].low <= value.high:
        stack[n_open] = child
        n_open, child = n_open + 1, child + 1
    child = _first_above(nodes, group.ranges, group.end, value.high) - 1
    while child >= group.ranges and nodes[child].reach >= value.low:
        if nodes[child].high >= value.low:
            stack[n_open] = child
            n_open += 1
        child -= 1
    return n_open


@kernel
def _first_above(nodes, first, end, code):
    """The first child whose codes start above a code."""
    while first < end:
        middle = (first + end) >> 1
        if nodes[middle].low <= code:
            first = middle + 1
        else:
            end = middle
    return first


@kernel
def _propose_node(filing, filed, work, flat, lacking, node, n_waiting):
    first, end = filing.nodes[node].entry_start, filing.nodes[node + 1].entry_start
    work.counts[N_LOOKED_AT] += end - first
    for i in range(np.uint32(first), np.uint32(end)):
        may_hold = filing.signatures[i] & lacking == 0
        n_waiting = propose(filed, work, flat, n_waiting, filing.entries[i], may_hold, 0)
    return n_waiting
