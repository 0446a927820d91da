"""`parse_number` must give the very double that libxml2's number() gives, bit for bit."""

import struct

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from lxml import etree

from xpathfilter.xpath_numbers import parse_number

pytestmark = pytest.mark.kernels

NUMBER = etree.XPath("number($text)")
NUMBER_OF_ATTRIBUTE = etree.XPath("number(@x)")
ROOT = etree.Element("root")

CASES = {
    "an_integer": ("42", 42.0),
    "a_fraction": ("12.5", 12.5),
    "no_digit_before_the_point": (".5", 0.5),
    "no_digit_after_the_point": ("7.", 7.0),
    "negative": ("-3", -3.0),
    "negative_zero": ("-0", -0.0),
    "blanks_around": (" \t\r\n 1 \n", 1.0),
    "an_exponent": ("1e3", 1000.0),
    "a_signed_exponent": ("25E-1", 2.5),
    "an_exponent_with_plus": ("1e+2", 100.0),
    "an_exponent_without_digits": ("1e", 1.0),
    "an_overflow": ("1e400", float("inf")),
    "an_underflow": ("1e-400", 0.0),
    "twenty_digits_after_leading_zeros": ("0." + "0" * 25 + "12345678901234567890123", 1.234567890123457e-26),
    "more_leading_zeros_than_a_double_has": ("0." + "0" * 400 + "1", 0.0),
    "zero_times_infinity": ("0e999", float("nan")),
    "nothing": ("", float("nan")),
    "blanks_only": ("  ", float("nan")),
    "a_lone_minus": ("-", float("nan")),
    "a_lone_point": (".", float("nan")),
    "minus_and_point": ("-.", float("nan")),
    "a_plus": ("+1", float("nan")),
    "two_minuses": ("--1", float("nan")),
    "a_blank_after_the_minus": ("- 1", float("nan")),
    "a_blank_inside": ("1 2", float("nan")),
    "a_fraction_in_the_exponent": ("1e2.5", float("nan")),
    "two_points": ("1.2.3", float("nan")),
    "a_no_break_space": ("1\xa0", float("nan")),
    "arabic_digits": ("\u0661", float("nan")),
    "a_word": ("NaN", float("nan")),
    "infinity": ("Infinity", float("nan")),
}


def bits(value: float) -> str:
    """Every NaN is one value to XPath; all other doubles must agree in each bit, the sign of zero too."""
    return "nan" if value != value else struct.pack(">d", value).hex()


def parsed(text: str, before: bytes = b"", after: bytes = b"") -> float:
    encoded = text.encode()
    array = np.frombuffer(before + encoded + after, np.uint8)
    return parse_number(array, len(before), len(before) + len(encoded))


@pytest.mark.parametrize("text, expected", CASES.values(), ids=CASES)
def test_a_text_has_its_number_and_libxml2_agrees(text: str, expected: float) -> None:
    assert bits(parsed(text)) == bits(NUMBER(ROOT, text=text)) == bits(expected)


def test_bytes_outside_the_range_are_not_read() -> None:
    assert parsed("12", before=b"9", after=b"34") == 12.0
    assert parsed("1e", before=b"-", after=b"5") == 1.0
    assert bits(parsed("", before=b"1", after=b"1")) == "nan"


digits = st.text("0123456789", max_size=32)
exponents = st.builds(str.__add__, st.sampled_from(["e", "E", "e-", "e+", "E-"]), st.text("0123456789", max_size=8))
numbers = st.builds(
    "{}{}{}{}{}{}".format,
    st.sampled_from(["", " ", "\t\n"]),
    st.sampled_from(["", "-"]),
    digits,
    st.one_of(st.just(""), digits.map(".{}".format), digits.map(".00000000{}".format)),
    st.one_of(st.just(""), exponents, st.integers(-330, 330).map("e{}".format)),
    st.sampled_from(["", " ", "\r"]),
)


@given(numbers)
@example("9007199254740993.00000000000000000001")
@example("123456789012345678901234567890e-25")
def test_anything_like_a_number_is_read_as_libxml2_reads_it(text: str) -> None:
    assert bits(parsed(text)) == bits(NUMBER(ROOT, text=text))


@given(st.text("0123456789.-+eE \t\n\rx", max_size=12))
def test_any_other_text_is_read_as_libxml2_reads_it(text: str) -> None:
    assert bits(parsed(text)) == bits(NUMBER(ROOT, text=text))


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_printed_doubles_are_read_as_libxml2_reads_them_in_an_attribute(value: float) -> None:
    text = repr(value)
    assert bits(parsed(text)) == bits(NUMBER_OF_ATTRIBUTE(etree.Element("root", x=text)))
