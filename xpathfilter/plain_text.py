"""The text of plain documents: characters, references, CDATA sections and comments.

    x &lt; <![CDATA[y]]><!-- … -->&#65;é     ──▶ two text nodes, "x < y" and "Aé"
    i="1&#10;2                                ──▶ a value, "1", the end of a line, "2 3"
    3"

No text is longer than what it is written as, so there is always room.
"""

import numpy as np

from sievecore.jit import kernel
from xpathfilter.flat_document import ATTRIBUTE_BYTES, N_TEXT_NODES, NONE, OK, TEXT_BYTES
from xpathfilter.plain_bytes import (
    AMPERSAND,
    CARRIAGE_RETURN,
    DOUBLE_QUOTE,
    GREATER,
    HYPHEN,
    IN_SECTION,
    IN_TEXT,
    IN_VALUE,
    KINDS,
    LESS,
    NEWLINE,
    NOT_PLAIN,
    NUMBER_SIGN,
    RIGHT_BRACKET,
    SEMICOLON,
    SINGLE_QUOTE,
    SPACE,
    TAB,
    after,
    length_of_character,
    plain_bytes,
    skip_blanks,
)

__all__ = ["read_content", "read_value", "skip_comments"]

COMMENT, CDATA, HEXADECIMAL = plain_bytes("<!--"), plain_bytes("<![CDATA["), plain_bytes("x")
AMP, LT, GT = plain_bytes("&amp;"), plain_bytes("&lt;"), plain_bytes("&gt;")
QUOT, APOS = plain_bytes("&quot;"), plain_bytes("&apos;")
NO_DIGIT = 16
LARGEST = 0x10FFFF


def _digits() -> np.ndarray:
    digits = np.full(256, NO_DIGIT, np.int64)
    for value, (lower, upper) in enumerate(zip(b"0123456789abcdef", b"0123456789ABCDEF", strict=True)):
        digits[lower] = digits[upper] = value
    return digits


DIGITS = _digits()


@kernel
def skip_comments(document, place):
    """Past blanks and comments, before and behind the root; what is no good comment stays."""
    behind = place
    while behind != NONE:
        place = skip_blanks(document, behind)
        behind = _after_comment(document, place)
    return place


@kernel
def _after_comment(document, place):
    """The place behind a comment; NONE if there is none, or none that is plain."""
    place = after(document, place, COMMENT)
    if place == NONE:
        return NONE
    while document[place] != HYPHEN or document[place + 1] != HYPHEN:
        n_bytes = 1 if KINDS[document[place]] & IN_SECTION else length_of_character(document, place)
        if n_bytes == 0:
            return NONE
        place += n_bytes
    return place + 3 if document[place + 2] == GREATER else NONE


@kernel
def read_value(document, place, flat):
    """From one quote to behind the other; what is between goes to the text of attributes."""
    quote, text, end = document[place], flat.attribute_text, flat.counts[ATTRIBUTE_BYTES]
    place += 1
    while document[place] != quote:
        byte = document[place]
        if KINDS[byte] & IN_VALUE or byte == DOUBLE_QUOTE or byte == SINGLE_QUOTE:
            text[end], place, end = byte, place + 1, end + 1
        elif byte == TAB or byte == NEWLINE:
            text[end], place, end = SPACE, place + 1, end + 1
        else:
            place, end = _read_odd(document, place, text, end, SPACE)
            if place == NONE:
                return NOT_PLAIN, place
    flat.counts[ATTRIBUTE_BYTES] = end
    return OK, place + 1


@kernel
def read_content(document, place, flat, parent):
    """Up to the next tag: text nodes, and comments between them."""
    code = OK
    while code == OK and place != NONE:
        code, end = _read_text(document, place, flat, parent)
        place = _after_comment(document, end)
    return code, end


@kernel
def _read_text(document, place, flat, parent):
    """Up to the next tag or comment; what is before it is one text node, unless it is nothing at all."""
    counts, number, text = flat.counts, flat.counts[N_TEXT_NODES], flat.text
    start, has_section = counts[TEXT_BYTES], False
    place, end = _read_characters(document, place, text, start)
    section = after(document, place, CDATA)
    while section != NONE:
        has_section = True
        place, end = _read_section(document, section, text, end)
        place, end = _read_characters(document, place, text, end)
        section = after(document, place, CDATA)
    if place == NONE:
        return NOT_PLAIN, place
    if end == start and not has_section:
        return OK, place
    if number == flat.text_nodes.size:
        return N_TEXT_NODES, place
    text_node, element = flat.text_nodes[number], flat.elements[parent]
    text_node.next, text_node.start, text_node.end = NONE, start, end
    if element.last_text == NONE:
        element.first_text = number
    else:
        flat.text_nodes[element.last_text].next = number
    element.last_text = number
    counts[N_TEXT_NODES] += 1
    counts[TEXT_BYTES] = end
    return OK, place


@kernel
def _read_characters(document, place, text, end):
    """Up to the next `<`, or to NONE."""
    while place != NONE and document[place] != LESS:
        byte = document[place]
        if KINDS[byte] & IN_TEXT or (byte == RIGHT_BRACKET and not _closes_section(document, place)):
            text[end], place, end = byte, place + 1, end + 1
        else:
            place, end = _read_odd(document, place, text, end, NEWLINE)
    return place, end


@kernel
def _read_section(document, place, text, end):
    """From behind `<![CDATA[` to behind `]]>`, or to NONE."""
    while place != NONE and not (document[place] == RIGHT_BRACKET and _closes_section(document, place)):
        byte = document[place]
        if KINDS[byte] & IN_SECTION and byte != CARRIAGE_RETURN:
            text[end], place, end = byte, place + 1, end + 1
        else:
            place, end = _read_character(document, place, text, end, NEWLINE)
    return place + 3 if place != NONE else NONE, end


@kernel
def _closes_section(document, place):
    return document[place + 1] == RIGHT_BRACKET and document[place + 2] == GREATER


@kernel
def _read_odd(document, place, text, end, newline):
    """Read a reference, or what `_read_character` does."""
    if document[place] != AMPERSAND:
        return _read_character(document, place, text, end, newline)
    if document[place + 1] == NUMBER_SIGN:
        number, place = _number(document, place + 2)
        return place, _append_character(number, text, end) if place != NONE else end
    text[end], place = _entity(document, place)
    return place, end + 1


@kernel
def _read_character(document, place, text, end, newline):
    """Read the end of a line or a character beyond ASCII: where it ends, or NONE, and where the text does."""
    if document[place] == CARRIAGE_RETURN:
        if document[place + 1] != NEWLINE:
            text[end], end = newline, end + 1
        return place + 1, end
    n_bytes = length_of_character(document, place)
    if n_bytes == 0:
        return NONE, end
    for i in range(n_bytes):
        text[end + i] = document[place + i]
    return place + n_bytes, end + n_bytes


@kernel
def _entity(document, place):
    """The character that one of the five entities stands for, and the place behind it, or NONE."""
    if document[place + 1] == AMP[1]:
        behind = after(document, place, AMP)
        return (AMPERSAND, behind) if behind != NONE else (SINGLE_QUOTE, after(document, place, APOS))
    if document[place + 1] == LT[1]:
        return LESS, after(document, place, LT)
    if document[place + 1] == GT[1]:
        return GREATER, after(document, place, GT)
    return DOUBLE_QUOTE, after(document, place, QUOT)


@kernel
def _number(document, place):
    """The character of 65; or x41; and the place behind that; NONE if it is no number, or of no character of XML."""
    base, number = 10, 0
    if document[place] == HEXADECIMAL[0]:
        base, place = 16, place + 1
    while DIGITS[document[place]] < base and number <= LARGEST:
        number = number * base + DIGITS[document[place]]
        place += 1
    is_low = number == TAB or number == NEWLINE or number == CARRIAGE_RETURN or 0x20 <= number < 0xD800
    if document[place] != SEMICOLON or not (is_low or 0xE000 <= number < 0xFFFE or 0x10000 <= number <= LARGEST):
        return 0, NONE
    return number, place + 1


@kernel
def _append_character(number, text, end):
    """Write a character in UTF-8; where the text ends then."""
    if number < 0x80:
        text[end] = number
        return end + 1
    n_more = 1 if number < 0x800 else 2 if number < 0x10000 else 3
    text[end] = (0xF80 >> n_more & 0xFF) | number >> 6 * n_more
    for i in range(1, n_more + 1):
        text[end + i] = 0x80 | number >> 6 * (n_more - i) & 0x3F
    return end + n_more + 1
