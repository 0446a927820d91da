"""The parser reads selectors, and points at what is none."""

import math
import pickle
from typing import Any

import pytest
from bool_strategies import expressions, simple_texts
from hypothesis import given
from hypothesis import strategies as st

from boolmatch.errors import BooleanSyntaxError
from boolmatch.expression import (
    And,
    Between,
    Comparison,
    Expression,
    In,
    IsNull,
    Like,
    Not,
    Or,
    Within,
    XPathAtom,
    render,
)
from boolmatch.parser import MAX_DEPTH, MAX_LENGTH, parse

A, B, C, D = (Comparison(name, "=", True) for name in "abcd")
TRIANGLE = "POLYGON ((0 0, 1 1, 1 0, 0 0))"
TRIANGLES = "MULTIPOLYGON (((0 0, 1 1, 1 0, 0 0)))"

TREES: dict[str, tuple[str, Expression]] = {
    "equal": ("a = 1", Comparison("a", "=", 1.0)),
    "unequal": ("a <> 1", Comparison("a", "<>", 1.0)),
    "unequal_as_in_c": ("a != 1", Comparison("a", "<>", 1.0)),
    "less": ("a < 1", Comparison("a", "<", 1.0)),
    "at_most": ("a <= 1", Comparison("a", "<=", 1.0)),
    "greater": ("a > 1", Comparison("a", ">", 1.0)),
    "at_least": ("a >= 1", Comparison("a", ">=", 1.0)),
    "constant_first": ("100 < price", Comparison("price", ">", 100.0)),
    "constant_first_at_least": ("'x' >= a", Comparison("a", "<=", "x")),
    "constant_first_unequal": ("TRUE != a", Comparison("a", "<>", True)),
    "a_string": ("a = 'it''s'", Comparison("a", "=", "it's")),
    "an_empty_string": ("a = ''", Comparison("a", "=", "")),
    "strings_have_an_order": ("a > 'x'", Comparison("a", ">", "x")),
    "a_string_keeps_its_characters": ("a = ' \n\0é😀\"'", Comparison("a", "=", ' \n\0é😀"')),
    "true": ("a = TRUE", A),
    "false_in_small_letters": ("a <> false", Comparison("a", "<>", False)),
    "an_attribute_alone": ("a", A),
    "a_quoted_name": ('"odd ""name""" = 1', Comparison('odd "name"', "=", 1.0)),
    "a_quoted_keyword": ('"in" = 1', Comparison("in", "=", 1.0)),
    "a_quoted_name_is_the_name": ('"a" = TRUE', A),
    "names_differ_by_case": ("A", Comparison("A", "=", True)),
    "between": ("a BETWEEN 1 AND 2", Between("a", 1.0, 2.0)),
    "between_strings": ("a between 'x' and 'y'", Between("a", "x", "y")),
    "between_the_wrong_way_round": ("a BETWEEN 2 AND 1", Between("a", 2.0, 1.0)),
    "not_between": ("a NOT BETWEEN 1 AND 2", Not(Between("a", 1.0, 2.0))),
    "between_and_and": ("a BETWEEN 1 AND 2 AND b", And((Between("a", 1.0, 2.0), B))),
    "a_list": ("a IN ('x', 'y','x')", In("a", ("x", "y", "x"))),
    "a_list_of_numbers": ("a IN (1, -2)", In("a", (1.0, -2.0))),
    "not_in": ("a NOT IN (1)", Not(In("a", (1.0,)))),
    "like": ("a LIKE 'x%_'", Like("a", "x%_")),
    "like_with_an_escape": ("a LIKE '!%!!' ESCAPE '!'", Like("a", "!%!!", "!")),
    "like_with_a_quote_as_escape": ("a LIKE '''%' ESCAPE ''''", Like("a", "'%", "'")),
    "like_with_a_wildcard_as_escape": ("a LIKE '%%_' ESCAPE '%'", Like("a", "%%_", "%")),
    "not_like": ("a NOT LIKE ''", Not(Like("a", ""))),
    "null": ("a IS NULL", IsNull("a")),
    "not_null": ("a is not null", Not(IsNull("a"))),
    "within": ("WITHIN(a, 'POLYGON((0 0, 1 0, 1 1, 0 0))')", Within("a", TRIANGLE)),
    "within_a_multipolygon": (
        "within ( a , 'multipolygon(((0 0, 1 0, 1 1, 0 0)))' )",
        Within("a", TRIANGLES),
    ),
    "xpath": ("XPATH '//a[@x=''1'']'", XPathAtom("//a[@x='1']")),
    "and": ("a AND b AND c", And((A, B, C))),
    "or": ("a OR b OR c", Or((A, B, C))),
    "or_is_weaker_than_and": ("a OR b AND c OR d", Or((A, And((B, C)), D))),
    "not_is_stronger_than_and": ("NOT a AND b", And((Not(A), B))),
    "not_of_a_comparison": ("NOT a = 1", Not(Comparison("a", "=", 1.0))),
    "not_of_a_group": ("NOT (a OR b) AND c", And((Not(Or((A, B))), C))),
    "parentheses": ("a AND (b OR c)", And((A, Or((B, C))))),
    "parentheses_that_change_nothing": ("((a AND (b)) AND ((c AND d)))", And((A, B, C, D))),
    "alternatives_are_flat": ("a OR (b OR (c OR d))", Or((A, B, C, D))),
    "two_nots_are_none": ("NOT NOT a", A),
    "nor_around_parentheses": ("NOT (NOT (a))", A),
    "three_nots_are_one": ("NOT NOT NOT a", Not(A)),
    "not_of_not_in": ("NOT a NOT IN (1)", In("a", (1.0,))),
    "always": ("TRUE", And(())),
    "never": ("a AND FALSE", And((A, Or(())))),
    "always_in_an_and_is_nothing": ("a AND TRUE", A),
    "any_blanks": (" \ta\n=\r\n1\f", Comparison("a", "=", 1.0)),
}

NUMBERS: dict[str, tuple[str, float]] = {
    "an_integer": ("7", 7.0),
    "a_sign": ("-7", -7.0),
    "a_plus": ("+7", 7.0),
    "a_sign_apart": ("- 7", -7.0),
    "no_digit_before_the_point": (".5", 0.5),
    "no_digit_after_the_point": ("7.", 7.0),
    "an_exponent": ("1e3", 1000.0),
    "an_exponent_with_a_sign": ("-1.5E-3", -0.0015),
    "leading_zeros": ("007", 7.0),
    "minus_zero_is_zero": ("-0", 0.0),
    "the_last_exact_integer": ("9007199254740992", 2.0**53),
    "an_exact_one_behind_it": ("9007199254740994", 2.0**53 + 2),
    "a_power_of_two": ("-1152921504606846976", -(2.0**60)),
    "a_decimal_is_rounded": ("9007199254740993.0", 2.0**53),
    "and_so_is_an_exponent": ("1e300", 1e300),
    "the_largest": ("1.7976931348623157e308", 1.7976931348623157e308),
    "too_small_is_zero": ("1e-999", 0.0),
    "many_zeros": ("0" * 10_000 + "1", 1.0),
}


@pytest.mark.parametrize("text, tree", TREES.values(), ids=TREES)
def test_the_tree_of(text: str, tree: Expression) -> None:
    assert parse(text) == tree
    assert parse(render(tree)) == tree


@pytest.mark.parametrize("text, value", NUMBERS.values(), ids=NUMBERS)
def test_the_number(text: str, value: float) -> None:
    constant = parse(f"a = {text}").constant
    assert (type(constant), constant) == (float, value)
    assert math.copysign(1.0, constant) == math.copysign(1.0, value)


@given(expressions(max_leaves=12))
def test_what_is_rendered_is_read_back(expression: Expression) -> None:
    assert parse(render(expression)) == expression
    assert pickle.loads(pickle.dumps(expression)) == expression


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_double_is_rendered_and_read_back(value: float) -> None:
    assert parse(render(Comparison("a", "<", value))) == Comparison("a", "<", value)


@given(st.text(st.characters(codec="utf-8")), st.text(st.characters(codec="utf-8"), min_size=1))
def test_every_string_and_name_is_rendered_and_read_back(string: str, name: str) -> None:
    assert parse(render(Comparison(name, "=", string))) == Comparison(name, "=", string)


def test_true_is_not_one() -> None:
    assert parse("a = TRUE") != parse("a = 1")
    assert parse("a = FALSE") != parse("a = 0")


def test_an_xpath_knows_where_its_text_starts() -> None:
    expression = parse("a AND XPATH '//b'")
    assert isinstance(expression, And)
    assert expression.parts[1].column == 14


NAME_NEEDED = "is a keyword, an attribute of this name stands in double quotes"
BAD: dict[str, tuple[str, int, str, str]] = {
    "nothing": ("", 1, "a condition", ""),
    "blanks": ("  ", 1, "a condition", ""),
    "an_operator_first": ("= 5", 1, "a condition", ""),
    "and_first": ("AND a", 1, "a condition", f"AND {NAME_NEEDED}"),
    "and_last": ("a AND", 6, "a condition", ""),
    "or_or": ("a OR OR b", 6, "a condition", f"OR {NAME_NEEDED}"),
    "not_last": ("NOT", 4, "a condition", ""),
    "two_names": ("a b", 3, "a comparison, AND, OR or the end", "'b' is no operator"),
    "two_conditions": ("a = 1 b = 2", 7, "AND, OR or the end", ""),
    "an_open_parenthesis": ("(a = 1", 7, "AND, OR or ')'", ""),
    "an_open_parenthesis_after_a_name": ("(a", 3, "a comparison, AND, OR or ')'", ""),
    "a_parenthesis_too_many": ("a = 1)", 6, "AND, OR or the end", ""),
    "empty_parentheses": ("()", 2, "a condition", ""),
    "no_constant": ("a >", 4, "a constant", ""),
    "two_attributes": (
        "a = b",
        5,
        "a constant",
        "two attributes cannot be compared, and a string stands in single quotes",
    ),
    "two_constants": ("1 = 2", 5, "an attribute", "two constants cannot be compared"),
    "a_constant_alone": ("1", 2, "a comparison", ""),
    "a_string_alone": ("'x' AND a", 5, "a comparison", ""),
    "two_equals": ("a == 1", 4, "a constant", "write = once"),
    "equal_to_null": ("a = NULL", 5, "a constant", "write IS NULL or IS NOT NULL"),
    "a_sum": ("a = 1 + 2", 7, "AND, OR or the end", "conditions have no arithmetic"),
    "a_sum_of_attributes": ("a + b = 3", 3, "a comparison, AND, OR or the end", "conditions have no arithmetic"),
    "a_product_in_between": ("a BETWEEN 1 * 2 AND 3", 13, "AND", "conditions have no arithmetic"),
    "two_signs": ("a = --1", 6, "a number", ""),
    "a_sign_before_a_string": ("a = -'x'", 6, "a number", ""),
    "a_compared_group": (
        "(a) = 1",
        5,
        "AND, OR or the end",
        "an attribute is compared with one constant, without parentheses",
    ),
    "a_chain_of_comparisons": (
        "1 < a < 3",
        7,
        "a comparison, AND, OR or the end",
        "an attribute is compared with one constant, without parentheses",
    ),
    "a_number_with_a_suffix": ("a = 57L", 7, "AND, OR or the end", "a number ends here"),
    "a_number_with_two_points": ("a = 1.2.3", 8, "AND, OR or the end", "a number ends here"),
    "too_large": ("a = -1e999", 6, "a number that a double holds", "this one is too large"),
    "many_digits": ("a = " + "9" * 400, 5, "a number that a double holds", "this one is too large"),
    "no_double_holds_it": (
        "b = 1 AND a = 9007199254740993",
        15,
        "an integer that a double holds",
        "write it as a string, and send it as one",
    ),
    "an_order_of_truths": ("a > TRUE", 3, "= or <>", "TRUE and FALSE have no order"),
    "an_order_of_truths_first": ("FALSE <= a", 7, "= or <>", "TRUE and FALSE have no order"),
    "between_truths": (
        "a BETWEEN FALSE AND TRUE",
        11,
        "a number or a string",
        "TRUE and FALSE are only compared by = and <>",
    ),
    "a_list_of_truths": ("a IN (TRUE)", 7, "a number or a string", "TRUE and FALSE are only compared by = and <>"),
    "between_two_types": ("a BETWEEN 1 AND 'x'", 17, "a number", "the constants before it are of this type"),
    "a_list_of_two_types": ("a IN ('x', 'y', 3)", 17, "a string", "the constants before it are of this type"),
    "an_empty_list": ("a IN ()", 7, "a constant", ""),
    "a_list_that_goes_on": ("a IN (1,)", 9, "a constant", ""),
    "a_list_without_commas": ("a IN (1 2)", 9, "',' or ')'", ""),
    "a_list_without_parentheses": ("a IN 1", 6, "'('", ""),
    "an_open_list": ("a IN (1", 8, "',' or ')'", ""),
    "between_without_and": ("a BETWEEN 1, 2", 12, "AND", ""),
    "not_what": ("a NOT 5", 7, "BETWEEN, IN or LIKE", ""),
    "is_what": ("a IS 5", 6, "NULL or NOT NULL", ""),
    "is_not_what": ("a IS NOT TRUE", 10, "NULL", ""),
    "like_a_number": ("a LIKE 5", 8, "a pattern in single quotes", ""),
    "like_an_attribute": ("a LIKE b", 8, "a pattern in single quotes", ""),
    "an_escape_of_none": ("a LIKE 'x' ESCAPE ''", 19, "one character in single quotes", ""),
    "an_escape_of_two": ("a LIKE 'x' ESCAPE '!!'", 19, "one character in single quotes", ""),
    "an_escape_without_quotes": (
        "a LIKE 'x' ESCAPE !",
        19,
        "one character in single quotes",
        "U+0021 has no meaning here",
    ),
    "an_escape_of_nothing": ("a LIKE 'it''s!x' ESCAPE '!'", 14, "%, _ or '!' behind '!'", ""),
    "an_escape_at_the_end": ("a LIKE '!!!' ESCAPE '!'", 11, "%, _ or '!' behind '!'", ""),
    "an_open_string": ("a = 'x", 5, "a closing ' for the text that starts", ""),
    "an_open_name": ('a AND "b = 1', 7, 'a closing " for the text that starts', ""),
    "an_empty_name": ('"" = 1', 1, "a name between the quotes", ""),
    "a_keyword_as_a_name": ("like = 1", 1, "a condition", f"LIKE {NAME_NEEDED}"),
    "a_keyword_as_the_second_name": ("1 < Between", 5, "an attribute", f"BETWEEN {NAME_NEEDED}"),
    "a_strange_character": ("a = 1 # b", 7, "AND, OR or the end", "U+0023 has no meaning here"),
    "another_kind_of_blank": ("a\xa0= 1", 2, "a comparison, AND, OR or the end", "U+00A0 has no meaning here"),
    "curly_quotes": ("a = ‘x’", 5, "a constant", "U+2018 has no meaning here"),
    "a_nul": ("a\0", 2, "a comparison, AND, OR or the end", "U+0000 has no meaning here"),
    "half_a_character": ("a = '\ud800'", 6, "a character", "U+D800 is half of one"),
    "half_a_character_in_a_name": ('"\udfff"', 2, "a character", "U+DFFF is half of one"),
    "xpath_without_quotes": ("XPATH //a", 7, "an XPath expression in single quotes", f"XPATH {NAME_NEEDED}"),
    "within_without_parentheses": ("within = 1", 8, "'('", f"WITHIN {NAME_NEEDED}"),
    "within_no_attribute": ("WITHIN('x', 'y')", 8, "an attribute", ""),
    "within_without_a_comma": ("WITHIN(a 'x')", 10, "','", ""),
    "within_no_text": ("WITHIN(a, b)", 11, "a polygon in single quotes", ""),
    "within_open": ("WITHIN(a, 'x'", 14, "')'", ""),
    "a_polygon_that_crosses_itself": (
        "b AND WITHIN(a, 'POLYGON((0 0, 1 1, 1 0, 0 1, 0 0))')",
        17,
        "a polygon",
        "Self-intersection at 0.5 0.5",
    ),
}


@pytest.mark.parametrize("text, column, expected, hint", BAD.values(), ids=BAD)
def test_it_is_refused_with_its_place(text: str, column: int, expected: str, hint: str) -> None:
    with pytest.raises(BooleanSyntaxError) as caught:
        parse(text)
    error = caught.value
    assert (error.text, error.column, error.expected, error.hint) == (text, column, expected, hint)
    assert f"expected {expected} at column {column}" in str(error)


@given(simple_texts() | st.text("aNO T=<>'\"5.e-+()ANDINLIKE%_!\0é,", max_size=30))
def test_a_text_is_read_or_refused_within_it(text: str) -> None:
    try:
        expression = parse(text)
    except BooleanSyntaxError as refused:
        column, message = refused.column, str(refused)
    else:
        column, message = 1, render(expression)
        assert parse(message) == expression
    assert 1 <= column <= len(text) + 1
    assert message


@pytest.mark.parametrize("text", [b"a", None, 7])
def test_an_expression_must_be_text(text: Any) -> None:
    with pytest.raises(TypeError, match="expected a Boolean expression as str"):
        parse(text)


# ── limits ──


def test_a_long_expression_is_read_and_a_longer_one_refused_unread() -> None:
    text = "a = '" + "x" * (MAX_LENGTH - 6) + "'"
    assert parse(text) == Comparison("a", "=", "x" * (MAX_LENGTH - 6))
    with pytest.raises(BooleanSyntaxError) as caught:
        parse("(" * (MAX_LENGTH + 1))
    assert (caught.value.column, caught.value.expected) == (MAX_LENGTH + 1, "at most 1,048,576 characters")


@pytest.mark.parametrize("joiner, kind", [(" AND ", And), (" OR ", Or)])
def test_a_chain_may_be_long(joiner: str, kind: type[And | Or]) -> None:
    expression = parse(joiner.join(["a=1"] * 100_000))
    assert isinstance(expression, kind)
    assert len(expression.parts) == 100_000


def test_parentheses_and_nots_that_change_nothing_may_be_deep() -> None:
    assert parse("(" * 50_000 + "a" + ")" * 50_000) == A
    assert parse("NOT " * 50_000 + "a") == A
    assert parse("NOT (" * 50_001 + "a" + ")" * 50_001) == Not(A)
    assert parse("(" * 50_000 + "a" + " AND b)" * 50_000) == And((A, *[B] * 50_000))


def nested(n_levels: int) -> str:
    text = "a"
    for level in range(1, n_levels):
        text = f"({text}) {'AND' if level % 2 else 'OR'} b"
    return text


def test_a_tree_as_deep_as_allowed_can_be_walked() -> None:
    expression = parse(nested(MAX_DEPTH))
    assert parse(render(expression)) == expression
    assert hash(expression) == hash(parse(nested(MAX_DEPTH)))
    assert pickle.loads(pickle.dumps(expression)) == expression
    assert repr(expression).count("And") == MAX_DEPTH // 2


def test_a_deeper_tree_is_refused() -> None:
    text = nested(MAX_DEPTH + 2)
    with pytest.raises(BooleanSyntaxError) as caught:
        parse(text)
    assert caught.value.expected == "at most 100 ANDs, ORs and NOTs inside each other"
    assert text[caught.value.column - 1] == ")"
    with pytest.raises(BooleanSyntaxError, match="inside each other"):
        parse("a AND NOT (b OR " * 10_000 + "c" + ")" * 10_000)
    with pytest.raises(BooleanSyntaxError, match="a condition"):
        parse("(" * 1_000_000)
