"""From the bytes of a plain document to its flat document at once, without a tree.

    <?xml version="1.0" encoding="UTF-8"?>
    <a i="1">x &lt; <b>é</b></a>              ──▶ elements, attributes, text nodes, names
    <a xmlns="urn:x"> <!-- … --> </a>         ──▶ NOT_PLAIN: libxml2 reads it, and `flatten` walks its tree

Plain is what most generated documents are, and no more: UTF-8 without a byte order mark, names in ASCII and without a
prefix, attributes, text, the five entities of XML. Comments, CDATA sections, processing instructions, namespaces,
numbers of characters, carriage returns and declarations of a type are not plain, and nothing that is wrong is: a
document that this reader takes, libxml2 takes too, and says the same of it. So only libxml2 refuses, in its own words.

A document of 4.5 KB takes 14 us here and 65 through libxml2, and is read without the GIL from first byte to last.
"""

from typing import Any

import numpy as np

from sievecore.hashing import SEED, same_bytes
from sievecore.jit import kernel
from xpathfilter.flat_document import (
    ATTRIBUTE_BYTES,
    N_ATTRIBUTES,
    N_ELEMENTS,
    N_LEVELS,
    N_NAMES,
    N_TEXT_NODES,
    NAME_BYTES,
    NONE,
    OK,
    TEXT_BYTES,
    FlatDocument,
    grown,
    is_oversized,
    new_flat_document,
)

__all__ = ["NOT_PLAIN", "read_plain", "with_sentinel", "written_plainly"]

NOT_PLAIN = -2
"""Beside what a walk returns: this is for libxml2."""

PLAIN_BYTES, PLAIN_DEPTH, PLAIN_ATTRIBUTES, PLAIN_NAME, PLAIN_NAMES = 1 << 22, 200, 64, 1000, 4096
"""Far within all guards of libxml2. Each attribute of an element is compared with all before it, and names that were
chosen to have the same hash are compared too: so few cost nothing to speak of."""

TAB, NEWLINE, SPACE, AMPERSAND, SLASH = 9, 10, 32, ord("&"), ord("/")
LESS, EQUALS, GREATER, RIGHT_BRACKET = ord("<"), ord("="), ord(">"), ord("]")
DOUBLE_QUOTE, SINGLE_QUOTE = ord('"'), ord("'")

NAME_START, IN_NAME, BLANK, IN_TEXT, IN_VALUE = 1, 2, 4, 8, 16


def _kinds() -> np.ndarray:
    """What an ASCII byte may be part of without another look at it."""
    kinds = np.zeros(256, np.uint8)
    for byte in range(128):
        character = chr(byte)
        if character.isalpha() or character == "_":
            kinds[byte] |= NAME_START
        if character.isalnum() or character in "_-.":
            kinds[byte] |= IN_NAME
        if character in " \t\n":
            kinds[byte] |= BLANK
        if (byte >= SPACE and character not in "<&]") or character in "\t\n":
            kinds[byte] |= IN_TEXT
        if byte >= SPACE and character not in "<&\"'":
            kinds[byte] |= IN_VALUE
    return kinds


def _bytes(text: str) -> np.ndarray:
    return np.frombuffer(text.encode(), np.uint8)


KINDS = _kinds()
VERSION, CLOSE = _bytes('<?xml version="1.0"'), _bytes("?>")
UPPER, LOWER = _bytes(' encoding="UTF-8"'), _bytes(' encoding="utf-8"')
ALONE, NOT_ALONE = _bytes(' standalone="yes"'), _bytes(' standalone="no"')
XMLNS = _bytes("xmlns")
AMP, LT, GT, QUOT, APOS = _bytes("&amp;"), _bytes("&lt;"), _bytes("&gt;"), _bytes("&quot;"), _bytes("&apos;")
BYTE_FACTOR = np.uint64(0x100000001B3)


@kernel
def read_plain(document, start, end, flat, max_bytes, max_depth):
    """Fill `flat` from document[start:end], behind which is a zero; OK, the cell that is full, or NOT_PLAIN."""
    flat.counts[:] = 0
    n_bytes = end - start
    if n_bytes > min(max_bytes, PLAIN_BYTES):
        return NOT_PLAIN
    if n_bytes > min(flat.text.size, flat.attribute_text.size, flat.name_text.size):  # no text is longer
        return _smallest_text(flat)
    place = _skip_blanks(document, _after_declaration(document, start))
    parent, previous, code = NONE, NONE, OK
    while document[place] == LESS:
        if document[place + 1] == SLASH:
            place = _read_end_tag(document, place + 2, flat, parent)
            is_closed = True
        else:
            code, place = _read_start_tag(document, place + 1, flat, parent, previous, min(max_depth, PLAIN_DEPTH))
            parent, previous = flat.counts[N_ELEMENTS] - 1, NONE
            is_closed = document[place] == SLASH
            if is_closed:
                place += 1
        if code != OK or document[place] != GREATER:
            return code if code != OK else NOT_PLAIN
        place += 1
        if is_closed:
            flat.elements[parent].text_end = flat.counts[TEXT_BYTES]
            previous, parent = parent, flat.elements[parent].parent
            if parent == NONE:
                return OK if _skip_blanks(document, place) == end else NOT_PLAIN
        code, place = _read_text(document, place, flat, parent)
        if code != OK:
            return code
    return NOT_PLAIN


@kernel
def _smallest_text(flat):
    if flat.text.size <= min(flat.attribute_text.size, flat.name_text.size):
        return TEXT_BYTES
    return ATTRIBUTE_BYTES if flat.attribute_text.size <= flat.name_text.size else NAME_BYTES


@kernel
def _after_declaration(document, place):
    """Where the document goes on after an XML declaration; where it starts if it has none, or another one."""
    after = _after(document, place, VERSION)
    after = max(after, _after(document, after, UPPER), _after(document, after, LOWER))
    after = max(after, _after(document, after, ALONE), _after(document, after, NOT_ALONE))
    return max(place, _after(document, after, CLOSE))


@kernel
def _after(document, place, expected):
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
def _skip_blanks(document, place):
    while KINDS[document[place]] & BLANK:
        place += 1
    return place


@kernel
def _read_end_tag(document, place, flat, parent):
    """From behind `</` to the `>`, if the name is that of the open element; otherwise to where it differs."""
    if parent == NONE:
        return place - 1
    name = flat.names[flat.elements[parent].name]
    for i in range(name.local_start, name.local_end):
        if document[place] != flat.name_text[i]:
            return place - 1  # a slash, or a byte of the name
        place += 1
    return _skip_blanks(document, place)


@kernel
def _read_start_tag(document, place, flat, parent, previous, max_depth):
    """From behind `<` to the `>` or `/>`: a row for the element, and one for each attribute."""
    counts, number = flat.counts, flat.counts[N_ELEMENTS]
    depth = flat.elements[parent].depth + 1 if parent != NONE else 0
    if depth >= max_depth:
        return NOT_PLAIN, place
    if number == flat.elements.size:
        return N_ELEMENTS, place
    if previous != NONE:
        flat.elements[previous].next_sibling = number
    elif parent != NONE:
        flat.elements[parent].first_child = number
    counts[N_ELEMENTS] += 1
    counts[N_LEVELS] = max(counts[N_LEVELS], depth + 1)
    code, name, place = _read_name(document, place, flat)
    if code != OK:
        return code, place
    element = flat.elements[number]
    element.parent, element.depth, element.name = parent, depth, name
    element.first_child = element.next_sibling = element.first_text = element.last_text = NONE
    element.text_start, element.first_attribute = counts[TEXT_BYTES], counts[N_ATTRIBUTES]
    while KINDS[document[place]] & BLANK and code == OK:
        place = _skip_blanks(document, place)
        if document[place] == GREATER or document[place] == SLASH:
            break
        code, place = _read_attribute(document, place, flat, element.first_attribute)
    element.n_attributes = counts[N_ATTRIBUTES] - element.first_attribute
    return code, place


@kernel
def _read_attribute(document, place, flat, first):
    counts = flat.counts
    start_of_name = place
    code, name, place = _read_name(document, place, flat)
    if code != OK or _after(document, start_of_name, XMLNS) == place:
        return code if code != OK else NOT_PLAIN, place
    place = _skip_blanks(document, place)
    if document[place] != EQUALS:
        return NOT_PLAIN, place
    place = _skip_blanks(document, place + 1)
    if document[place] != DOUBLE_QUOTE and document[place] != SINGLE_QUOTE:
        return NOT_PLAIN, place
    number = counts[N_ATTRIBUTES]
    if number == flat.attributes.size:
        return N_ATTRIBUTES, place
    if number - first == PLAIN_ATTRIBUTES:
        return NOT_PLAIN, place
    for i in range(first, number):
        if flat.attributes[i].name == name:
            return NOT_PLAIN, place
    attribute = flat.attributes[number]
    attribute.name, attribute.start = name, counts[ATTRIBUTE_BYTES]
    code, place = _read_value(document, place, flat)
    attribute.end = counts[ATTRIBUTE_BYTES]
    counts[N_ATTRIBUTES] += 1
    return code, place


@kernel
def _read_value(document, place, flat):
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
            place, end = _read_odd(document, place, text, end)
            if place == NONE:
                return NOT_PLAIN, place
    flat.counts[ATTRIBUTE_BYTES] = end
    return OK, place + 1


@kernel
def _read_text(document, place, flat, parent):
    """Up to the next `<`; what is before it is a text node, unless it is nothing."""
    counts, number, text = flat.counts, flat.counts[N_TEXT_NODES], flat.text
    start = end = counts[TEXT_BYTES]
    while document[place] != LESS:
        byte = document[place]
        if KINDS[byte] & IN_TEXT or (byte == RIGHT_BRACKET and not _closes_cdata(document, place)):
            text[end], place, end = byte, place + 1, end + 1
        else:
            place, end = _read_odd(document, place, text, end)
            if place == NONE:
                return NOT_PLAIN, place
    if end == start:
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
def _closes_cdata(document, place):
    return document[place + 1] == RIGHT_BRACKET and document[place + 2] == GREATER


@kernel
def _read_odd(document, place, text, end):
    """Read a reference or a character beyond ASCII; the place behind it, or NONE, and the end of the text."""
    if document[place] == AMPERSAND:
        text[end], place = _entity(document, place)
        return place, end + 1
    n_bytes = _length_of_character(document, place)
    if n_bytes == 0:
        return NONE, end
    for i in range(n_bytes):
        text[end + i] = document[place + i]
    return place + n_bytes, end + n_bytes


@kernel
def _entity(document, place):
    """The character that one of the five entities stands for, and the place behind it, or NONE."""
    if document[place + 1] == AMP[1]:
        after = _after(document, place, AMP)
        return (AMPERSAND, after) if after != NONE else (SINGLE_QUOTE, _after(document, place, APOS))
    if document[place + 1] == LT[1]:
        return LESS, _after(document, place, LT)
    if document[place + 1] == GT[1]:
        return GREATER, _after(document, place, GT)
    return DOUBLE_QUOTE, _after(document, place, QUOT)


@kernel
def _length_of_character(document, place):
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


@kernel
def _read_name(document, place, flat):
    """OK, the number of the name at `place`, a new one when it is first met, and the place behind it.

    The table is that of `flatten`, keyed by a hash of the name instead of its address.
    """
    start, key = place, SEED
    if not KINDS[document[place]] & NAME_START:
        return NOT_PLAIN, NONE, place
    while KINDS[document[place]] & IN_NAME:
        key = (key ^ np.uint64(document[place])) * BYTE_FACTOR
        place += 1
    if place - start > PLAIN_NAME:
        return NOT_PLAIN, NONE, place
    mask = np.uint64(flat.name_slots.size - 1)
    slot = (key ^ (key >> np.uint64(32))) & mask
    while True:
        number = np.int64(flat.name_slots[slot])
        if number >= flat.counts[N_NAMES] or flat.name_keys[number].slot != slot:
            return _new_name(document, start, place, key, slot, flat)
        name = flat.names[number]
        if flat.name_keys[number].local == key and same_bytes(
            flat.name_text, name.local_start, name.local_end, document, start, place
        ):
            return OK, number, place
        slot = (slot + np.uint64(1)) & mask


@kernel
def _new_name(document, start, place, key, slot, flat):
    counts, number = flat.counts, flat.counts[N_NAMES]
    if number == PLAIN_NAMES:
        return NOT_PLAIN, NONE, place
    if number == flat.name_keys.size:
        return N_NAMES, NONE, place
    flat.name_keys[number].local, flat.name_keys[number].uri, flat.name_keys[number].slot = key, np.uint64(0), slot
    flat.name_slots[slot] = number
    name, end = flat.names[number], counts[NAME_BYTES]
    name.uri_start = name.uri_end = name.local_start = end
    for i in range(start, place):
        flat.name_text[end] = document[i]
        end += 1
    name.local_end = counts[NAME_BYTES] = end
    counts[N_NAMES] += 1
    return OK, number, place


# The friendly side ------------------------------------------------------------------------------


def with_sentinel(document: Any) -> bytes:
    """The bytes of a document and a zero, where the reader stops; of what is no text, and of bad text, nothing."""
    if isinstance(document, str):
        try:
            return document.encode() + b"\0"
        except UnicodeEncodeError:
            return b"\0"
    return document + b"\0" if isinstance(document, bytes) else b"\0"


def written_plainly(document: Any, flat: FlatDocument, max_bytes: int, max_depth: int) -> FlatDocument | None:
    """`flat`, or a larger one, with a plain document in it; None if it is not plain.

    >>> flat = written_plainly("<a>x<b>yz</b></a>", new_flat_document(), 1000, 10)
    >>> flat.elements["parent"][: flat.counts[N_ELEMENTS]].tolist()
    [-1, 0]
    >>> written_plainly("<a><!-- x --></a>", new_flat_document(), 1000, 10) is None
    True
    """
    content = np.frombuffer(with_sentinel(document), np.uint8)
    if is_oversized(flat):
        flat = new_flat_document()
    while (code := read_plain(content, 0, len(content) - 1, flat, max_bytes, max_depth)) != OK:
        if code == NOT_PLAIN:
            return None
        flat = grown(flat, code)
    return flat
