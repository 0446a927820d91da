"""Plain texts become the columns that say what the parser says; all others are left to it."""

from collections.abc import Iterator

import numpy as np
import pytest
from bool_strategies import simple_texts
from hypothesis import given
from hypothesis import strategies as st

from boolmatch import bulk
from boolmatch.bulk import read_simple
from boolmatch.columns import Operator, PredicateColumns
from boolmatch.errors import BooleanSyntaxError
from boolmatch.expression import Atom, Between, Comparison, Constant, Expression, all_of
from boolmatch.lexer import KEYWORDS
from boolmatch.normal_form import normalize
from boolmatch.parser import MAX_LENGTH, parse
from boolmatch.string_table import StringTable, forget, number_of

pytestmark = pytest.mark.kernels

SIGNS = {
    Operator.EQUAL: "=",
    Operator.NOT_EQUAL: "<>",
    Operator.LESS: "<",
    Operator.LESS_EQUAL: "<=",
    Operator.GREATER: ">",
    Operator.GREATER_EQUAL: ">=",
}


def expressions_of(columns: PredicateColumns) -> Iterator[Expression]:
    """What columns say, as trees."""
    row = 0
    for count in columns.counts.tolist():
        yield all_of([atom_of(columns, at) for at in range(row, row + count)])
        row += count
    assert row == len(columns.attributes)


def atom_of(columns: PredicateColumns, row: int) -> Atom:
    name = columns.names[columns.attributes[row]]
    low = constant_of(columns, columns.lows[row], columns.low_texts[row])
    high = constant_of(columns, columns.highs[row], columns.high_texts[row])
    operator = Operator(columns.operators[row])
    if operator is Operator.BETWEEN:
        return Between(name, low, high)
    assert low == high
    return Comparison(name, SIGNS[operator], low)


def constant_of(columns: PredicateColumns, number: float, text: int) -> Constant:
    assert np.isnan(number) == (text >= 0)
    return columns.texts[text] if text >= 0 else float(number)


def check(texts: list[str]) -> list[int]:
    """The positions of the plain texts, once what was read of them is known to be right."""
    columns, positions = read_simple(texts)
    read = list(expressions_of(columns))
    assert len(read) == len(positions)
    for position, expression in zip(positions.tolist(), read, strict=True):
        assert expression == parse(texts[position])
        assert normalize(expression) == normalize(parse(texts[position]))
    assert set(columns.attributes.tolist()) == set(range(len(columns.names)))
    assert {*columns.low_texts.tolist(), *columns.high_texts.tolist()} - {-1} == set(range(len(columns.texts)))
    return positions.tolist()


@given(st.lists(simple_texts(), max_size=8))
def test_what_is_read_is_what_the_parser_reads(texts: list[str]) -> None:
    check(texts)


@given(st.lists(st.text("aA=<>'5.e-+ ND\0\ud800é$_\"(", max_size=12), max_size=8))
def test_hardly_anything_is_read_from_noise_and_nothing_wrong(texts: list[str]) -> None:
    check(texts)


numbers = st.floats(allow_nan=False, allow_infinity=False) | st.floats(-1e6, 1e6).map(lambda x: round(x, 3))


@given(st.lists(numbers, min_size=1, max_size=8))
def test_numbers_are_read_to_the_last_bit(values: list[float]) -> None:
    texts = [f"a = {value!r}" for value in values] + [f"a = {value:.14e}" for value in values]
    check(texts)


PLAIN = {
    "a_comparison": "a = 5",
    "every_operator": "a=1 AND b<>2 AND c!=3 AND d<4 AND e<=5 AND f>6 AND g>=7",
    "a_string": "a = 'x y'",
    "an_empty_string": "a = ''",
    "strings_without_spaces": "a='x'AND b='y'",
    "between": "a BETWEEN 1 AND 5",
    "between_strings": "a between 'x' And 'y'",
    "between_in_a_conjunction": "a BETWEEN 1 AND 5 AND b BETWEEN 'x' AND 'y' AND c = 1",
    "any_spaces": "\n a\t=\r\n5\fAND  b =6 ",
    "names_of_all_kinds": "_=1 AND $=2 AND a.b.1=3 AND A1=4 AND ands=5",
    "other_characters_in_strings": "a = 'é😀\x01\"'",
    "numbers_of_all_kinds": "a=+1 AND a=-1 AND a=.5 AND a=7. AND a=1e3 AND a=-1.5E-3 AND a=007 AND a=-0",
    "fifteen_digits": "a = 999999999999999 AND a = 0.999999999999999",
    "leading_zeros_do_not_count": "a = 00000000000000000000000001.5",
    "the_largest_power": "a = 1e22 AND a = 1e-22",
    "a_power_that_cancels_out": "a = 1.5e23",
    "the_wrong_way_round": "a BETWEEN 5 AND 1",
    "a_keyword_in_a_string": "a = 'AND'",
    "the_same_twice": "a = 1 AND a = 1",
}

ODD = {
    "nothing": "",
    "blanks": "  ",
    "a_bare_name": "a",
    "or": "a = 1 OR b = 2",
    "not": "NOT a = 1",
    "a_list": "a IN (1, 2)",
    "like": "a LIKE 'x'",
    "null": "a IS NULL",
    "a_truth": "a = TRUE",
    "parentheses": "(a = 1)",
    "a_constant_first": "1 = a",
    "a_quoted_name": '"a" = 1',
    "a_letter_outside_of_ascii": "é = 1",
    "and_one_inside": "aé = 1",
    "a_doubled_quote": "a = 'it''s'",
    "a_doubled_quote_before_and": "a = 'x''AND b = 1'",
    "an_open_string": "a = 'x",
    "sixteen_digits": "a = 1234567890123456",
    "too_large_a_power": "a = 1e23",
    "too_small_a_power": "a = 1e-23",
    "an_exponent_that_overflows": "a = 1e99999999999999999999",
    "no_exponent": "a = 1e",
    "a_sign_alone": "a = -",
    "a_sign_apart": "a = - 1",
    "a_point_alone": "a = .",
    "a_glued_word": "a = 1AND b = 2",
    "a_keyword_that_goes_on": "a = 1 AND.5 = 2",
    "a_between_that_goes_on": "a BETWEEN5 AND 6",
    "a_between_that_goes_on_behind_a_point": "a BETWEEN.5 AND 6",
    "between_two_types": "a BETWEEN 1 AND 'x'",
    "an_open_between": "a BETWEEN 1",
    "an_and_too_many": "a = 1 AND",
    "a_comma": "a = 1, b = 2",
    "arithmetic": "a = 1 + 2",
    "two_equals": "a == 1",
    "a_nul": "a = '\0'",
    "a_nul_at_the_end": "a = 1\0",
    "half_a_character": "a = '\ud800'",
    "another_space": "a\xa0= 1",
    **{f"{word.lower()}_as_a_name": f"{word.capitalize()} = 1" for word in sorted(KEYWORDS)},
}


@pytest.mark.parametrize("text", PLAIN.values(), ids=PLAIN)
def test_plain_is(text: str) -> None:
    assert check([text]) == [0]


@pytest.mark.parametrize("text", ODD.values(), ids=ODD)
def test_odd_is(text: str) -> None:
    assert check([text]) == []


def test_odd_texts_leave_nothing_behind() -> None:
    columns, positions = read_simple(["x = 'gone' OR y = 1", "a = 'x' AND in = 'y'", "a = 'y' AND b = 'z'"])
    assert (columns.names, columns.texts, positions.tolist()) == (["a", "b"], ["y", "z"], [2])


def test_a_text_with_a_nul_is_odd_alone() -> None:
    assert check(["a = 1", "a = '\0'", "b = 2", "\0", "c = 3"]) == [0, 2, 4]


def test_columns_have_the_types_they_promise() -> None:
    for texts in ([], ["a = 1"], ["NOT a"]):
        columns, positions = read_simple(texts)
        found = [column.dtype.name for column in columns[:7]]
        assert found == ["int32", "int32", "int8", "float64", "float64", "int32", "int32"]
        assert positions.dtype == np.int64


def test_names_and_strings_keep_their_numbers_across_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk, "CHUNK_TEXTS", 3)
    monkeypatch.setattr(bulk, "CHUNK_CHARACTERS", 100)
    texts = [f"a{number % 7} = 'x{number % 11}' AND b > {number}" for number in range(200)]
    texts[50:50] = ["NOT odd", f"a = '{'long' * 100}'"]
    assert check(texts) == [number for number in range(202) if number != 50]
    columns, _ = read_simple(texts)
    assert len(set(columns.names)) == len(columns.names)
    assert len(set(columns.texts)) == len(columns.texts)


def test_many_texts_are_read() -> None:
    texts = [f"a = {number} AND b = 'x{number}'" for number in range(40_000)]
    columns, positions = read_simple(texts)
    assert len(positions) == 40_000
    assert columns.lows[::2].tolist() == list(range(40_000))
    assert [columns.texts[code] for code in columns.low_texts[1::2].tolist()] == [f"x{n}" for n in range(40_000)]


def test_a_text_beyond_the_limit_is_left_to_the_parser() -> None:
    tail = " AND b = 2"
    longest = "a = 1" + " " * (MAX_LENGTH - 5 - len(tail)) + tail
    assert read_simple([longest, longest + " ", "a = 1"])[1].tolist() == [0, 2]
    with pytest.raises(BooleanSyntaxError):
        parse(longest + " ")


@pytest.mark.parametrize("texts", [[b"a = 1"], [None], ["a = 1", 7]])
def test_texts_must_be_text(texts: list[object]) -> None:
    with pytest.raises(TypeError):
        read_simple(texts)


# ── the table of strings ──


@given(st.lists(st.tuples(st.binary(max_size=3), st.booleans()), max_size=60))
def test_a_table_numbers_strings_as_they_come_and_takes_the_last_ones_back(words: list[tuple[bytes, bool]]) -> None:
    table, known = StringTable(), []
    for word, keep in words:
        table.make_room(1, len(word))
        before = list(known)
        if word not in known:
            known.append(word)
        content = np.frombuffer(word + b"!", np.uint8)
        assert number_of(table.arrays, content, 0, len(word)) == known.index(word)
        if not keep:
            forget(table.arrays, len(before))
            known = before
    start = table.arrays.start
    found = [table.arrays.content[start[i] : start[i + 1]].tobytes() for i in range(table.arrays.n_strings[0])]
    assert found == known
