"""The published ways to file conjunctions behind one face, by name.

    scan            decide everything                                                     the oracle
    pst-bloom       one access predicate each, signatures on the others                   Ji and Jacobsen, 2018
    pst-hash        two access predicates each, hashed together                           Ji and Jacobsen, 2018
    matching-tree   conjunctions that begin alike share their first tests                 Aguilera et al., 1999
    be-tree         space cut by attributes and halves of their codes, small buckets      Sadoghi and Jacobsen, 2011
    a-pcm           that tree, walked once for up to 64 similar events                    Sadoghi and Jacobsen, 2014

All take the same table, name candidates to the same `check`, and must give the same answers.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba.extending import overload

from boolmatch.a_pcm import APCMFiling, a_pcm_scratch_size, build_a_pcm, match_by_clusters
from boolmatch.be_tree import BETreeFiling, be_tree_order, build_be_tree, find_by_be_tree
from boolmatch.conjunctions import Conjunctions
from boolmatch.flat_events import FlatEvents
from boolmatch.matching_tree import (
    MatchingTreeFiling,
    build_matching_tree,
    find_by_matching_tree,
    matching_tree_order,
    matching_tree_scratch_size,
)
from boolmatch.pst_bloom import PstBloomFiling, build_pst_bloom, find_by_pst_bloom, pst_bloom_order
from boolmatch.pst_hash import (
    PstHashFiling,
    build_pst_hash,
    describe_pst_hash,
    find_by_pst_hash,
    pst_hash_order,
    pst_hash_scratch_size,
)
from boolmatch.scan import ScanFiling, build_scan, find_by_scan
from boolmatch.selectivity import Profile
from sievecore.snapshots import Layer

__all__ = ["ALGORITHMS", "Algorithm", "Filing", "find_candidates"]

Filing = ScanFiling | PstBloomFiling | PstHashFiling | MatchingTreeFiling | BETreeFiling | APCMFiling


class Algorithm(NamedTuple):
    """How conjunctions are filed, and the kernel that finds candidates there."""

    name: str
    filing_type: type[Any]
    build: Callable[[Conjunctions, Profile], Any]
    find: Any
    order: Callable[[Conjunctions, Profile], np.ndarray] | None = None
    """The order in which the algorithm wants the conjunctions to lie, if it cares."""
    scratch_size: Callable[[Any], int] = lambda filing: 0
    """How many words of working memory the kernel wants."""
    describe: Callable[[Any], dict[str, Any]] = lambda filing: {}
    """What `stats` should tell about a filing."""
    match_together: Callable[[Layer[Any], FlatEvents, int], list[np.ndarray]] | None = None
    """How several events are matched on a layer by so many threads, if not one by one."""
    as_written: bool = False
    """Whether predicates stay in the order they were written in; otherwise the least likely one comes first."""


ALGORITHMS = {
    algorithm.name: algorithm
    for algorithm in (
        Algorithm("scan", ScanFiling, build_scan, find_by_scan, as_written=True),
        Algorithm("pst-bloom", PstBloomFiling, build_pst_bloom, find_by_pst_bloom, pst_bloom_order),
        Algorithm(
            "pst-hash",
            PstHashFiling,
            build_pst_hash,
            find_by_pst_hash,
            pst_hash_order,
            pst_hash_scratch_size,
            describe_pst_hash,
        ),
        Algorithm(
            "matching-tree",
            MatchingTreeFiling,
            build_matching_tree,
            find_by_matching_tree,
            matching_tree_order,
            matching_tree_scratch_size,
        ),
        Algorithm(
            "be-tree",
            BETreeFiling,
            build_be_tree,
            find_by_be_tree,
            be_tree_order,
            scratch_size=lambda filing: len(filing.nodes),
        ),
        Algorithm(
            "a-pcm",
            APCMFiling,
            build_a_pcm,
            find_by_be_tree,
            be_tree_order,
            scratch_size=a_pcm_scratch_size,
            match_together=match_by_clusters,
        ),
    )
}

KERNELS = {algorithm.filing_type: algorithm.find for algorithm in ALGORITHMS.values()}


def find_candidates(filing: Any, filed: Any, work: Any, flat: Any) -> None:
    """Name the candidates for the loaded event, in kernels: the type of the filing chooses the algorithm's own."""
    KERNELS[type(filing)](filing, filed, work, flat)


@overload(find_candidates)
def _find_candidates(filing, filed, work, flat):
    find = KERNELS[filing.instance_class]

    def find_by_type(filing, filed, work, flat):
        find(filing, filed, work, flat)

    return find_by_type
