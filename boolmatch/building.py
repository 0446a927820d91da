"""From a batch to a segment: rows become codes, equal conjunctions one, and the algorithm files them.

rows ──▶ spaces ──▶ coded predicates ──▶ the least likely first ──▶ each conjunction once ──▶ filing
                                                                             └──▶ targets: who wants it
"""

from typing import NamedTuple

import numpy as np

from boolmatch.algorithms import Algorithm
from boolmatch.batches import Batch
from boolmatch.conjunctions import Conjunctions
from boolmatch.matching import Filed
from boolmatch.packed import no_words, pack
from boolmatch.rows import PredicateRows, concatenate_rows
from boolmatch.segment import Segment
from boolmatch.selectivity import new_profile, scores, sort_predicates
from boolmatch.spaces import ATTRIBUTE_MASK, DETAIL_BIT, build_spaces
from boolmatch.targets import Targets
from sievecore.breathing import breathe
from sievecore.jit import builder, kernel
from sievecore.rows import Rows, number_rows, offsets

__all__ = ["build_segment"]


class Lists(NamedTuple):
    """Lists of coded predicates, with the detail of each or -1."""

    start: np.ndarray
    predicates: np.ndarray
    details: np.ndarray


def build_segment(batch: Batch, algorithm: Algorithm) -> Segment:
    """Freeze a batch."""
    rows, n_rows = concatenate_rows([batch.rows, batch.leaves]), len(batch.rows.rows)
    n_predicates = len(rows.rows)
    all_rows = np.concatenate([rows.rows, rows.detail_ranges]) if len(rows.detail_ranges) else rows.rows
    spaces, coded = build_spaces(all_rows, rows.texts)
    breathe()
    ranges, details = coded[n_predicates:], np.ascontiguousarray(rows.rows["detail"])
    given = Lists(_starts(batch.lengths), coded[:n_rows], details[:n_rows])
    leaves = Lists(_starts(batch.leaf_lengths), coded[n_rows:n_predicates], details[n_rows:])
    profile = new_profile(spaces, given.predicates, len(batch.lengths))
    lists = given
    if not algorithm.as_written:
        likely = scores(profile, given.start, given.predicates, given.details, rows.detail_start, ranges)
        lists = Lists(given.start, *sort_predicates(given.start, given.predicates, given.details, likely))
    breathe()
    first, number = number_rows(_as_rows(lists))
    breathe()
    if len(first) < len(number):
        lists = _gathered(lists, first)
    table = _table(lists, ranges, rows)
    if algorithm.order is not None:
        order = algorithm.order(table, profile)
        breathe()
        table = _table(_gathered(lists, order), ranges, rows)
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        number = place[number] if len(place) else number
    breathe()
    ids, targets = _targets(batch, number, len(first))
    packed = no_words() if algorithm.as_written else pack(table, targets.targets, profile.n_codes)
    filed = Filed(ids, spaces, table, targets, _table(leaves, ranges, rows), packed)
    return Segment(algorithm, filed, algorithm.build(table, profile))


def _starts(lengths: np.ndarray) -> np.ndarray:
    start = offsets(lengths)
    if start[-1] >= 1 << 31:
        raise OverflowError(f"a segment holds up to 2^31 predicates, found {start[-1]:,}: split the subscriptions")
    return start.astype(np.int32)


def _table(lists: Lists, ranges: np.ndarray, rows: PredicateRows) -> Conjunctions:
    detailed = np.flatnonzero(lists.predicates["attribute"] & DETAIL_BIT)
    return Conjunctions(
        start=lists.start,
        predicates=lists.predicates,
        n_plain=np.array([_count_plain(lists)]),
        detailed=detailed,
        details=lists.details[detailed],
        range_start=rows.detail_start,
        ranges=ranges,
        like_start=rows.like_start,
        like_codes=rows.like_codes,
        like_negated=rows.like_negated,
    )


@kernel
def _count_plain(lists):
    """How many lists, from the first on, have no predicate with a flag."""
    for i in range(len(lists.predicates)):
        if lists.predicates[i].attribute > ATTRIBUTE_MASK:
            return np.searchsorted(lists.start, i, "right") - 1
    return len(lists.start) - 1


def _as_rows(lists: Lists) -> Rows:
    """What makes two lists equal, as integers."""
    values = np.empty((len(lists.predicates), 4), np.int32)
    for column, field in enumerate(("attribute", "low", "high")):
        values[:, column] = lists.predicates[field]
    values[:, 3] = lists.details
    return Rows(values.ravel(), 4 * lists.start.astype(np.int64))


@builder
def _gathered(lists, chosen):
    """The chosen lists, in their order."""
    start = np.zeros(len(chosen) + 1, np.int32)
    for i in range(len(chosen)):
        start[i + 1] = start[i] + lists.start[chosen[i] + 1] - lists.start[chosen[i]]
    predicates = np.empty(start[-1], lists.predicates.dtype)
    details = np.empty(start[-1], np.int32)
    for i in range(len(chosen)):
        first = lists.start[chosen[i]]
        for j in range(start[i + 1] - start[i]):
            predicates[start[i] + j] = lists.predicates[first + j]
            details[start[i] + j] = lists.details[first + j]
    return Lists(start, predicates, details)


def _targets(batch: Batch, number: np.ndarray, n_conjunctions: int) -> tuple[np.ndarray, Targets]:
    """The ids, ascending, and who wants which conjunction; `number` tells what became of the batch's conjunctions."""
    ids = batch.ids
    if (np.diff(ids) <= 0).any():
        ids = np.sort(ids)
    links = batch.links
    slots = _slots(ids, links)
    items = np.where(links["program"] >= 0, ~links["program"], slots).astype(np.int32)
    program_slots = np.empty(len(batch.leaf_lengths), np.int32)
    decided = links["program"] >= 0
    program_slots[links["program"][decided]] = slots[decided]
    wanted = number[links["conjunction"]] if len(links) else number[:0]
    targets, shared_start, shared = _share(wanted, items, n_conjunctions, len(ids))
    program_start = offsets(batch.program_lengths)
    return ids, Targets(targets, shared_start, shared, program_start, batch.program, program_slots)


@builder
def _slots(ids, links):
    """The slot of each link's subscription; np.searchsorted would keep the GIL."""
    slots = np.empty(len(links), np.int32)
    for i in range(len(links)):
        slots[i] = np.searchsorted(ids, links[i].subscription_id)
    return slots


@builder
def _share(wanted, items, n_conjunctions, n_slots):
    """A conjunction with one plain taker points at it, any other at a list."""
    start = np.zeros(n_conjunctions + 1, np.int64)
    for conjunction in wanted:
        start[conjunction + 1] += 1
    for i in range(n_conjunctions):
        start[i + 1] += start[i]
    by_conjunction = np.empty(len(items), np.int32)
    free = start[:-1].copy()
    for i in range(len(items)):
        by_conjunction[free[wanted[i]]] = items[i]
        free[wanted[i]] += 1
    targets = np.empty(n_conjunctions, np.int32)
    shared_start = np.zeros(n_conjunctions + 1, np.int32)
    shared = np.empty(len(items), np.int32)
    n_lists = n_shared = 0
    for i in range(n_conjunctions):
        if start[i + 1] - start[i] == 1 and by_conjunction[start[i]] >= 0:
            targets[i] = by_conjunction[start[i]]
            continue
        targets[i] = n_slots + n_lists
        for j in range(start[i], start[i + 1]):
            shared[n_shared] = by_conjunction[j]
            n_shared += 1
        n_lists += 1
        shared_start[n_lists] = n_shared
    return targets, shared_start[: n_lists + 1].copy(), shared[:n_shared].copy()
