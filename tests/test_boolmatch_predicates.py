"""A literal holds exactly when its atom is TRUE, or with a NOT before it FALSE."""

import itertools
from typing import Any

import pytest
from bool_oracle import Decided as Decider
from bool_oracle import as_regex, truth
from bool_strategies import STRINGS, atoms, decisions, events, likes
from hypothesis import given
from hypothesis import strategies as st
from literal_oracle import holds

from boolmatch.expression import Atom, Like
from boolmatch.parser import parse
from boolmatch.patterns import ANY_ONE, ANY_RUN, LikeTest, after_prefix, read_pattern
from boolmatch.predicates import Decided, Predicate, Range, ValueType, literal

TEXT, NUMBER, BOOLEAN = ValueType.STRING, ValueType.NUMBER, ValueType.BOOLEAN


@given(atoms(), events(), decisions())
def test_the_positive_literal_says_that_the_atom_is_true(atom: Atom, event: dict[str, Any], decided: Decider) -> None:
    assert holds(literal(atom, True), event, decided) == (truth(atom, event, decided) is True)


@given(atoms(), events(), decisions())
def test_the_negative_literal_says_that_the_atom_is_false(atom: Atom, event: dict[str, Any], decided: Decider) -> None:
    assert holds(literal(atom, False), event, decided) == (truth(atom, event, decided) is False)


@given(atoms(), st.booleans())
def test_ranges_are_sorted_and_stand_apart(atom: Atom, positive: bool) -> None:
    found = literal(atom, positive)
    ranges = found.ranges if isinstance(found, Predicate) else ()
    for left, right in itertools.pairwise(ranges):
        assert left.high is not None
        assert right.low is not None
        assert left.high < right.low or (left.high == right.low and not left.high_closed and not right.low_closed)


def ranges_of(text: str, positive: bool = True) -> tuple[bool, list[tuple[Any, ...]]]:
    found = literal(parse(text), positive)
    assert isinstance(found, Predicate)
    assert found.like is None
    return found.every, [(one.low, one.high, one.low_closed, one.high_closed) for one in found.ranges]


ALL = (None, None, True, True)
CASES: dict[str, tuple[str, list[tuple[Any, ...]], list[tuple[Any, ...]]]] = {
    "equal": ("a = 5", [(5.0, 5.0, True, True)], [(None, 5.0, True, False), (5.0, None, False, True)]),
    "unequal": ("a <> 5", [(None, 5.0, True, False), (5.0, None, False, True)], [(5.0, 5.0, True, True)]),
    "less": ("a < 5", [(None, 5.0, True, False)], [(5.0, None, True, True)]),
    "at_most": ("a <= 5", [(None, 5.0, True, True)], [(5.0, None, False, True)]),
    "greater": ("a > 5", [(5.0, None, False, True)], [(None, 5.0, True, True)]),
    "at_least": ("a >= 5", [(5.0, None, True, True)], [(None, 5.0, True, False)]),
    "between": ("a BETWEEN 1 AND 2", [(1.0, 2.0, True, True)], [(None, 1.0, True, False), (2.0, None, False, True)]),
    "between_the_wrong_way_round": ("a BETWEEN 2 AND 1", [], [ALL]),
    "a_list": (
        "a IN (2, 1, 2)",
        [(1.0, 1.0, True, True), (2.0, 2.0, True, True)],
        [(None, 1.0, True, False), (1.0, 2.0, False, False), (2.0, None, False, True)],
    ),
    "true": ("a = TRUE", [(True, True, True, True)], [(False, False, True, True)]),
    "not_true": ("a <> TRUE", [(False, False, True, True)], [(True, True, True, True)]),
    "bare": ("a", [(True, True, True, True)], [(False, False, True, True)]),
    "nothing_is_less_than_the_empty_string": ("a < ''", [], [ALL]),
    "every_string_is_at_least_empty": ("a >= ''", [ALL], []),
    "the_empty_string_is_a_point": ("a = ''", [("", "", True, True)], [("", None, False, True)]),
    "strings_with_nothing_between": (
        "a IN ('a', 'a\0')",
        [("a", "a\0", True, True)],
        [(None, "a", True, False), ("a\0", None, False, True)],
    ),
    "like_without_wildcards": (
        "a LIKE 'ab'",
        [("ab", "ab", True, True)],
        [(None, "ab", True, False), ("ab", None, False, True)],
    ),
    "like_a_prefix": (
        "a LIKE 'ab%%'",
        [("ab", "ac", True, False)],
        [(None, "ab", True, False), ("ac", None, True, True)],
    ),
    "like_anything": ("a LIKE '%'", [ALL], []),
    "like_an_escaped_wildcard": (
        "a LIKE 'a!%' ESCAPE '!'",
        [("a%", "a%", True, True)],
        [(None, "a%", True, False), ("a%", None, False, True)],
    ),
    "like_a_prefix_with_nothing_behind": (
        "a LIKE '\U0010ffff%'",
        [("\U0010ffff", None, True, True)],
        [(None, "\U0010ffff", True, False)],
    ),
}


@pytest.mark.parametrize("text, positive, negative", CASES.values(), ids=CASES)
def test_the_ranges_of(text: str, positive: list[tuple[Any, ...]], negative: list[tuple[Any, ...]]) -> None:
    assert ranges_of(text) == (False, positive)
    assert ranges_of(text, False) == (True, negative)


def test_null_is_a_type_of_its_own() -> None:
    assert literal(parse("a IS NULL"), True) == Predicate("a", (Range(ValueType.NULL),))
    assert literal(parse("a IS NULL"), False) == Predicate("a", (Range(ValueType.ANY),))


def test_a_pattern_keeps_the_range_of_its_start() -> None:
    found = literal(Like("a", "ab%_c"), True)
    assert found == Predicate("a", (Range(TEXT, "ab", "ac", True, False),), like=LikeTest("ab_%c", None, False))
    denied = literal(Like("a", "ab%_c"), False)
    assert denied == Predicate("a", (Range(TEXT),), every=True, like=LikeTest("ab_%c", None, True))


@pytest.mark.parametrize("text", ["XPATH '//a'", "WITHIN(a, 'POLYGON((0 0, 1 0, 1 1, 0 0))')"])
@pytest.mark.parametrize("positive", [True, False])
def test_some_atoms_are_decided_elsewhere(text: str, positive: bool) -> None:
    atom = parse(text)
    assert literal(atom, positive) == Decided(atom, positive)


def test_true_is_not_one() -> None:
    assert literal(parse("a = TRUE"), True) != literal(parse("a = 1"), True)


# ── patterns ──

AFTER = {
    "the_next_letter": ("abc", "abd"),
    "surrogates_are_skipped": ("a\ud7ff", "a\ue000"),
    "the_last_character_carries": ("ab\U0010ffff", "ac"),
    "several_carry": ("a\U0010ffff\U0010ffff", "b"),
    "nothing_is_behind_the_last": ("\U0010ffff", None),
    "nothing_is_behind_everything": ("", None),
}


@pytest.mark.parametrize("prefix, expected", AFTER.values(), ids=AFTER)
def test_behind_all_with_a_prefix_comes(prefix: str, expected: str | None) -> None:
    assert after_prefix(prefix) == expected


@given(st.sampled_from(STRINGS), st.sampled_from(STRINGS) | st.text(max_size=3))
def test_a_prefix_is_a_range(prefix: str, text: str) -> None:
    behind = after_prefix(prefix)
    assert (prefix <= text and (behind is None or text < behind)) == text.startswith(prefix)


PROGRAMS = {
    "letters": ("ab", None, [97, 98]),
    "wildcards": ("a_%", None, [97, ANY_ONE, ANY_RUN]),
    "wildcards_in_a_row_are_put_in_order": ("%_%%_a%", None, [ANY_ONE, ANY_ONE, ANY_RUN, 97, ANY_RUN]),
    "escapes": ("!%!_!!%", "!", [37, 95, 33, ANY_RUN]),
    "an_escape_that_is_a_wildcard": ("%%%_", "%", [37, 95]),
    "characters_are_code_points": ("é😀", None, [0xE9, 0x1F600]),
}


@pytest.mark.parametrize("pattern, escape, program", PROGRAMS.values(), ids=PROGRAMS)
def test_the_program_of(pattern: str, escape: str | None, program: list[int]) -> None:
    found = LikeTest(pattern, escape, False).program()
    assert found.tolist() == program
    assert found.dtype == "int32"


@given(likes(), st.text("ab%_é\\'\0\n\U0010ffffc", max_size=8))
def test_the_one_spelling_of_a_pattern_means_the_same(like: Like, text: str) -> None:
    found = literal(like, True)
    assert isinstance(found, Predicate)
    if found.like is not None:
        assert read_pattern(found.like.pattern, found.like.escape) == read_pattern(like.pattern, like.escape)
        spelled = as_regex(found.like.pattern, found.like.escape)
        assert bool(spelled.fullmatch(text)) == bool(as_regex(like.pattern, like.escape).fullmatch(text))
