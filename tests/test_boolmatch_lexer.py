"""Tokens: the longest one wins, keywords in any spelling, and nothing fails."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boolmatch.lexer import tokenize

KINDS = {
    "nothing": ("", []),
    "blanks": (" \t\r\n\f", []),
    "a_comparison": ("a >= 5", ["name", ">=", "number"]),
    "without_blanks": ("a<=5AND b<>'x'", ["name", "<=", "number", "AND", "name", "<>", "string"]),
    "keywords_in_any_spelling": ("and Or nOT IS null", ["AND", "OR", "NOT", "IS", "NULL"]),
    "a_longer_word_is_no_keyword": ("android in1 _or nots", ["name"] * 4),
    "a_keyword_in_a_name_with_dots": ("in.a a.in", ["name", "name"]),
    "both_spellings_of_unequal": ("<> !=", ["<>", "!="]),
    "symbols": ("( ) , = < > + - * /", ["(", ")", ",", "=", "<", ">", "+", "-", "*", "/"]),
    "letters_of_all_scripts": ("größe 名前 कीमत ราคา e\u0301", ["name"] * 5),
    "a_quoted_name": ('"odd name" "say ""so""" "AND"', ["name"] * 3),
    "an_empty_name": ('""', ["name"]),
    "a_dollar": ("$a a$b", ["name", "name"]),
    "a_hyphen_is_no_part_of_a_name": ("a-b", ["name", "-", "name"]),
    "a_dot_at_the_end_neither": ("a. .a", ["name", "unknown", "unknown", "name"]),
    "numbers": ("1 1.5 .5 7. 1e3 1.5E-3 .5e+2", ["number"] * 7),
    "a_number_with_two_points": ("1.2.3", ["number", "number"]),
    "an_exponent_without_digits": ("1e", ["number", "name"]),
    "digits_of_other_scripts_are_none": ("٣", ["unknown"]),
    "strings": ("'x' '' 'it''s' 'a\nb\0'", ["string"] * 4),
    "strings_side_by_side_are_one": ("'a''b'", ["string"]),
    "an_open_string": ("a = 'x''", ["name", "=", "unterminated", "name", "string"]),
    "an_open_name": ('"a', ["unterminated", "name"]),
    "characters_without_a_meaning": ("a # ; \xa0 \0 \ud800", ["name", *["unknown"] * 5]),
    "a_small_i_without_a_dot_is_no_keyword": ("ın", ["name"]),
}


@pytest.mark.parametrize("text, kinds", KINDS.values(), ids=KINDS)
def test_the_tokens_of(text: str, kinds: list[str]) -> None:
    assert [token.kind for token in tokenize(text)] == [*kinds, "end"]


def test_a_column_counts_characters_from_one() -> None:
    assert [(token.text, token.column) for token in tokenize(" é = 😀'x'  ")] == [
        ("é", 2),
        ("=", 4),
        ("😀", 6),
        ("'x'", 7),
        ("", 10),
    ]


@given(st.text("aN'\"=<> .1e+-(é\0\t", max_size=20) | st.text(max_size=20))
def test_every_character_but_blanks_is_in_one_token(text: str) -> None:
    rest = text
    for token in reversed(tokenize(text)):
        assert text[token.column - 1 :].startswith(token.text)
        assert not rest[token.column - 1 + len(token.text) :].strip(" \t\r\n\f")
        rest = text[: token.column - 1]
    assert not rest.strip(" \t\r\n\f")
