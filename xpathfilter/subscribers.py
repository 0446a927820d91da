"""From what was found to who wants it: terminals become subscription ids.

    found          targets                                  slots          ids
    terminal 4 ──▶ 17, below n_slots: slot 17          ──▶  17        ──▶  1042
    terminal 9 ──▶ n_slots + 3: shared terminal 3      ──▶  2 5 8     ──▶  1003 1010 1017
                     └─▶ wakes formula 0: (3 and not 6) ──▶  11        ──▶  1023, if true (and if lxml agrees)

A slot is a subscription of a segment; ids ascend with slots. Most paths belong to one subscription only and cost
four bytes and one look. Slots are collected as bits, so results come out sorted and without repetition, and
`alive` masks those that were removed.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sievecore.bits import lowest_bit, prefetch
from sievecore.jit import kernel
from sievecore.rows import new_rows, rows_by_key
from xpathfilter.programs import Program, is_true, new_stack, renumbered, waking_leaves
from xpathfilter.terminals import forget_found

__all__ = [
    "ResultScratch",
    "Subscribers",
    "accept_formula",
    "build_subscribers",
    "collect",
    "new_result_scratch",
    "write_ids",
]

STAMP, N_PENDING = range(2)
AHEAD = 16  # how many terminals before it is looked at a target is asked for


class Subscribers(NamedTuple):
    """Who wants which terminal of a segment. Leaves of formulas are shared terminals."""

    ids: np.ndarray
    shared_terminals: np.ndarray  # ascending
    shared_start: np.ndarray  # of a shared terminal: the slots that want just it
    shared_slots: np.ndarray
    woken_start: np.ndarray  # of a shared terminal: the formulas to look at once it is found
    woken_formulas: np.ndarray
    unwoken_formulas: np.ndarray  # to look at for every document
    program_start: np.ndarray
    program: np.ndarray
    verified: np.ndarray  # of a formula: whether lxml has the last word
    formula_start: np.ndarray  # of a formula: the slots that want it
    formula_slots: np.ndarray


class ResultScratch(NamedTuple):
    """Working memory of one thread. `slot_bits` is all zero between documents."""

    state: np.ndarray
    slot_bits: np.ndarray
    shared_stamp: np.ndarray
    formula_stamp: np.ndarray
    pending: np.ndarray  # formulas that are true and wait for lxml
    stack: np.ndarray
    ids: np.ndarray


def new_result_scratch(subscribers: Subscribers) -> ResultScratch:
    """Working memory for these subscribers."""
    n_slots, n_formulas = len(subscribers.ids), len(subscribers.verified)
    return ResultScratch(
        state=np.zeros(2, np.int64),
        slot_bits=np.zeros(n_slots // 64 + 1, np.uint64),
        shared_stamp=np.zeros(len(subscribers.shared_terminals), np.int64),
        formula_stamp=np.zeros(n_formulas, np.int64),
        pending=np.zeros(n_formulas, np.int32),
        stack=new_stack(np.diff(subscribers.program_start)),
        ids=np.empty(n_slots, np.int64),
    )


def build_subscribers(
    ids: np.ndarray,
    slot_terminal: np.ndarray,
    slot_formula: np.ndarray,
    programs: Sequence[Program],
    verified: Sequence[bool],
    targets: np.ndarray,
) -> Subscribers:
    """Fill `targets` and say who wants what.

    A slot wants one terminal, or with a terminal of -1 one formula; the leaves of `programs` are terminals.
    """
    plain, choosy = np.flatnonzero(slot_terminal >= 0), np.flatnonzero(slot_terminal < 0)
    leaves = sorted({word for program in programs for word in program if word >= 0})
    n_wanting = np.bincount(slot_terminal[plain], minlength=len(targets))
    n_wanting[leaves] += 2
    shared_terminals = np.flatnonzero(n_wanting > 1).astype(np.int32)
    alone = plain[n_wanting[slot_terminal[plain]] == 1]
    together = plain[n_wanting[slot_terminal[plain]] > 1]
    targets[slot_terminal[alone]] = alone
    targets[shared_terminals] = len(ids) + np.arange(len(shared_terminals))

    numbers = dict(zip(leaves, np.searchsorted(shared_terminals, leaves).tolist(), strict=True))
    numbered = [renumbered(program, numbers) for program in programs]
    formulas = new_rows([word for program in numbered for word in program], [len(program) for program in numbered])
    leaf, woken, unwoken = waking_leaves(formulas, 0, np.ones(len(shared_terminals)))
    wanted = np.searchsorted(shared_terminals, slot_terminal[together])
    by_terminal = rows_by_key(wanted, together, len(shared_terminals))
    by_leaf = rows_by_key(leaf, woken, len(shared_terminals))
    by_formula = rows_by_key(slot_formula[choosy], choosy, len(programs))
    return Subscribers(
        ids=ids,
        shared_terminals=shared_terminals,
        shared_start=by_terminal.start,
        shared_slots=by_terminal.values,
        woken_start=by_leaf.start,
        woken_formulas=by_leaf.values,
        unwoken_formulas=unwoken,
        program_start=formulas.start,
        program=formulas.values,
        verified=np.array(verified, np.bool_),
        formula_start=by_formula.start,
        formula_slots=by_formula.values,
    )


@kernel
def collect(targets, subscribers, walker, scratch):
    """Turn the walker's terminals into slot bits and pending formulas; return how many are pending.

    The walker goes out ready for the next document.
    """
    n_slots = len(subscribers.ids)
    scratch.state[STAMP] += 1
    scratch.state[N_PENDING] = 0
    n_found = walker.n_found[0]
    for i in range(n_found):
        prefetch(targets, np.int64(walker.found[min(i + AHEAD, n_found - 1)]))
        target = targets[walker.found[i]]
        if target < n_slots:
            scratch.slot_bits[target >> 6] |= np.uint64(1) << np.uint64(target & 63)
        else:
            shared = target - n_slots
            scratch.shared_stamp[shared] = scratch.state[STAMP]
            _accept(subscribers.shared_start, subscribers.shared_slots, shared, scratch.slot_bits)
    if len(subscribers.verified):
        for i in range(n_found):
            shared = targets[walker.found[i]] - n_slots
            if shared >= 0:
                for j in range(subscribers.woken_start[shared], subscribers.woken_start[shared + 1]):
                    _decide(subscribers, subscribers.woken_formulas[j], scratch)
        for formula in subscribers.unwoken_formulas:
            _decide(subscribers, formula, scratch)
    forget_found(walker)
    return scratch.state[N_PENDING]


@kernel
def _decide(subscribers, formula, scratch):
    stamp = scratch.state[STAMP]
    if scratch.formula_stamp[formula] == stamp:
        return
    scratch.formula_stamp[formula] = stamp
    start, end = subscribers.program_start[formula], subscribers.program_start[formula + 1]
    if is_true(subscribers.program, start, end, scratch.shared_stamp, stamp, scratch.stack):
        if subscribers.verified[formula]:
            scratch.pending[scratch.state[N_PENDING]] = formula
            scratch.state[N_PENDING] += 1
        else:
            accept_formula(subscribers, formula, scratch)


@kernel
def accept_formula(subscribers, formula, scratch):
    """Set the bits of all who want a formula."""
    _accept(subscribers.formula_start, subscribers.formula_slots, formula, scratch.slot_bits)


@kernel
def _accept(start, slots, key, slot_bits):
    for i in range(start[key], start[key + 1]):
        slot_bits[slots[i] >> 6] |= np.uint64(1) << np.uint64(slots[i] & 63)


@kernel
def write_ids(subscribers, alive, scratch):
    """Write the ids of the living slots whose bits are set to `scratch.ids`, ascending; return how many."""
    n_ids = 0
    for i in range(len(scratch.slot_bits)):
        word = scratch.slot_bits[i]
        if word:
            scratch.slot_bits[i] = 0
            word &= alive[i]
            while word:
                scratch.ids[n_ids] = subscribers.ids[i * 64 + np.int64(lowest_bit(word))]
                n_ids += 1
                word &= word - np.uint64(1)
    return n_ids
