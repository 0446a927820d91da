"""Why, and why not: each predicate held, failed or was unknown, in the order in which it was looked at."""

from typing import Any

import pytest
from bool_oracle import matches
from bool_strategies import XPATHS, decisions, events, expressions
from hypothesis import given
from test_boolmatch_matching import keys

from boolmatch import BooleanIndex
from boolmatch.algorithms import ALGORITHMS
from boolmatch.expression import Expression, render

pytestmark = pytest.mark.kernels

CASES: dict[str, tuple[str, dict[str, Any], str]] = {
    "held": ("a = 1 AND b = 'x'", {"a": 1, "b": "x"}, "a = 1 held; b = 'x' held"),
    "failed": ("a = 1 AND b = 'x'", {"a": 2, "b": "x"}, "a = 1 failed first; b = 'x' held"),
    "absent": ("a > 1.5", {}, "a > 1.5 is unknown first"),
    "of_another_type": ("a BETWEEN 1 AND 2", {"a": "1"}, "a BETWEEN 1 AND 2 is unknown first"),
    "one_of_two_is_of_another_type": ("a < 1", {"a": [5, "x"]}, "a < 1 is unknown first"),
    "not": ("NOT a > 1", {"a": 2}, "NOT a > 1 failed first"),
    "not_with_a_value_of_another_type": ("NOT a > 1", {"a": [0, "x"]}, "NOT a > 1 is unknown first"),
    "not_with_both": ("NOT a > 1", {"a": [2, "x"]}, "NOT a > 1 failed first"),
    "in": ("a IN (2, 1)", {"a": 1}, "a IN (1, 2) held"),
    "not_in": ("a NOT IN ('x', 'y')", {"a": "x"}, "NOT a IN ('x', 'y') failed first"),
    "unequal": ("a <> 'it''s'", {"a": "it's"}, "a <> 'it''s' failed first"),
    "like": ("a LIKE 'x%y'", {"a": "xy"}, "a LIKE 'x%y' held"),
    "not_like": ("a NOT LIKE 'x%y'", {"a": "xy"}, "a NOT LIKE 'x%y' failed first"),
    "null": ("a IS NULL", {"a": 1}, "a IS NULL failed first"),
    "not_null": ("a IS NOT NULL", {}, "a IS NOT NULL failed first"),
    "a_truth_value": ("a", {"a": False}, "a = TRUE failed first"),
}


@pytest.mark.parametrize("expression, event, expected", CASES.values(), ids=CASES)
def test_findings(expression: str, event: dict[str, Any], expected: str) -> None:
    index = BooleanIndex("scan")
    explanation = index.explain(index.add(expression), event)
    verdict = "does not match" if "first" in expected else "matches"
    assert str(explanation) == f"{verdict}; filed by scan\n  way 1: {expected}"


def test_what_can_never_be_true_says_so() -> None:
    index = BooleanIndex()
    assert "it can never be true" in str(index.explain(index.add("a BETWEEN 2 AND 1"), {"a": 1}))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@given(expression=expressions(), event=events(), decided=decisions())
def test_an_explanation_agrees_with_the_match(
    algorithm: str, expression: Expression, event: dict[str, Any], decided: Any
) -> None:
    index = BooleanIndex(algorithm, decide=XPATHS.index)
    explanation = index.explain(index.add(render(expression)), event, keys(decided))
    assert explanation.matched == matches(expression, event, decided)
    assert str(explanation)
