"""The normal form says what the expression says, and no expression makes it explode."""

from typing import Any

import pytest
from bool_oracle import Decided as Decider
from bool_oracle import Event, matches
from bool_strategies import decisions, events, expressions
from hypothesis import given
from hypothesis import strategies as st
from literal_oracle import holds

from boolmatch.expression import Expression
from boolmatch.normal_form import MAX_LITERALS, AllOf, AnyOf, Formula, NormalForm, normalize, to_formula
from boolmatch.parser import MAX_DEPTH, parse


def formula_holds(formula: Formula, event: Event, decided: Decider) -> bool:
    match formula:
        case AllOf(parts):
            return all(formula_holds(part, event, decided) for part in parts)
        case AnyOf(parts):
            return any(formula_holds(part, event, decided) for part in parts)
        case _:
            return holds(formula, event, decided)


def candidate(form: NormalForm, event: Event, decided: Decider) -> bool:
    return any(all(holds(one, event, decided) for one in conjunction) for conjunction in form.conjunctions)


@given(expressions(), events(), decisions())
def test_the_formula_holds_when_the_expression_is_true(
    expression: Expression, event: dict[str, Any], decided: Decider
) -> None:
    assert formula_holds(to_formula(expression, True), event, decided) == matches(expression, event, decided)


@given(expressions(max_leaves=16), events(), decisions(), st.integers(1, 8) | st.just(64))
def test_an_exact_form_decides_and_another_one_is_necessary(
    expression: Expression, event: dict[str, Any], decided: Decider, limit: int
) -> None:
    form = normalize(expression, limit)
    expected = matches(expression, event, decided)
    found = candidate(form, event, decided)
    assert len(form.conjunctions) <= limit
    if form.exact:
        assert found == expected
        assert form.formula is None
    else:
        assert found or not expected
        assert form.formula is not None
        assert formula_holds(form.formula, event, decided) == expected


def shape(text: str, limit: int = 64) -> tuple[bool, list[list[str]]]:
    """Whether the form is exact, and the attributes of each conjunction."""
    form = normalize(parse(text), limit)
    return form.exact, [[one.attribute for one in conjunction] for conjunction in form.conjunctions]


SHAPES: dict[str, tuple[str, list[list[str]]]] = {
    "one_atom": ("a = 1", [["a"]]),
    "and_is_one_conjunction": ("a = 1 AND b = 2 AND c = 3", [["a", "b", "c"]]),
    "or_is_one_each": ("a = 1 OR b = 2", [["a"], ["b"]]),
    "and_is_multiplied_out": ("(a OR b) AND (c OR d)", [["a", "c"], ["a", "d"], ["b", "c"], ["b", "d"]]),
    "not_turns_and_into_or": ("NOT (a AND b)", [["a"], ["b"]]),
    "not_turns_or_into_and": ("NOT (a OR b)", [["a", "b"]]),
    "a_list_is_one_literal": ("a IN (1, 2, 3) AND b <> 1 AND c NOT IN (1, 2)", [["a", "b", "c"]]),
    "alternatives_about_one_attribute_are_one_literal": ("a = 1 OR a > 5 OR b = 2 OR a = 3", [["a"], ["b"]]),
    "but_not_of_two_types": ("a = 1 OR a = 'x'", [["a"], ["a"]]),
    "nor_when_every_value_counts": ("NOT a = 1 OR NOT a = 2", [["a"], ["a"]]),
    "nor_with_a_pattern": ("a LIKE '%x' OR a LIKE '%y' OR a = 'z'", [["a"], ["a"], ["a"]]),
    "nor_with_null": ("a IS NULL OR a = 2", [["a"], ["a"]]),
    "two_conditions_on_one_attribute_stay_two": ("a > 1 AND a < 5", [["a", "a"]]),
    "repetitions_go": ("a = 1 AND b = 2 AND a = 1", [["a", "b"]]),
    "a_longer_conjunction_goes": ("a = 1 OR a = 1 AND b = 2", [["a"]]),
    "equal_conjunctions_are_one": ("a AND b OR b AND a", [["a", "b"]]),
    "what_never_holds_takes_its_conjunction_along": ("a BETWEEN 2 AND 1 AND b = 1 OR c = 1", [["c"]]),
    "nothing_ever_holds": ("a BETWEEN 2 AND 1", []),
    "true_holds_always": ("TRUE", [[]]),
    "false_never": ("FALSE AND a", []),
    "true_adds_nothing": ("a AND TRUE", [["a"]]),
    "true_takes_all": ("a OR TRUE", [[]]),
}


@pytest.mark.parametrize("text, expected", SHAPES.values(), ids=SHAPES)
def test_the_conjunctions_of(text: str, expected: list[list[str]]) -> None:
    assert shape(text) == (True, expected)


def cnf(n_parts: int, tail: str = "") -> str:
    return " AND ".join(f"(a{number} = 1 OR b{number} = 1)" for number in range(n_parts)) + tail


BEYOND: dict[str, tuple[str, list[list[str]]]] = {
    "certain_parts_are_kept": (cnf(100, " AND y = 1 AND z = 1"), [["y", "z"]]),
    "else_the_smallest_choice": ("(a OR b OR c) AND (d OR e) AND (f OR g OR h)", [["d"], ["e"]]),
    "alternatives_add_up": ("(a OR b) AND (c OR d) AND (e OR f) AND y OR z", [["y"], ["z"]]),
    "too_many_alternatives_leave_nothing": (" OR ".join(f"a{number}" for number in range(9)), [[]]),
    "one_part_without_an_index_is_enough_for_that": ("z OR " + " OR ".join(f"a{n}" for n in range(9)), [[]]),
    "but_an_and_still_has_its_other_part": ("z AND (" + " OR ".join(f"a{n}" for n in range(9)) + ")", [["z"]]),
}


@pytest.mark.parametrize("text, expected", BEYOND.values(), ids=BEYOND)
def test_beyond_the_limit(text: str, expected: list[list[str]]) -> None:
    assert shape(text, limit=6) == (False, expected)


def test_the_limit_itself_is_allowed() -> None:
    assert [len(shape(cnf(6))[1]), shape(cnf(6))[0]] == [64, True]
    assert shape(cnf(7))[0] is False


def test_many_conjunctions_of_many_literals_are_too_many() -> None:
    certain = " AND ".join(f"c{number} = 1" for number in range(MAX_LITERALS // 2))
    exact, conjunctions = shape(f"{certain} AND (a OR b)")
    assert (exact, len(conjunctions), len(conjunctions[0])) == (False, 1, MAX_LITERALS // 2)
    assert shape(f"{certain} AND (a)")[0] is True


def deep(n_levels: int) -> str:
    text = "a0 = 0"
    for level in range(1, n_levels):
        text = f"({text}) {'AND' if level % 2 else 'OR'} a{level} = 1"
    return text


LARGE = {
    "a_long_and": (" AND ".join(f"a{number} = 1" for number in range(50_000)), True, 1),
    "a_long_or": (" OR ".join(f"a{number} = 1" for number in range(50_000)), False, 1),
    "a_long_or_about_one_attribute": (" OR ".join(f"a = {number}" for number in range(50_000)), True, 1),
    "a_long_or_of_ands": (" OR ".join(f"a = {number} AND b = 1" for number in range(30_000)), False, 1),
    "a_long_and_of_ors": (cnf(20_000), False, 2),
    "a_deep_tree": (deep(MAX_DEPTH), True, MAX_DEPTH // 2),
    "a_deep_tree_denied": (f"NOT ({deep(MAX_DEPTH - 1)})", True, MAX_DEPTH // 2),
}


@pytest.mark.parametrize("text, exact, n_conjunctions", LARGE.values(), ids=LARGE)
def test_large_expressions_stay_small(text: str, exact: bool, n_conjunctions: int) -> None:
    form = normalize(parse(text))
    assert (form.exact, len(form.conjunctions)) == (exact, n_conjunctions)
