"""Ranges hold what they should, joined and turned inside out, and are as few as they can be."""

import itertools
from typing import Any

import pytest
from bool_strategies import NUMBERS, STRINGS
from hypothesis import given
from hypothesis import strategies as st

from boolmatch.ranges import Range, Ranges, ValueType, between, complement, type_of, union

NUMBER, STRING, BOOLEAN = ValueType.NUMBER, ValueType.STRING, ValueType.BOOLEAN
POINTS: dict[ValueType, list[Any]] = {
    NUMBER: [float("-inf"), *NUMBERS, *(number + 0.25 for number in NUMBERS), float("inf")],
    STRING: [*STRINGS, *(text + "\0" for text in STRINGS), *(text + "a" for text in STRINGS)],
    BOOLEAN: [False, True],
}


def holds(ranges: Ranges, value: Any) -> bool:
    return any(
        (one.low is None or one.low < value or (one.low_closed and one.low == value))
        and (one.high is None or value < one.high or (one.high_closed and value == one.high))
        for one in ranges
    )


@st.composite
def ranges_of_a_type(draw: st.DrawFn) -> tuple[ValueType, list[Range]]:
    value_type = draw(st.sampled_from([NUMBER, STRING]))
    ends = st.none() | st.sampled_from(NUMBERS if value_type is NUMBER else STRINGS)
    one = st.builds(between, st.just(value_type), ends, ends, st.booleans(), st.booleans())
    return value_type, [found for some in draw(st.lists(one, max_size=5)) for found in some]


@given(ranges_of_a_type())
def test_a_union_holds_what_one_of_them_holds(given_ranges: tuple[ValueType, list[Range]]) -> None:
    value_type, ranges = given_ranges
    joined = union(ranges)
    for value in POINTS[value_type]:
        assert holds(joined, value) == holds(tuple(ranges), value)


@given(ranges_of_a_type())
def test_a_complement_holds_the_others(given_ranges: tuple[ValueType, list[Range]]) -> None:
    value_type, ranges = given_ranges
    joined = union(ranges)
    others = complement(value_type, joined)
    for value in POINTS[value_type]:
        assert holds(others, value) != holds(joined, value)


@given(ranges_of_a_type())
def test_there_is_a_gap_between_ranges(given_ranges: tuple[ValueType, list[Range]]) -> None:
    value_type, ranges = given_ranges
    joined = union(ranges)
    gaps = complement(value_type, joined)
    assert len(gaps) >= len(joined) - 1
    for found in (joined, gaps):
        assert all(left.high is not None and right.low is not None for left, right in itertools.pairwise(found))


@pytest.mark.parametrize(
    "truths, others", [([], [False, True]), ([False], [True]), ([True], [False]), ([False, True], [])]
)
def test_truths(truths: list[bool], others: list[bool]) -> None:
    joined = union(Range(BOOLEAN, truth, truth) for truth in truths)
    assert [truth for truth in (False, True) if holds(joined, truth)] == truths
    assert [truth for truth in (False, True) if holds(complement(BOOLEAN, joined), truth)] == others
    assert len(joined) <= 1


JOINED: dict[str, tuple[list[Ranges], Ranges]] = {
    "a_hole_stays": (
        [between(NUMBER, None, 5.0, True, False), between(NUMBER, 5.0, None, False)],
        (Range(NUMBER, None, 5.0, True, False), Range(NUMBER, 5.0, None, False, True)),
    ),
    "a_filled_hole_goes": (
        [between(NUMBER, None, 5.0, True, False), between(NUMBER, 5.0, None, False), between(NUMBER, 5.0, 5.0)],
        (Range(NUMBER),),
    ),
    "the_wider_end_counts": (
        [between(NUMBER, 1.0, 5.0), between(NUMBER, 2.0, 3.0), between(NUMBER, 4.0, 5.0, True, False)],
        (Range(NUMBER, 1.0, 5.0),),
    ),
    "strings_with_nothing_between": (
        [between(STRING, "a\0", "b"), between(STRING, "a", "a")],
        (Range(STRING, "a", "b"),),
    ),
    "every_string": ([between(STRING, "", "", True, True), between(STRING, "", None, False)], (Range(STRING),)),
    "nothing": ([], ()),
}


@pytest.mark.parametrize("parts, expected", JOINED.values(), ids=JOINED)
def test_together_they_are(parts: list[Ranges], expected: Ranges) -> None:
    assert union(itertools.chain.from_iterable(parts)) == expected


EMPTY: dict[str, tuple[Any, ...]] = {
    "the_wrong_way_round": (NUMBER, 2.0, 1.0),
    "half_a_point": (NUMBER, 1.0, 1.0, True, False),
    "before_the_first_string": (STRING, None, "", True, False),
    "between_neighbours": (STRING, "a", "a\0", False, False),
}


@pytest.mark.parametrize("ends", EMPTY.values(), ids=EMPTY)
def test_nothing_is_in(ends: tuple[Any, ...]) -> None:
    assert between(*ends) == ()


def test_a_truth_is_no_number() -> None:
    assert [type_of(True), type_of(1.0), type_of("1")] == [BOOLEAN, NUMBER, STRING]
