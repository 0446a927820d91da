"""Conditions are looked at once what wakes them holds: the least likely tests do, and the others wait."""

from typing import Any

import numpy as np
import oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import NAMESPACES, compared, documents, drawn

from sievecore.rows import new_rows
from xpathfilter import XPathIndex
from xpathfilter.algorithms import ALGORITHMS
from xpathfilter.compiler import compile_expression
from xpathfilter.draft import Draft
from xpathfilter.explanation import formula_text
from xpathfilter.parser import parse
from xpathfilter.programs import is_true, new_stack, waking_leaves
from xpathfilter.segment import Segment, Verified
from xpathfilter.words import LAZY, _read_test

pytestmark = pytest.mark.kernels

NOT = -1


def all_of(n: int) -> int:
    return -2 - 2 * n


def any_of(n: int) -> int:
    return -3 - 2 * n


CASES: dict[str, tuple[list[int], list[int] | None]] = {
    "a_leaf": ([3], [3]),
    "the_least_likely_of_all": ([4, 2, 3, all_of(3)], [2]),
    "each_of_any": ([4, 2, any_of(2)], [2, 4]),
    "any_is_as_likely_as_its_parts_together": ([0, 1, any_of(2), 3, all_of(2)], [0, 1]),
    "a_part_that_wakes_in_all": ([3, NOT, 4, all_of(2)], [4]),
    "nothing_wakes_a_denial": ([3, NOT], None),
    "nor_any_with_one": ([3, NOT, 4, any_of(2)], None),
    "nor_what_is_always_true": ([all_of(0)], None),
    "what_is_never_true_is_never_looked_at": ([any_of(0)], []),
    "inner_parts": ([4, 3, 0, all_of(2), any_of(2), 4, all_of(2)], [4]),
}
CHANCES = np.array([0.1, 0.2, 0.3, 0.4, 0.5])


@pytest.mark.parametrize("program, expected", CASES.values(), ids=CASES)
def test_a_program_is_woken_by(program: list[int], expected: list[int] | None) -> None:
    leaves, woken, unwoken = waking_leaves(new_rows([7, *program], [1 + len(program)]), 1, CHANCES)
    assert unwoken.tolist() == ([0] if expected is None else [])
    assert sorted(leaves.tolist()) == (expected or [])
    assert woken.tolist() == [0] * len(leaves)


programs = st.recursive(
    st.integers(0, 4).map(lambda leaf: [leaf]),
    lambda parts: (
        parts.map(lambda part: [*part, NOT])
        | st.tuples(st.lists(parts, max_size=3), st.sampled_from([all_of, any_of])).map(
            lambda drawn: [*(word for part in drawn[0] for word in part), drawn[1](len(drawn[0]))]
        )
    ),
    max_leaves=8,
)


@given(st.lists(programs, min_size=1, max_size=5))
def test_no_program_is_true_while_it_sleeps(several: list[list[int]]) -> None:
    rows = new_rows([word for program in several for word in program], [len(program) for program in several])
    leaves, woken, unwoken = waking_leaves(rows, 0, CHANCES)
    for number, program in enumerate(several):
        waking = set(leaves[woken == number].tolist())
        for held in range(32):
            stamps = np.array([held >> leaf & 1 for leaf in range(5)])
            true = is_true(np.array(program, np.int32), 0, len(program), stamps, 1, new_stack(np.array([len(program)])))
            assert not true or number in unwoken or any(stamps[leaf] for leaf in waking)


def segment_of(*expressions: str) -> Segment:
    draft = Draft(ALGORITHMS["suffix"])
    for number, text in enumerate(expressions):
        draft.add(number, compile_expression(parse(text)), Verified(text, ()))
    return draft.build()


def waking_tests(segment: Segment) -> list[str]:
    words = segment.words
    tests = np.flatnonzero(np.diff(words.woken_start))
    return [formula_text(_read_test(words, test)) for test in tests.tolist()]


@pytest.mark.parametrize("condition", ["price > 100 and @symbol = 'IBM'", "@symbol = 'IBM' and price > 100"])
def test_an_equality_wakes_rather_than_an_order(condition: str) -> None:
    assert waking_tests(segment_of(f"//quote[{condition}]")) == ["@symbol = 'IBM'"]


def test_the_subject_with_more_constants_wakes() -> None:
    several = [f"//quote[@kind = '{n % 2}' and @symbol = 'S{n}']" for n in range(10)]
    assert waking_tests(segment_of(*several)) == [f"@symbol = 'S{n}'" for n in range(10)]


def test_what_wakes_nothing_is_lazy() -> None:
    words = segment_of("//quote[@symbol = 'IBM' and price > 100]", "//quote[price > 7]").words
    lazy: Any = words.groups[:-1]["operation"] >= LAZY
    assert lazy.tolist() == [False, False, True]


SUBJECTS = ("@x", "@y", "text()", ".", "a", "b", "p:a")
CONSTANTS = ("1", "2", "0", "-1", "1.5", "'1'", "'x'", "'xy'", "''", "' 1 '", "'1e3'")
FUNCTIONS = ("contains", "starts-with")
PIECES = ("'1'", "'x'", "'y'")


def lazy_condition(choose: Any) -> str:
    """An equality, and some tests of all kinds that wait for it or not."""
    parts = [f"{choose(SUBJECTS)} = {choose(CONSTANTS)}"]
    for _ in range(choose((1, 2, 3))):
        part = compared(choose, choose(SUBJECTS), choose(CONSTANTS))
        if choose((True, False, False)):
            part = f"{choose(FUNCTIONS)}({choose(SUBJECTS)}, {choose(PIECES)})"
        parts.append(choose(("{}", "{}", "not({})")).format(part))
    return f"//{choose(('a', 'b', '*', 'p:a'))}[{choose((' and ', ' and ', ' or ')).join(parts)}]"


@given(st.lists(drawn(lazy_condition), min_size=20, max_size=40), st.lists(documents, min_size=3, max_size=3))
def test_lazy_tests_agree_with_lxml(expressions: list[str], texts: list[str]) -> None:
    index = XPathIndex()
    subscriptions = dict(zip(index.add_many(expressions, NAMESPACES).tolist(), expressions, strict=True))
    for text in texts:
        assert oracle.disagreements(index.match(text), subscriptions, text, NAMESPACES) == {}
