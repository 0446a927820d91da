"""From conjunctions that hold to subscriptions that match.

    conjunction 4 ──▶ 17, below n_slots: slot 17                            most have one taker and cost four bytes
    conjunction 9 ──▶ n_slots + 3: shared list 3 ──▶ slots 2 5, and ~0: program 0 decides for slot 11

A subscription in normal form matches as soon as one of its conjunctions holds. Where the normal form would have been
too large, its conjunctions only must hold, and a program of all its literals has the last word:

    leaves 0 1 2       0  1  ANY of 2  2  ALL of 2        written  0 1 -7 2 -6
"""

from typing import NamedTuple

import numpy as np

from boolmatch.conjunctions import holds
from sievecore.jit import kernel

__all__ = ["ALL", "ANY", "Targets", "is_true", "new_stack"]

ALL, ANY = -2, -3
"""Of n operands: minus 2 n more."""


class Targets(NamedTuple):
    """Who wants which conjunction."""

    targets: np.ndarray  # of a conjunction: a slot, or n_slots + a shared list
    shared_start: np.ndarray
    shared: np.ndarray  # a slot, or the complement of a program's number
    program_start: np.ndarray
    program: np.ndarray
    program_slots: np.ndarray


def new_stack(targets: Targets) -> np.ndarray:
    """Working memory for the longest program."""
    return np.zeros(int(np.diff(targets.program_start).max(initial=0)) + 1, np.bool_)


@kernel
def is_true(targets, leaves, number, event, flat, stack):
    """Whether the event satisfies a program."""
    top, first = 0, leaves.start[number]
    for position in range(targets.program_start[number], targets.program_start[number + 1]):
        word = targets.program[position]
        if word >= 0:
            stack[top] = holds(leaves, first + word, event, flat)
        else:
            wanted, last = word & 1 == 1, top
            top -= (-2 - word) // 2
            outcome = not wanted
            for i in range(top, last):
                if stack[i] == wanted:
                    outcome = wanted
            stack[top] = outcome
        top += 1
    return stack[0]
