"""How likely is a predicate to hold? Conjunctions are filed under, and decided by, their least likely ones first.

    score of  price = 75           1 of 9 codes, and price is in 40% of the conjunctions     0.04
              symbol IN (…4…)      4 of 400 codes, symbol is in all of them                   0.01     ◀── first

Nothing is known about the events of the future. So the cells of an attribute count as equally likely, and an attribute
that subscriptions name often as one that events have often. What can only hold for an absent value says nothing that
an event could be looked up by, and comes last.
"""

from typing import NamedTuple

import numpy as np

from boolmatch.spaces import ABSENT, ATTRIBUTE_MASK, DETAIL_BIT, Spaces, code_counts
from sievecore.jit import builder, kernel

__all__ = ["Profile", "common_codes", "new_profile", "scores", "sort_predicates"]

NOT_INDEXABLE = 2.0
MANY = 24  # predicates that are better sorted by a proper sort


class Profile(NamedTuple):
    """What is known about each attribute of a segment."""

    n_codes: np.ndarray
    weights: np.ndarray  # how likely an event has it


def new_profile(spaces: Spaces, predicates: np.ndarray, n_conjunctions: int) -> Profile:
    """The profile of conjunctions made of these predicates."""
    n_attributes = len(spaces.attributes)
    counts = np.bincount(predicates["attribute"] & ATTRIBUTE_MASK, minlength=n_attributes)
    return Profile(_all_code_counts(spaces), np.minimum(1.0, counts / max(1, n_conjunctions)))


@builder
def _all_code_counts(spaces):
    counts = np.empty(len(spaces.attributes), np.int32)
    for attribute in range(len(counts)):
        counts[attribute] = code_counts(spaces, attribute)
    return counts


@builder
def scores(profile, start, predicates, details, range_start, ranges):
    """How likely each predicate is; all predicates of a conjunction about one attribute count as one."""
    found = np.empty(len(predicates), np.float64)
    for conjunction in range(len(start) - 1):
        first, end = start[conjunction], start[conjunction + 1]
        for i in range(first, end):
            low, high = common_codes(predicates, first, end, i)
            n_cells = np.int64(high) - low + 1
            if predicates[i].attribute & DETAIL_BIT:
                n_cells = min(n_cells, _cells_of(ranges, range_start[details[i]], range_start[details[i] + 1]))
            found[i] = _score(profile, predicates[i], n_cells)
    return found


@kernel
def common_codes(predicates, first, end, i):
    """The codes at which the predicates of a conjunction, first to end, that share the attribute of i all meet.

    Those that do not meet are left out, and so are all others of a very long conjunction. For an event with several
    values the meeting is with their hull: of intervals that meet pairwise, all have a point in common, so the hull
    of values that satisfy each predicate meets what the predicates have in common.
    """
    low, high = predicates[i].low, predicates[i].high
    attribute = predicates[i].attribute & ATTRIBUTE_MASK
    if end - first <= MANY:
        for j in range(first, end):
            other = predicates[j]
            meets = max(low, other.low) <= min(high, other.high)
            if meets and other.attribute & ATTRIBUTE_MASK == attribute:
                low, high = max(low, other.low), min(high, other.high)
    return low, high


@kernel
def _cells_of(ranges, first, end):
    n_cells = np.int64(0)
    for i in range(first, end):
        n_cells += ranges[i].high - ranges[i].low + 1
    return n_cells


@kernel
def _score(profile, predicate, n_cells):
    if predicate.high == ABSENT:
        return NOT_INDEXABLE
    attribute = predicate.attribute & ATTRIBUTE_MASK
    return profile.weights[attribute] * n_cells / profile.n_codes[attribute]


@builder
def sort_predicates(start, predicates, details, likely):
    """Copies of predicates and details, sorted within each conjunction: the least likely first, ties by content."""
    by_likelihood, their_details = predicates.copy(), details.copy()
    order = np.empty(MANY, np.int64)
    for conjunction in range(len(start) - 1):
        first, end = start[conjunction], start[conjunction + 1]
        if end - first > MANY:
            sorting = first + np.argsort(likely[first:end], kind="mergesort")
        else:
            sorting = order[: end - first]
            _sort_few(predicates, details, likely, first, sorting)
        for i in range(end - first):
            by_likelihood[first + i], their_details[first + i] = predicates[sorting[i]], details[sorting[i]]
    return by_likelihood, their_details


@kernel
def _sort_few(predicates, details, likely, first, order):
    """Write the order of the predicates from `first` on."""
    for i in range(len(order)):
        place = i
        while place > 0 and _comes_before(predicates, details, likely, first + i, order[place - 1]):
            order[place] = order[place - 1]
            place -= 1
        order[place] = first + i


@kernel
def _comes_before(predicates, details, likely, left, right):
    if likely[left] != likely[right]:
        return likely[left] < likely[right]
    first, other = predicates[left], predicates[right]
    if first.attribute != other.attribute:
        return first.attribute < other.attribute
    if first.low != other.low:
        return first.low < other.low
    if first.high != other.high:
        return first.high < other.high
    return details[left] < details[right]
