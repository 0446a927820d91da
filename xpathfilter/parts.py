"""A document cut into parts, stretches of its elements, that threads take one after the other.

    elements    0 ············· 1550 ········ 2712 ····· 3584 ··· … 6200        two threads
    parts       │       0       │      1      │     2    │   3   …

Each part is matched as if it were a document of its own: phase 1, with the path that leads to it, and phase 2. Siblings
are merged within a part only, so there should not be more parts than it takes to keep all threads busy to the end.
Hence the first are large, each a fair share of half of what is left, and the last ones small.
"""

from typing import NamedTuple

import numpy as np

from sievecore.atomics import fetch_add
from sievecore.jit import kernel

__all__ = ["Parts", "cut_parts", "take_part", "whole"]

SMALLEST_PART = 128


class Parts(NamedTuple):
    """Part i is the elements bounds[i] to bounds[i + 1]."""

    bounds: np.ndarray
    n_taken: np.ndarray


def cut_parts(n_elements: int, n_threads: int) -> Parts:
    """The parts for so many threads.

    >>> cut_parts(1000, 2).bounds.tolist()
    [0, 250, 437, 577, 705, 833, 961, 1000]
    """
    bounds = [0]
    while bounds[-1] < n_elements:
        share = (n_elements - bounds[-1]) // (2 * n_threads)
        bounds.append(min(n_elements, bounds[-1] + max(share, SMALLEST_PART)))
    return Parts(np.array(bounds, np.int64), np.zeros(1, np.int64))


def whole(n_elements: int) -> Parts:
    """The document as one part."""
    return Parts(np.array([0, n_elements], np.int64), np.zeros(1, np.int64))


@kernel
def take_part(parts):
    """The number of a part that nobody has taken, or how many parts there are."""
    return min(fetch_add(parts.n_taken, 0, 1), len(parts.bounds) - 1)
