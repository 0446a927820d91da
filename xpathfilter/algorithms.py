"""The two ways to arrange subscriptions in families behind one face.

    suffix    tries walked from the last step back, once a block of merged nodes       the default
    delta     clusters evaluated column by column, once a root-to-leaf path             the published baseline

Both take the same rows, leave the same kind of terminals in their walkers, and must give the same answers.
"""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from sievecore.rows import Rows, new_rows
from xpathfilter.deep import DeepScratch, match_delta_deep, match_suffix_deep
from xpathfilter.delta import (
    DeltaFamilies,
    DeltaWalker,
    build_delta_families,
    delta_paths,
    match_delta,
    new_delta_walker,
)
from xpathfilter.records import RecordScratch
from xpathfilter.suffix import (
    SuffixFamilies,
    SuffixWalker,
    build_suffix_families,
    match_suffix,
    new_suffix_walker,
    path_lengths,
    suffix_paths,
)

__all__ = ["ALGORITHMS", "Algorithm", "Families", "Walker"]

Families = SuffixFamilies | DeltaFamilies
Walker = SuffixWalker | DeltaWalker


class Algorithm(ABC):
    """How rows become families, and how families are matched."""

    name: str
    families_type: type[Families]
    merging: bool  # whether phase 1 merges elements and cuts the document into blocks

    @abstractmethod
    def build(self, rows: Rows, n_records: int) -> tuple[Families, np.ndarray]:
        """The families of distinct rows, and the terminal of each row."""

    @abstractmethod
    def rows(self, families: Any, terminals: np.ndarray) -> Rows:
        """The rows that these terminals were built from."""

    @abstractmethod
    def new_walker(self, families: Any) -> Walker:
        """Working memory of one thread."""

    @abstractmethod
    def match(self, families: Any, records: RecordScratch, walker: Any) -> None:
        """Match what phase 1 has found."""

    @abstractmethod
    def match_deep(self, families: Any, records: RecordScratch, walker: Any, deep: DeepScratch) -> None:
        """Match a document that is too deep for one word."""


class Suffix(Algorithm):
    name = "suffix"
    families_type = SuffixFamilies
    merging = True

    def build(self, rows: Rows, n_records: int) -> tuple[Families, np.ndarray]:
        return build_suffix_families(rows, n_records)

    def rows(self, families: SuffixFamilies, terminals: np.ndarray) -> Rows:
        rows = new_rows([], path_lengths(families, terminals))
        return rows._replace(values=suffix_paths(families, terminals, rows.start))

    def new_walker(self, families: SuffixFamilies) -> SuffixWalker:
        return new_suffix_walker(families)

    def match(self, families: SuffixFamilies, records: RecordScratch, walker: SuffixWalker) -> None:
        match_suffix(families, records.blocks, walker)

    def match_deep(
        self, families: SuffixFamilies, records: RecordScratch, walker: SuffixWalker, deep: DeepScratch
    ) -> None:
        match_suffix_deep(families, records.tree, walker, deep)


class Delta(Algorithm):
    name = "delta"
    families_type = DeltaFamilies
    merging = False

    def build(self, rows: Rows, n_records: int) -> tuple[Families, np.ndarray]:
        return build_delta_families(rows, n_records)

    def rows(self, families: DeltaFamilies, terminals: np.ndarray) -> Rows:
        rows = new_rows([], np.diff(families.column_start)[terminals])
        return rows._replace(values=delta_paths(families, terminals, rows.start))

    def new_walker(self, families: DeltaFamilies) -> DeltaWalker:
        return new_delta_walker(families)

    def match(self, families: DeltaFamilies, records: RecordScratch, walker: DeltaWalker) -> None:
        match_delta(families, records.tree, walker)

    def match_deep(
        self, families: DeltaFamilies, records: RecordScratch, walker: DeltaWalker, deep: DeepScratch
    ) -> None:
        match_delta_deep(families, records.tree, walker, deep)


ALGORITHMS: dict[str, Algorithm] = {algorithm.name: algorithm for algorithm in (Suffix(), Delta())}
