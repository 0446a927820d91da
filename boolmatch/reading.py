"""From a segment back to a batch: the subscriptions that are still wanted, as rows with constants.

targets turned round ──▶ which conjunctions and programs the wanted slots need ──▶ their codes ──▶ rows
"""

import itertools

import numpy as np

from boolmatch.batches import LINK, NO_PROGRAM, Batch
from boolmatch.conjunctions import Conjunctions
from boolmatch.matching import Filed
from boolmatch.rows import PredicateRows
from boolmatch.spaces import DETAIL_BIT, Spaces, decode_rows
from sievecore.breathing import breathe, breathing
from sievecore.jit import builder
from sievecore.ranking import ranked
from sievecore.rows import offsets

__all__ = ["read_batch", "read_lists", "slot_links", "spaces_texts"]


def read_batch(filed: Filed, slots: np.ndarray) -> Batch:
    """The subscriptions in these slots."""
    links = slot_links(filed, slots)
    conjunctions, rank = ranked(links["conjunction"], filed.table.n_conjunctions)
    links["conjunction"] = rank[links["conjunction"]]
    decided = links["program"] >= 0
    programs, rank = ranked(links["program"][decided], filed.leaves.n_conjunctions)
    links["program"][decided] = rank[links["program"][decided]]
    breathe()
    texts = spaces_texts(filed.spaces)
    rows, lengths = read_lists(filed.spaces, filed.table, conjunctions, texts)
    leaves, leaf_lengths = read_lists(filed.spaces, filed.leaves, programs, texts)
    program_lengths, program = _slices(filed.targets.program_start, programs)
    return Batch(
        filed.ids[slots],
        rows,
        lengths,
        links,
        leaves,
        leaf_lengths,
        program_lengths,
        filed.targets.program[program],
    )


def slot_links(filed: Filed, slots: np.ndarray) -> np.ndarray:
    """Which conjunctions and programs belong to the subscriptions in these slots."""
    wanted = np.zeros(len(filed.ids), np.bool_)
    wanted[slots] = True
    links = np.empty(int(_count_links(filed, wanted)), LINK)
    _write_links(filed, wanted, links)
    return links


@builder
def _count_links(filed, wanted):
    return _write_links(filed, wanted, np.empty(0, LINK))


@builder
def _write_links(filed, wanted, links):
    """Write as many links of wanted slots as there is room for; return how many there are."""
    targets, n_slots = filed.targets, len(filed.ids)
    n_links = 0
    for conjunction in range(len(targets.targets)):
        target = targets.targets[conjunction]
        first = 0 if target < n_slots else targets.shared_start[target - n_slots]
        end = 1 if target < n_slots else targets.shared_start[target - n_slots + 1]
        for i in range(first, end):
            item = target if target < n_slots else targets.shared[i]
            slot = item if item >= 0 else targets.program_slots[~item]
            if wanted[slot]:
                if n_links < len(links):
                    link = links[n_links]
                    link.conjunction, link.program = conjunction, NO_PROGRAM if item >= 0 else ~item
                    link.subscription_id = filed.ids[slot]
                n_links += 1
    return n_links


def spaces_texts(spaces: Spaces) -> list[str]:
    """The strings of all attributes, as rows number them."""
    content, bounds = spaces.text.tobytes(), spaces.text_bounds.tolist()
    return [content[a:b].decode() for a, b in breathing(itertools.pairwise(bounds))]


def read_lists(
    spaces: Spaces, table: Conjunctions, chosen: np.ndarray, texts: list[str]
) -> tuple[PredicateRows, np.ndarray]:
    """The rows of the chosen lists of predicates, and how many each has."""
    lengths, positions = _slices(table.start, chosen)
    predicates = table.predicates[positions]
    breathe()
    rows = decode_rows(spaces, predicates)
    breathe()
    detailed = np.flatnonzero(predicates["attribute"] & DETAIL_BIT)
    details = table.details[np.searchsorted(table.detailed, positions[detailed])]
    rows["detail"][detailed] = np.arange(len(details))
    n_ranges, ranges = _slices(table.range_start, details)
    n_codes, codes = _slices(table.like_start, details)
    read = PredicateRows(
        rows,
        texts,
        offsets(n_ranges),
        decode_rows(spaces, table.ranges[ranges]),
        offsets(n_codes),
        table.like_codes[codes],
        table.like_negated[details],
    )
    return read, lengths


@builder
def _slices(start, chosen):
    """How long each chosen slice is, and all the positions in them."""
    lengths = np.empty(len(chosen), np.int64)
    for i in range(len(chosen)):
        lengths[i] = start[chosen[i] + 1] - start[chosen[i]]
    positions, n_positions = np.empty(lengths.sum(), np.int64), 0
    for i in range(len(chosen)):
        for j in range(lengths[i]):
            positions[n_positions] = start[chosen[i]] + j
            n_positions += 1
    return lengths, positions
