"""XPath's number(): which double does a piece of text stand for?

    "  -12.50e1\\t"  ──▶  -  12  .50  e1  ──▶  -(12 + 50/10²) · 10¹  ──▶  -125.0

The oracle is libxml2, so the arithmetic is libxml2's, step for step, and the bits agree with it. It
accumulates digits in a double and scales once at the end, so a long number may differ in its last
bits from the nearest double; it takes an exponent, which XPath's grammar does not have; of a
fraction it uses the leading zeros and twenty digits more. What is not a number is NaN:

    "1e3" 1000.0      "1e" 1.0      ".5" 0.5      "1." 1.0      "-0" -0.0
    "" "-" "." "+1" "- 1" "1 2" "0x1" all NaN, and "0e999" too (zero times infinity)
"""

import math

import numpy as np

from sievecore.jit import kernel

MAX_FRACTION_DIGITS = 20
MAX_EXPONENT = 1_000_000
"""Exponent digits are no longer read from here on: the power is 0 or infinity long before."""

LARGEST_POWER = 308
SMALLEST_POWER = -400
# C's own pow(), taken through Python: LLVM may replace a pow() of ten by exp10(), whose last bit differs.
POWERS_OF_TEN = np.array([math.pow(10.0, n) for n in range(SMALLEST_POWER, LARGEST_POWER + 1)])

TAB, NEWLINE, RETURN, SPACE = 9, 10, 13, 32
PLUS, MINUS, POINT, ZERO, NINE, UPPER_E, LOWER_E = 43, 45, 46, 48, 57, 69, 101


@kernel
def parse_number(text, start, end):
    """Return the double that XPath's number() gives for the bytes `text[start:end]`."""
    position = _skip_blanks(text, start, end)
    is_negative = position < end and text[position] == MINUS
    position += is_negative
    magnitude, position = _read_decimal(text, position, end)
    exponent, position = _read_exponent(text, position, end)
    if _skip_blanks(text, position, end) < end:
        return np.nan
    return (-magnitude if is_negative else magnitude) * _power_of_ten(exponent)


@kernel
def _is_digit(text, position, end):
    return position < end and ZERO <= text[position] <= NINE


@kernel
def _skip_blanks(text, position, end):
    while position < end and (text[position] in (SPACE, TAB, NEWLINE, RETURN)):
        position += 1
    return position


@kernel
def _power_of_ten(exponent):
    if exponent > LARGEST_POWER:
        return np.inf
    return POWERS_OF_TEN[exponent - SMALLEST_POWER] if exponent >= SMALLEST_POWER else 0.0


@kernel
def _read_decimal(text, position, end):
    """Read `12`, `12.`, `12.5` or `.5`; the value is NaN where there is no digit at all."""
    has_whole = _is_digit(text, position, end)
    whole, position = _read_digits(text, position, end, end - position)
    if position < end and text[position] == POINT:
        if not has_whole and not _is_digit(text, position + 1, end):
            return np.nan, end
        fraction, position = _read_fraction(text, position + 1, end)
        return whole + fraction, position
    return (whole if has_whole else np.nan), position


@kernel
def _read_digits(text, position, end, n_at_most):
    value = 0.0
    stop = min(end, position + n_at_most)
    while _is_digit(text, position, stop):
        value = value * 10.0 + (text[position] - ZERO)
        position += 1
    return value, position


@kernel
def _read_fraction(text, start, end):
    position = start
    while position < end and text[position] == ZERO:
        position += 1
    digits, position = _read_digits(text, position, end, MAX_FRACTION_DIGITS)
    fraction = digits / _power_of_ten(position - start)
    while _is_digit(text, position, end):
        position += 1
    return fraction, position


@kernel
def _read_exponent(text, position, end):
    """Read `e5`, `E+5`, `e-5`, or a lone `e`, which counts as 0 just like no exponent."""
    if position >= end or text[position] not in (LOWER_E, UPPER_E):
        return 0, position
    position += 1
    is_negative = position < end and text[position] == MINUS
    position += is_negative or (position < end and text[position] == PLUS)
    exponent = 0
    while _is_digit(text, position, end):
        if exponent < MAX_EXPONENT:
            exponent = exponent * 10 + (text[position] - ZERO)
        position += 1
    return (-exponent if is_negative else exponent), position
