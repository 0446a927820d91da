"""A frozen set of subscriptions: everything needed to match events, in arrays that never change.

    filed     spaces: from values to codes; table: conjunctions of coded predicates; targets: who wants them
    filing    where the algorithm looks for candidates

    Batch ── building ──▶ Segment ── reading ──▶ Batch: the same subscriptions again, for the next segment

Threads share a segment without locks.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from boolmatch.algorithms import ALGORITHMS, Algorithm
from boolmatch.matching import N_COUNTS, Filed, Work, new_work
from sievecore.scratch import ScratchPool

__all__ = ["Segment"]

FILED_TYPES = {name: kind for name, kind in Filed.__annotations__.items() if name != "ids"}


@dataclass(frozen=True)
class Segment:
    """See the module."""

    algorithm: Algorithm
    filed: Filed
    filing: Any
    scratches: ScratchPool[Work] = field(init=False, repr=False, compare=False)
    counts: np.ndarray = field(init=False, repr=False, compare=False)
    """What matching has done here so far, as in `Work.counts`."""

    def __post_init__(self) -> None:
        n_scratch = self.algorithm.scratch_size(self.filing)
        object.__setattr__(self, "scratches", ScratchPool(partial(new_work, self.filed, n_scratch)))
        object.__setattr__(self, "counts", np.zeros(N_COUNTS, np.int64))

    @property
    def ids(self) -> np.ndarray:
        return self.filed.ids

    def __len__(self) -> int:
        return len(self.filed.ids)

    def arrays(self) -> dict[str, np.ndarray]:
        """Everything, by name."""
        parts = {name: getattr(self.filed, name) for name in FILED_TYPES} | {"filing": self.filing}
        named = {f"{part}.{name}": array for part, arrays in parts.items() for name, array in arrays._asdict().items()}
        return {"ids": self.filed.ids, **named}

    @property
    def n_bytes(self) -> int:
        return sum(array.nbytes for array in self.arrays().values())

    def facts(self) -> dict[str, Any]:
        """What it is filed by, and what is worth knowing about that."""
        filed_in = sum(array.nbytes for array in self.filing)
        conjunctions = self.filed.table.n_conjunctions
        described = self.algorithm.describe(self.filing)
        return {"algorithm": self.algorithm.name, "conjunctions": conjunctions, "filing_bytes": filed_in, **described}

    @classmethod
    def from_arrays(cls, algorithm: str, arrays: Mapping[str, np.ndarray]) -> "Segment":
        """The segment whose `arrays` these are."""

        def fields(part: str, of: Any) -> Any:
            return of(**{name: arrays[f"{part}.{name}"] for name in of._fields})

        chosen = ALGORITHMS[algorithm]
        filed = Filed(arrays["ids"], **{part: fields(part, of) for part, of in FILED_TYPES.items()})
        return cls(chosen, filed, fields("filing", chosen.filing_type))
