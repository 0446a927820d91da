"""The bytes of plain documents: what each may be part of, and what follows one.

Every loop stops at a byte of the wrong kind, and a document ends with a zero, which is of no kind: so nobody asks
where the end is.
"""

import numpy as np

from sievecore.jit import kernel
from xpathfilter.flat_document import NONE

__all__ = [
    "AMPERSAND",
    "BLANK",
    "CARRIAGE_RETURN",
    "COLON",
    "DOUBLE_QUOTE",
    "EQUALS",
    "GREATER",
    "HYPHEN",
    "IN_HOST",
    "IN_NAME",
    "IN_QNAME",
    "IN_SECTION",
    "IN_TEXT",
    "IN_URI",
    "IN_VALUE",
    "KINDS",
    "LESS",
    "NAME_START",
    "NEWLINE",
    "NOT_PLAIN",
    "NUMBER_SIGN",
    "RIGHT_BRACKET",
    "SEMICOLON",
    "SINGLE_QUOTE",
    "SLASH",
    "SPACE",
    "TAB",
    "after",
    "length_of_character",
    "plain_bytes",
    "skip_blanks",
]

NOT_PLAIN = -2
"""Beside what a walk returns: this is for libxml2."""

TAB, NEWLINE, CARRIAGE_RETURN = b"\t\n\r"
SPACE, AMPERSAND, SLASH, COLON, SEMICOLON, HYPHEN, NUMBER_SIGN = b" &/:;-#"
LESS, EQUALS, GREATER, RIGHT_BRACKET, DOUBLE_QUOTE, SINGLE_QUOTE = b"<=>]\"'"

BLANK, NAME_START, IN_NAME, IN_QNAME, IN_TEXT, IN_VALUE, IN_SECTION, IN_URI, IN_HOST = (1 << bit for bit in range(9))


def _kinds() -> np.ndarray:
    """What an ASCII byte may be part of without another look at it."""
    kinds = np.zeros(256, np.uint16)
    for byte in range(128):
        character = chr(byte)
        is_blank, is_shown = character in " \t\n\r", byte >= SPACE
        for kind, has_it in (
            (BLANK, is_blank),
            (NAME_START, character.isalpha() or character == "_"),
            (IN_NAME, character.isalnum() or character in "_-."),
            (IN_QNAME, character.isalnum() or character in "_-.:"),
            (IN_TEXT, (is_shown and character not in "<&]") or character in "\t\n"),
            (IN_VALUE, is_shown and character not in "<&\"'"),
            (IN_SECTION, is_shown or is_blank),
            (IN_URI, character.isalnum() or character in "._-/:"),
            (IN_HOST, character.isalnum() or character in ".-"),
        ):
            kinds[byte] |= kind if has_it else 0
    return kinds


def plain_bytes(text: str) -> np.ndarray:
    """A text for kernels to look for."""
    return np.frombuffer(text.encode(), np.uint8)


KINDS = _kinds()


@kernel
def after(document, place, expected):
    """The place behind what is expected here, or NONE. Double quotes may as well be single ones, on both sides."""
    if place == NONE:
        return NONE
    quote = np.int64(0)
    for i in range(len(expected)):
        byte = np.int64(document[place + i])
        if expected[i] != DOUBLE_QUOTE:
            if byte != expected[i]:
                return NONE
        elif quote == 0 and (byte == DOUBLE_QUOTE or byte == SINGLE_QUOTE):
            quote = byte
        elif quote == 0 or byte != quote:
            return NONE
    return place + len(expected)


@kernel
def skip_blanks(document, place):
    while KINDS[document[place]] & BLANK:
        place += 1
    return place


@kernel
def length_of_character(document, place):
    """The bytes of a character beyond ASCII; 0 if it is not well-formed UTF-8, or no character of XML."""
    first = document[place]
    if first < 0xC2 or first > 0xF4:
        return 0
    second = document[place + 1]
    if second & 0xC0 != 0x80:
        return 0
    if first < 0xE0:
        return 2
    third = document[place + 2]
    if third & 0xC0 != 0x80:
        return 0
    if first < 0xF0:
        is_too_long, is_surrogate = first == 0xE0 and second < 0xA0, first == 0xED and second >= 0xA0
        is_none = first == 0xEF and second == 0xBF and third >= 0xBE
        return 0 if is_too_long or is_surrogate or is_none else 3
    is_too_long, is_too_high = first == 0xF0 and second < 0x90, first == 0xF4 and second >= 0x90
    return 0 if is_too_long or is_too_high or document[place + 3] & 0xC0 != 0x80 else 4
