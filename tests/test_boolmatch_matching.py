"""Every algorithm gives the answers of three-valued logic, whatever is subscribed and whatever comes."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from bool_oracle import matches
from bool_strategies import XPATHS, decisions, events, expressions
from hypothesis import given, settings
from hypothesis import strategies as st

from boolmatch.algorithms import ALGORITHMS
from boolmatch.expression import Expression, render
from boolmatch.index import BooleanIndex

pytestmark = pytest.mark.kernels

EVERY_ALGORITHM = ["auto", *ALGORITHMS]

Decided = Callable[[str], bool]


def keys(decided: Decided) -> list[int]:
    """The keys of the XPath expressions that are true."""
    return [key for key, text in enumerate(XPATHS) if decided(text)]


def filled(algorithm: str, subscribed: list[Expression]) -> BooleanIndex:
    index = BooleanIndex(algorithm, decide=XPATHS.index)
    index.add_many([render(expression) for expression in subscribed])
    return index


def expected(subscribed: list[Expression], event: dict[str, Any], decided: Decided) -> list[int]:
    return [i for i, expression in enumerate(subscribed, start=1) if matches(expression, event, decided)]


@pytest.mark.parametrize("algorithm", EVERY_ALGORITHM)
@given(subscribed=st.lists(expressions(), max_size=12), happening=st.lists(events(), max_size=4), decided=decisions())
def test_the_answers_are_those_of_the_oracle(
    algorithm: str, subscribed: list[Expression], happening: list[dict[str, Any]], decided: Decided
) -> None:
    index = filled(algorithm, subscribed)
    found = index.match_many(happening, threads=1, true_paths=[keys(decided)] * len(happening))
    for event, ids in zip(happening, found, strict=True):
        assert isinstance(ids, np.ndarray)
        assert ids.tolist() == expected(subscribed, event, decided)


@pytest.mark.parametrize("algorithm", EVERY_ALGORITHM)
@settings(max_examples=30)
@given(
    first=st.lists(expressions(), max_size=6),
    second=st.lists(expressions(), max_size=6),
    event=events(),
    decided=decisions(),
)
def test_merging_changes_no_answer(
    algorithm: str, first: list[Expression], second: list[Expression], event: dict[str, Any], decided: Decided
) -> None:
    index = filled(algorithm, first)
    for expression in second:
        index.add(render(expression))
    before = index.match(event, keys(decided)).tolist()
    index.merge()
    assert before == index.match(event, keys(decided)).tolist() == expected([*first, *second], event, decided)
