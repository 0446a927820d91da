"""Spaces are cut by inserts and merged by deletes, as the examples of PS-Tree say."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boolmatch.predicate_spaces import PredicateSpaces, Space
from boolmatch.ranges import Range, ValueType

NUMBER = ValueType.NUMBER


def closed(low: float, high: float) -> Range:
    return Range(NUMBER, low, high)


def filled(*ranges: Range) -> PredicateSpaces:
    spaces = PredicateSpaces(NUMBER)
    for one in ranges:
        spaces.insert(one)
    spaces._check()
    return spaces


def written(space: Space) -> str:
    values = space.values
    low = "-∞" if values.low is None else f"{values.low:g}"
    high = "∞" if values.high is None else f"{values.high:g}"
    return f"{'[' if values.low_closed else '('}{low},{high}{']' if values.high_closed else ')'}"


def test_two_ranges_of_bytes_make_five_spaces() -> None:
    """Section 4.1: a byte has [-128, 127], which are the ends of the domain here as well."""
    spaces = filled(closed(-128, 127), closed(-5, -1), closed(1, 5))
    inside = list(spaces.spaces())[1:-1]
    assert [written(space) for space in inside] == ["[-128,-5)", "[-5,-1]", "(-1,1)", "[1,5]", "(5,127]"]
    assert [space.n_covering - 1 for space in inside] == [0, 1, 0, 1, 0]
    assert written(spaces.find(2.0)) == "[1,5]"


def test_ages_are_counted_and_merged_when_one_is_removed() -> None:
    """Section 4.4."""
    spaces = filled(closed(20, 60), closed(30, 80))
    assert [space.n_covering for space in spaces.spaces()] == [0, 1, 2, 1, 0]
    assert [written(space) for space in spaces.spaces()] == ["[-∞,20)", "[20,30)", "[30,60]", "(60,80]", "(80,∞]"]
    spaces.delete(closed(30, 80))
    assert [written(space) for space in spaces.spaces()] == ["[-∞,20)", "[20,60]", "(60,∞]"]
    assert [space.n_covering for space in spaces.spaces()] == [0, 1, 0]


def test_a_cut_that_another_predicate_needs_stays() -> None:
    spaces = filled(closed(1, 5), closed(5, 9), Range(NUMBER, 5.0, None, low_closed=False))
    spaces.delete(closed(1, 5))
    assert [written(space) for space in spaces.spaces()] == ["[-∞,5)", "[5,5]", "(5,9]", "(9,∞]"]


def test_equal_counters_are_no_reason_to_merge() -> None:
    spaces = filled(Range(NUMBER, None, 5.0), Range(NUMBER, 5.0, None, low_closed=False))
    assert [space.n_covering for space in spaces.spaces()] == [1, 1]


def test_strings_have_spaces_too() -> None:
    spaces = PredicateSpaces(ValueType.STRING)
    spaces.insert(Range(ValueType.STRING, "b", "d"))
    assert [spaces.find(text).n_covering for text in ("a", "b", "c", "d", "da")] == [0, 1, 1, 1, 0]


def test_what_was_never_inserted_cannot_be_deleted() -> None:
    spaces = filled(closed(1, 5))
    with pytest.raises(KeyError):
        spaces.delete(closed(1, 6))
    spaces._check()


def test_another_type_is_refused() -> None:
    with pytest.raises(ValueError, match="expected a range of type NUMBER, found STRING"):
        filled().insert(Range(ValueType.STRING, "a", "b"))


ENDS = st.one_of(st.none(), st.integers(0, 8).map(float))


@st.composite
def ranges(draw: st.DrawFn) -> Range:
    low, high = draw(ENDS), draw(ENDS)
    if low is not None and high is not None and low >= high:
        return closed(high, low)
    return Range(NUMBER, low, high, low is None or draw(st.booleans()), high is None or draw(st.booleans()))


def holds(values: Range, number: float) -> bool:
    above = values.low is None or number > values.low or (number == values.low and values.low_closed)
    below = values.high is None or number < values.high or (number == values.high and values.high_closed)
    return above and below


@given(data=st.data(), inserted=st.lists(ranges(), max_size=8))
def test_counters_are_right_after_any_inserts_and_deletes(data: st.DataObject, inserted: list[Range]) -> None:
    spaces = filled(*inserted)
    gone = data.draw(st.integers(0, len(inserted)))
    for one in inserted[:gone]:
        spaces.delete(one)
        spaces._check()
    for number in [half / 2 for half in range(-2, 20)]:
        found = spaces.find(number)
        assert holds(found.values, number)
        assert found.n_covering == sum(holds(one, number) for one in inserted[gone:])
    ends = {(one.low, one.low_closed) for one in inserted[gone:] if one.low is not None}
    ends |= {(one.high, not one.high_closed) for one in inserted[gone:] if one.high is not None}
    assert len(list(spaces.spaces())) == len(ends) + 1
