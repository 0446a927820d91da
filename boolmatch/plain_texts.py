"""Kernels that read conjunctions of comparisons from UTF-8 bytes.

    price >= 12.5 AND symbol = 'IBM' NUL
    ^     ^  ^    ^   ^             ^
    name  │  │    │   the next predicate, and so on to the end
          │  │    end_of_word AND
          │  constant: digits 125, one of them behind the point, so 125 / 10
          operator

Each reader takes the place where its piece starts and returns where the next one starts, behind the spaces, or ODD
when it finds anything else; ODD is passed on from reader to reader. A NUL ends each text, and one more stands at the
very end, so that looking one letter ahead needs no care.

A double holds integers of 15 digits and powers of ten up to 22, and rounds one multiplication or division of them
correctly: these numbers come out as Python's `float` reads them. The others are odd.
"""

from typing import NamedTuple

import numpy as np

from boolmatch.columns import Operator
from boolmatch.lexer import KEYWORDS
from boolmatch.parser import MAX_LENGTH
from boolmatch.string_table import forget, number_of
from sievecore.jit import kernel

__all__ = ["Rows", "read_texts"]

ODD = -1

MAX_DIGITS = 15
POWERS = np.array([float(f"1e{exponent}") for exponent in range(23)])
LARGEST_EXPONENT = len(POWERS) - 1
TOO_LARGE = 1 << 30

WORDS = np.frombuffer("\0".join([*sorted(KEYWORDS), ""]).encode(), np.uint8)
AND = np.frombuffer(b"AND", np.uint8)
BETWEEN = np.frombuffer(b"BETWEEN", np.uint8)
MAKES_UPPER = 0xDF  # & turns a small ASCII letter into a capital

EQUAL, NOT_EQUAL, LESS, LESS_EQUAL, GREATER, GREATER_EQUAL, IS_BETWEEN = map(int, Operator)


class Rows(NamedTuple):
    """The columns of some texts, and how many rows each text has: none if it is odd."""

    counts: np.ndarray
    attributes: np.ndarray
    operators: np.ndarray
    lows: np.ndarray
    highs: np.ndarray
    low_texts: np.ndarray
    high_texts: np.ndarray


@kernel
def read_texts(text, ends, rows, names, strings):
    """Read the texts that end at `ends`; return how many rows they have in all."""
    n_rows = start = 0
    for number in range(len(ends)):
        n_names, n_strings = names.n_strings[0], strings.n_strings[0]
        rows.counts[number] = _read_conjunction(text, start, ends[number], rows, n_rows, names, strings)
        if rows.counts[number] == 0:
            forget(names, n_names)
            forget(strings, n_strings)
        n_rows += rows.counts[number]
        start = ends[number] + 1
    return n_rows


@kernel
def _read_conjunction(text, start, end, rows, n_rows, names, strings):
    """Write the rows of text[start:end]; return how many there are, 0 if the text is odd."""
    if end - start > MAX_LENGTH:
        return 0
    n_read = 0
    i = start
    while True:
        i = _read_predicate(text, i, rows, n_rows + n_read, names, strings)
        n_read += 1
        if i == end:
            return n_read
        i = _end_of_word(text, i, AND)
        if i == ODD:
            return 0


@kernel
def _read_predicate(text, start, rows, row, names, strings):
    """Write one row; return where the next piece starts."""
    i = _read_name(text, _skip_spaces(text, start), rows, row, names)
    i = _read_operator(text, i, rows, row)
    i = _read_constant(text, i, rows.lows, rows.low_texts, row, strings)
    rows.highs[row], rows.high_texts[row] = rows.lows[row], rows.low_texts[row]
    if i == ODD or rows.operators[row] != IS_BETWEEN:
        return i
    i = _end_of_word(text, i, AND)
    i = _read_constant(text, i, rows.highs, rows.high_texts, row, strings)
    return i if (rows.low_texts[row] < 0) == (rows.high_texts[row] < 0) else ODD


@kernel
def _read_name(text, start, rows, row, names):
    if not _is_word(text[start]) or _is_digit(text[start]):
        return ODD
    end = start
    while _is_word(text[end]) or (text[end] == ord(".") and _is_word(text[end + 1])):
        end += 1
    n_known = names.n_strings[0]
    rows.attributes[row] = number_of(names, text, start, end)
    if names.n_strings[0] > n_known and _is_keyword(text, start, end):
        return ODD
    return _skip_spaces(text, end)


@kernel
def _read_operator(text, i, rows, row):
    if i == ODD:
        return ODD
    first, second = text[i], text[i + 1]
    length = 1
    if first == ord("="):
        rows.operators[row] = EQUAL
    elif (first == ord("<") and second == ord(">")) or (first == ord("!") and second == ord("=")):
        rows.operators[row], length = NOT_EQUAL, 2
    elif first == ord("<"):
        rows.operators[row], length = (LESS_EQUAL, 2) if second == ord("=") else (LESS, 1)
    elif first == ord(">"):
        rows.operators[row], length = (GREATER_EQUAL, 2) if second == ord("=") else (GREATER, 1)
    else:
        rows.operators[row] = IS_BETWEEN
        return _end_of_word(text, i, BETWEEN)
    return _skip_spaces(text, i + length)


@kernel
def _read_constant(text, i, numbers, codes, row, strings):
    if i == ODD:
        return ODD
    if text[i] == ord("'"):
        return _read_string(text, i + 1, numbers, codes, row, strings)
    codes[row] = -1
    return _read_number(text, i, numbers, row)


@kernel
def _read_string(text, start, numbers, codes, row, strings):
    end = start
    while text[end] != ord("'"):
        half_a_character = text[end] == 0xED and text[end + 1] >= 0xA0
        if text[end] == 0 or half_a_character:
            return ODD
        end += 1
    codes[row] = number_of(strings, text, start, end)
    numbers[row] = np.nan
    return _skip_spaces(text, end + 1)


@kernel
def _read_number(text, start, numbers, row):
    first = start + 1 if text[start] == ord("-") or text[start] == ord("+") else start
    digits, n_digits, i = _read_digits(text, first, 0, 0)
    point = i
    if text[point] == ord("."):
        digits, n_digits, i = _read_digits(text, point + 1, digits, n_digits)
    n_fraction = max(0, i - point - 1)
    if point - first + n_fraction == 0:
        return ODD
    exponent, i = _read_exponent(text, i)
    exponent -= n_fraction
    if n_digits > MAX_DIGITS or abs(exponent) > LARGEST_EXPONENT or _goes_on(text[i]):
        return ODD
    number = digits * POWERS[exponent] if exponent >= 0 else digits / POWERS[-exponent]
    numbers[row] = 0.0 - number if text[start] == ord("-") else number
    return _skip_spaces(text, i)


@kernel
def _read_digits(text, i, digits, n_digits):
    """Take more digits into a number; zeros before the first other digit do not count."""
    while _is_digit(text[i]):
        digits = digits * 10 + (text[i] - ord("0"))
        n_digits += digits != 0
        i += 1
    return digits, n_digits, i


@kernel
def _read_exponent(text, i):
    """The exponent at i, 0 without one, and where it ends. What is no exponent is one that is too large."""
    if text[i] & MAKES_UPPER != ord("E"):
        return 0, i
    i += 1
    sign = -1 if text[i] == ord("-") else 1
    if text[i] == ord("-") or text[i] == ord("+"):
        i += 1
    exponent = 0 if _is_digit(text[i]) else TOO_LARGE
    while _is_digit(text[i]):
        exponent = min(exponent * 10 + (text[i] - ord("0")), TOO_LARGE)
        i += 1
    return sign * exponent, i


@kernel
def _end_of_word(text, start, word):
    """Where the piece behind a keyword starts, which is spelled in capitals here and in any way there."""
    if start == ODD:
        return ODD
    for offset in range(len(word)):
        if text[start + offset] & MAKES_UPPER != word[offset]:
            return ODD
    end = start + len(word)
    return ODD if _goes_on(text[end]) else _skip_spaces(text, end)


@kernel
def _is_keyword(text, start, end):
    length = end - start
    first = 0
    for i in range(len(WORDS)):
        if WORDS[i] == 0:
            if i - first == length and _same_letters(text, start, first, length):
                return True
            first = i + 1
    return False


@kernel
def _same_letters(text, start, first, length):
    for offset in range(length):
        if text[start + offset] & MAKES_UPPER != WORDS[first + offset]:
            return False
    return True


@kernel
def _skip_spaces(text, i):
    while text[i] == ord(" ") or text[i] == ord("\t") or text[i] == ord("\n") or text[i] == ord("\r") or text[i] == 12:
        i += 1
    return i


@kernel
def _goes_on(letter):
    """Whether a letter behind a word or a number would be read as part of it, or may be."""
    return _is_word(letter) or letter == ord(".") or letter >= 0x80


@kernel
def _is_word(letter):
    capital = letter & MAKES_UPPER
    is_letter = ord("A") <= capital and capital <= ord("Z")
    return is_letter or _is_digit(letter) or letter == ord("_") or letter == ord("$")


@kernel
def _is_digit(letter):
    return ord("0") <= letter and letter <= ord("9")
