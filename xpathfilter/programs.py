"""`and`, `or` and `not` as a few integers: conditions over value tests, formulas over paths.

    (0 or 1) and not 2        0  1  ANY of 2  2  NOT  ALL of 2        written  0 1 -7 2 -1 -6

A number from 0 up is a leaf, -1 is NOT, -2 - 2n is ALL of the n operands before it and -3 - 2n is ANY of them.
What a leaf stands for is the caller's affair: it holds if its cell in `stamps` has the current stamp.

A program is looked at only once one of its **waking** leaves holds, without which it cannot be true:

    price > 100 and @symbol = 'IBM'        either would do; @symbol = 'IBM' is the less likely one to hold
    @a = 1 or @b = 2                       both: any of them can make it true
    not(@a = 1)                            none, it may be true whatever holds
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

import numpy as np

from sievecore.jit import builder, kernel
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


@builder
def waking_leaves(programs, skip, chances):
    """Leaves of which one must hold for a program to be true, those that are the least likely to hold.

    Programs are rows after their first `skip` values; `chances` says how likely each leaf holds. Returns leaves and
    the program that each wakes, and the programs that nothing wakes. A row without a program has no place in these.
    """
    longest = 0
    for program in range(len(programs.start) - 1):
        longest = max(longest, programs.start[program + 1] - programs.start[program])
    sizes, weights = np.empty(longest, np.int64), np.empty(longest, np.float64)
    chosen = np.zeros(longest, np.bool_)
    leaves, woken = np.empty(len(programs.values), np.int32), np.empty(len(programs.values), np.int32)
    unwoken = np.empty(len(programs.start) - 1, np.int32)
    n_leaves = n_unwoken = 0
    for program in range(len(programs.start) - 1):
        words = programs.values[programs.start[program] + skip : programs.start[program + 1]]
        if len(words) == 0:
            continue
        _weigh(words, chances, sizes, weights)
        if weights[len(words) - 1] == np.inf:
            unwoken[n_unwoken] = program
            n_unwoken += 1
        else:
            before = n_leaves
            n_leaves = _choose(words, sizes, weights, chosen, leaves, n_leaves)
            woken[before:n_leaves] = program
    return leaves[:n_leaves].copy(), woken[:n_leaves].copy(), unwoken[:n_unwoken].copy()


@kernel
def _weigh(words, chances, sizes, weights):
    """For the part that ends at each word: how many words it has, and how likely it wakes the program."""
    for position in range(len(words)):
        word = words[position]
        sizes[position], weights[position] = 1, np.inf
        if word >= 0:
            weights[position] = chances[word]
        elif word == NOT:
            sizes[position] += sizes[position - 1]
        else:
            if word & 1:
                weights[position] = 0.0
            for _ in range((-2 - word) // 2):
                part = position - sizes[position]
                sizes[position] += sizes[part]
                if word & 1:
                    weights[position] += weights[part]
                else:
                    weights[position] = min(weights[position], weights[part])


@kernel
def _choose(words, sizes, weights, chosen, leaves, n_leaves):
    """Append the leaves that wake a program: of ALL the least likely part, of ANY all parts."""
    chosen[: len(words)] = False
    chosen[len(words) - 1] = True
    for position in range(len(words) - 1, -1, -1):
        word = words[position]
        if chosen[position] and word >= 0:
            leaves[n_leaves] = word
            n_leaves += 1
        elif chosen[position]:
            part = best = position - 1
            for _ in range((-2 - word) // 2):
                chosen[part] = word & 1
                best = part if weights[part] < weights[best] else best
                part -= sizes[part]
            chosen[best] |= word & 1 == 0
    return n_leaves


def new_stack(lengths: np.ndarray) -> np.ndarray:
    """A stack for the longest of some programs."""
    return np.zeros(int(lengths.max(initial=0)) + 1, np.bool_)
