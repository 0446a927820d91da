"""A frozen set of subscriptions: everything needed to match a document, in arrays that never change.

    words          which position records an element satisfies        phase 1
    families       which paths those records complete                  phase 2
    subscribers    who wants the paths that were found
    verified       for a formula that only must hold: the text for lxml

Threads share a segment without locks; what changes while matching is in a `SegmentScratch`, one for each thread.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from sievecore.jit import brief_kernel, kernel
from sievecore.scratch import ScratchPool
from xpathfilter.algorithms import ALGORITHMS, Algorithm, Families, Walker
from xpathfilter.deep import DeepScratch, new_deep_scratch
from xpathfilter.flatten import N_ELEMENTS, N_LEVELS, FlatDocument
from xpathfilter.parts import Parts, take_part
from xpathfilter.programs import Program, renumbered
from xpathfilter.records import BLOCK_NODES, OK, RecordScratch, find_records, grown, new_record_scratch
from xpathfilter.subscribers import (
    N_PENDING,
    ResultScratch,
    Subscribers,
    accept_formula,
    collect,
    new_result_scratch,
    write_ids,
)
from xpathfilter.suffix import match_suffix
from xpathfilter.verifier import Namespaces, holds
from xpathfilter.words import Words

__all__ = ["PENDING", "Segment", "SegmentScratch", "Verified", "match_once"]


class Verified(NamedTuple):
    """An expression that lxml decides."""

    text: str
    namespaces: Namespaces


ALL_PARTS, NO_PART = 1 << 30, -1
BRIEF_SLOTS, BRIEF_ELEMENTS = 4096, 1024
PENDING, RECORDS_FULL = -1, -2
"""What `match_once` returns in place of a number of ids."""


@dataclass(slots=True)
class SegmentScratch:
    """Working memory of one thread for one segment."""

    records: RecordScratch
    walker: Walker
    results: ResultScratch
    deep: DeepScratch | None = None


@dataclass(frozen=True)
class Segment:
    """See the module. `match` is the whole of it; the steps in between are there to be shared among threads."""

    algorithm: Algorithm
    words: Words
    families: Families
    subscribers: Subscribers
    verified: tuple[Verified | None, ...]
    scratches: ScratchPool[SegmentScratch] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Not a bound method: a segment that knows itself would live on until the garbage collector finds it.
        new_scratch = partial(_new_scratch, self.algorithm, self.words, self.families, self.subscribers)
        object.__setattr__(self, "scratches", ScratchPool(new_scratch))

    def __len__(self) -> int:
        return len(self.subscribers.ids)

    @property
    def ids(self) -> np.ndarray:
        return self.subscribers.ids

    @cached_property
    def needs_lxml(self) -> bool:
        """Whether lxml has the last word on some subscription."""
        return bool(self.subscribers.verified.any())

    def match(self, root: Any, flat: FlatDocument, alive: np.ndarray) -> np.ndarray:
        """The ids of living subscriptions that want the document, ascending."""
        with self.scratches.lend() as scratch:
            if self._is_plain(flat):
                return self._match_at_once(root, flat, scratch, alive)
            self.prepare(flat, scratch)
            self.walk(flat, scratch)
            return self.results(root, scratch, alive)

    def _is_plain(self, flat: FlatDocument) -> bool:
        """Whether one kernel can do both phases."""
        return self.algorithm.merging and not self.is_deep(flat)

    def _match_at_once(self, root: Any, flat: FlatDocument, scratch: SegmentScratch, alive: np.ndarray) -> np.ndarray:
        """Both phases in one kernel: a thread that comes back from a kernel may have to wait for the GIL."""
        is_brief = len(self) <= BRIEF_SLOTS and flat.counts[N_ELEMENTS] <= BRIEF_ELEMENTS
        match, n_ids = match_briefly if is_brief else match_once, RECORDS_FULL
        while n_ids == RECORDS_FULL:
            code, n_ids = match(
                self.words,
                self.families,
                self.subscribers,
                alive,
                flat,
                scratch.records,
                scratch.walker,
                scratch.results,
            )
            if code != OK:
                scratch.records = grown(scratch.records, code)
        if n_ids == PENDING:
            return self.verified_results(root, scratch, alive)
        return scratch.results.ids[:n_ids].copy()

    def match_parts(self, flat: FlatDocument, scratch: SegmentScratch, parts: Parts, n_parts: int = ALL_PARTS) -> None:
        """Both phases for so many parts of a document, or until none is left. What is found stays in the walker."""
        if self._is_plain(flat):
            part = NO_PART
            while n_parts:
                code, part, n_parts = match_parts(
                    self.words, self.families, flat, scratch.records, scratch.walker, parts, part, n_parts
                )
                if code != OK:
                    scratch.records = grown(scratch.records, code)
            return
        while n_parts and (part := take_part(parts)) < len(parts.bounds) - 1:
            self.prepare(flat, scratch, *parts.bounds[part : part + 2].tolist())
            self.walk(flat, scratch)
            n_parts -= 1

    def prepare(self, flat: FlatDocument, scratch: SegmentScratch, first: int = 0, end: int | None = None) -> None:
        """Phase 1 of some elements, or of all."""
        merging, end = self.algorithm.merging, int(flat.counts[N_ELEMENTS]) if end is None else end
        while (code := find_records(self.words, scratch.records, flat, merging, first, end)) != OK:
            scratch.records = grown(scratch.records, code)

    def walk(self, flat: FlatDocument, scratch: SegmentScratch) -> None:
        """Phase 2 of what phase 1 has found."""
        if self.is_deep(flat):
            deep = self._deep_scratch(scratch, int(flat.counts[N_LEVELS]))
            self.algorithm.match_deep(self.families, scratch.records, scratch.walker, deep)
        else:
            self.algorithm.match(self.families, scratch.records, scratch.walker)

    @staticmethod
    def is_deep(flat: FlatDocument) -> bool:
        """Whether a path of the document is longer than a position record."""
        return bool(flat.counts[N_LEVELS] > BLOCK_NODES)

    def results(self, root: Any, scratch: SegmentScratch, alive: np.ndarray) -> np.ndarray:
        """The ids that want what the walker has found, after lxml had its say."""
        collect(self.families.targets, self.subscribers, scratch.walker, scratch.results)
        return self.verified_results(root, scratch, alive)

    def verified_results(self, root: Any, scratch: SegmentScratch, alive: np.ndarray) -> np.ndarray:
        """The same when it is collected already, and formulas are pending."""
        results = scratch.results
        for formula in results.pending[: results.state[N_PENDING]].tolist():
            expression = self.verified[formula]
            if expression is not None and holds(expression.text, expression.namespaces, root):
                accept_formula(self.subscribers, formula, results)
        return results.ids[: write_ids(self.subscribers, alive, results)].copy()

    def wants(self) -> tuple[np.ndarray, np.ndarray]:
        """What each slot wants: a terminal, or -1 and a formula."""
        subscribers, targets = self.subscribers, self.families.targets
        slot_terminal = np.full(len(self), -1, np.int32)
        slot_formula = np.zeros(len(self), np.int32)
        alone = np.flatnonzero((targets >= 0) & (targets < len(self)))
        slot_terminal[targets[alone]] = alone
        n_sharing = np.diff(subscribers.shared_start)
        slot_terminal[subscribers.shared_slots] = np.repeat(subscribers.shared_terminals, n_sharing)
        n_wanting = np.diff(subscribers.formula_start)
        slot_formula[subscribers.formula_slots] = np.repeat(np.arange(len(n_wanting)), n_wanting)
        return slot_terminal, slot_formula

    def lanes(self, slots: np.ndarray) -> dict[str, int]:
        """How many of these slots are decided how: by one path, by a formula, by lxml after or without a formula."""
        slot_terminal, slot_formula = self.wants()
        formulas = slot_formula[slots][slot_terminal[slots] < 0]
        verified = self.subscribers.verified[formulas]
        unwoken = np.isin(formulas, self.subscribers.unwoken_formulas)
        return {
            "indexed": len(slots) - len(formulas),
            "formula": int((~verified).sum()),
            "verified": int((verified & ~unwoken).sum()),
            "unindexed": int((verified & unwoken).sum()),
        }

    def formula(self, formula: int) -> tuple[Program, Verified | None]:
        """A formula's program over terminals, and its text if lxml decides it."""
        subscribers = self.subscribers
        start, end = subscribers.program_start[formula : formula + 2].tolist()
        program = subscribers.program[start:end].tolist()
        number = {leaf: int(subscribers.shared_terminals[leaf]) for leaf in program if leaf >= 0}
        return renumbered(program, number), self.verified[formula]

    def arrays(self) -> dict[str, np.ndarray]:
        """Everything but the texts, by name."""
        parts = {"words": self.words, "families": self.families, "subscribers": self.subscribers}
        return {f"{part}.{name}": a for part, fields in parts.items() for name, a in fields._asdict().items()}

    @property
    def n_bytes(self) -> int:
        return sum(array.nbytes for array in self.arrays().values())

    @classmethod
    def from_arrays(
        cls, algorithm: str, arrays: Mapping[str, np.ndarray], verified: tuple[Verified | None, ...]
    ) -> "Segment":
        """The segment whose `arrays` these are."""

        def fields(part: str, of: Any) -> Any:
            return of(**{name: arrays[f"{part}.{name}"] for name in of._fields})

        chosen = ALGORITHMS[algorithm]
        families = fields("families", chosen.families_type)
        return cls(chosen, fields("words", Words), families, fields("subscribers", Subscribers), verified)

    def _deep_scratch(self, scratch: SegmentScratch, n_levels: int) -> DeepScratch:
        if scratch.deep is None or scratch.deep.words.shape[1] * 64 < n_levels:
            scratch.deep = new_deep_scratch(self.families, self.words.n_records, n_levels)
        return scratch.deep


def _new_scratch(algorithm: Algorithm, words: Words, families: Families, subscribers: Subscribers) -> SegmentScratch:
    return SegmentScratch(
        new_record_scratch(words),
        algorithm.new_walker(families),
        new_result_scratch(subscribers),
    )


@kernel
def match_once(words, families, subscribers, alive, flat, records, walker, results):
    """Match a document against suffix families: OK and how many ids were written, or PENDING; or what is full."""
    code = find_records(words, records, flat, True, 0, flat.counts[N_ELEMENTS])
    if code != OK:
        return code, RECORDS_FULL
    match_suffix(families, records.blocks, walker)
    if collect(families.targets, subscribers, walker, results):
        return code, PENDING
    return code, write_ids(subscribers, alive, results)


@brief_kernel
def match_briefly(words, families, subscribers, alive, flat, records, walker, results):
    """The same with the GIL, which a document would otherwise have to wait for after each of the small layers."""
    return match_once(words, families, subscribers, alive, flat, records, walker, results)


@kernel
def match_parts(words, families, flat, records, walker, parts, part, n_parts):
    """Match so many parts against suffix families, `part` first; tell what is full, where, and how many more."""
    while n_parts > 0:
        if part == NO_PART:
            part = take_part(parts)
        if part == len(parts.bounds) - 1:
            break
        code = find_records(words, records, flat, True, parts.bounds[part], parts.bounds[part + 1])
        if code != OK:
            return code, part, n_parts
        match_suffix(families, records.blocks, walker)
        part, n_parts = NO_PART, n_parts - 1
    return OK, NO_PART, 0
