"""Scan: decide every conjunction for every event. The oracle of the others, and the fastest for a few.

conjunction   0  1  2  3 …       each from its least likely predicate on, until one fails
"""

from typing import NamedTuple

import numpy as np

from boolmatch.conjunctions import Conjunctions
from boolmatch.matching import check
from boolmatch.selectivity import Profile
from sievecore.jit import kernel

__all__ = ["ScanFiling", "build_scan", "find_by_scan"]


class ScanFiling(NamedTuple):
    """Nothing is filed anywhere."""

    n_conjunctions: np.ndarray


def build_scan(table: Conjunctions, profile: Profile) -> ScanFiling:
    return ScanFiling(np.array([table.n_conjunctions]))


@kernel
def find_by_scan(filing, filed, work, flat):
    """Name all conjunctions."""
    for conjunction in range(filing.n_conjunctions[0]):
        check(filed, work, flat, conjunction)
