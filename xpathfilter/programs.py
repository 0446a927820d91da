"""`and`, `or` and `not` as a few integers: conditions over value tests, formulas over paths.

    (0 or 1) and not 2        0  1  ANY of 2  2  NOT  ALL of 2        written  0 1 -7 2 -1 -6

A number from 0 up is a leaf, -1 is NOT, -2 - 2n is ALL of the n operands before it and -3 - 2n is ANY of them.
What a leaf stands for is the caller's affair: it holds if its cell in `stamps` has the current stamp.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

import numpy as np

from sievecore.jit import kernel
from xpathfilter.plan import AllOf, AnyOf, Combination, Not, all_of, any_of, negation

__all__ = ["Program", "is_true", "new_stack", "read_program", "renumbered", "waking_leaves", "write_program"]

NOT = -1

Program = tuple[int, ...]
Value = TypeVar("Value")


def write_program(combination: Combination, leaf: Callable[[Combination], int]) -> Program:
    """The combination in postfix, its leaves numbered by `leaf`."""
    return tuple(_write(combination, leaf))


def _write(combination: Combination, leaf: Callable[[Combination], int]) -> Iterator[int]:
    match combination:
        case Not(part):
            yield from _write(part, leaf)
            yield NOT
        case AllOf(parts) | AnyOf(parts):
            for part in parts:
                yield from _write(part, leaf)
            yield (-2 if isinstance(combination, AllOf) else -3) - 2 * len(parts)
        case _:
            yield leaf(combination)


def read_program(program: Sequence[int], leaf: Callable[[int], Combination]) -> Combination:
    """The combination that `program` was written from."""
    return _fold(program, leaf, negation, all_of, any_of)


def renumbered(program: Sequence[int], number: Mapping[int, int]) -> Program:
    """The same program over other leaves."""
    return tuple(number[word] if word >= 0 else word for word in program)


def waking_leaves(program: Sequence[int]) -> frozenset[int] | None:
    """Leaves of which at least one must hold for the program to be true; None when there are no such."""
    return _fold(program, lambda leaf: frozenset([leaf]), lambda part: None, _fewest, _united)


def _fewest(parts: list[frozenset[int] | None]) -> frozenset[int] | None:
    return min((part for part in parts if part is not None), key=len, default=None)


def _united(parts: list[frozenset[int] | None]) -> frozenset[int] | None:
    known = [part for part in parts if part is not None]
    return frozenset[int]().union(*known) if len(known) == len(parts) else None


def _fold(
    program: Sequence[int],
    leaf: Callable[[int], Value],
    negate: Callable[[Value], Value],
    join_all: Callable[[list[Value]], Value],
    join_any: Callable[[list[Value]], Value],
) -> Value:
    stack: list[Value] = []
    for word in program:
        if word >= 0:
            stack.append(leaf(word))
        elif word == NOT:
            stack.append(negate(stack.pop()))
        else:
            first = len(stack) - (-2 - word) // 2
            parts = stack[first:]
            del stack[first:]
            stack.append(join_any(parts) if word & 1 else join_all(parts))
    return stack[0]


@kernel
def is_true(program, start, end, stamps, stamp, stack):
    """Whether program[start:end] is true; `stack` is as long as the longest program."""
    top = 0
    for position in range(start, end):
        word = program[position]
        if word >= 0:
            stack[top] = stamps[word] == stamp
            top += 1
        elif word == NOT:
            stack[top - 1] = not stack[top - 1]
        else:
            last, disjunction = top, word & 1 == 1
            top -= (-2 - word) // 2
            outcome = not disjunction
            for i in range(top, last):
                if stack[i] == disjunction:
                    outcome = disjunction
            stack[top] = outcome
            top += 1
    return stack[0]


def new_stack(lengths: np.ndarray) -> np.ndarray:
    """A stack for the longest of some programs."""
    return np.zeros(int(lengths.max(initial=0)) + 1, np.bool_)
