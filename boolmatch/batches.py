"""Subscriptions on their way into a segment: what drafts collect and segments can be read back as.

    ids            7   8   9
    conjunctions   0: rows 0 1     1: rows 2     2: rows 3 4
    links          0 ─▶ 7     1 ─▶ 8     2 ─▶ 8         9 is never true, so nothing links to it
    programs       for subscriptions whose normal form is too large: leaves (rows) and a postfix program over them

A link says that a conjunction is one of a subscription's, and which program has the last word, if any.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from boolmatch.rows import PredicateRows, concatenate_rows
from sievecore.tables import columns

__all__ = ["LINK", "NO_PROGRAM", "Batch", "concatenate_batches"]

NO_PROGRAM = -1

LINK = columns("conjunction", "program", subscription_id=np.int64)


class Batch(NamedTuple):
    """Subscriptions and what they are made of."""

    ids: np.ndarray  # in any order
    rows: PredicateRows
    lengths: np.ndarray  # how many rows each conjunction has
    links: np.ndarray
    leaves: PredicateRows
    leaf_lengths: np.ndarray  # how many leaves each program has
    program_lengths: np.ndarray
    program: np.ndarray


def concatenate_batches(batches: Sequence[Batch]) -> Batch:
    """All of them as one."""
    if len(batches) == 1:
        return batches[0]
    links, n_conjunctions, n_programs = [], 0, 0
    for batch in batches:
        links.append(_shifted(batch.links, n_conjunctions, n_programs))
        n_conjunctions += len(batch.lengths)
        n_programs += len(batch.leaf_lengths)
    return Batch(
        np.concatenate([batch.ids for batch in batches]),
        concatenate_rows([batch.rows for batch in batches]),
        np.concatenate([batch.lengths for batch in batches]),
        np.concatenate(links),
        concatenate_rows([batch.leaves for batch in batches]),
        np.concatenate([batch.leaf_lengths for batch in batches]),
        np.concatenate([batch.program_lengths for batch in batches]),
        np.concatenate([batch.program for batch in batches]),
    )


def _shifted(links: np.ndarray, n_conjunctions: int, n_programs: int) -> np.ndarray:
    links = links.copy()
    links["conjunction"] += n_conjunctions
    links["program"][links["program"] >= 0] += n_programs
    return links
