"""The flat document: a parsed tree as a handful of arrays, in document order.

    <a i="1">x<b>yz</b><b/></a>

    elements          0:a  1:b  2:b      text  x y z       text_nodes   0    1
      parent           -1    0    0            0 1 2         start      0    1
      depth             0    1    1                          end        1    3
      first_child       1   -1   -1      attribute_text  1   next      -1   -1
      next_sibling     -1    2   -1
      first_text        0    1   -1      attributes     0    names    0:a  1:i  2:b
      text_start        0    1    3        name         1
      text_end          3    3    3        start, end   0, 1

Text is appended as it is met, so the string-value of an element (all text below it) is the slice
`text[text_start:text_end]`. Comments and processing instructions have no row and add no text. A row
of the text nodes is a node that XPath's text() sees; it may be empty (`<b><![CDATA[]]></b>`). A
reference to an entity nobody declared adds nothing, as in libxml2's string-value.

A `FlatDocument` is scratch: one for each thread, overwritten by the next document. Only the first
`counts[...]` rows mean anything. `flatten.flatten` fills it, and lets it grow where it is too small.
"""

from typing import Any, NamedTuple

import numpy as np

from sievecore.tables import columns
from xpathfilter.errors import DocumentError

__all__ = ["FlatDocument", "grown", "is_oversized", "new_flat_document", "too_deep"]

# Cells of `FlatDocument.counts`.
N_ELEMENTS, N_TEXT_NODES, N_ATTRIBUTES, N_NAMES, N_LEVELS = range(5)
TEXT_BYTES, ATTRIBUTE_BYTES, NAME_BYTES, N_BINDINGS = range(5, 9)
N_COUNTS = 9

OK = -1
"""What a walk returns; anything else is the cell of `counts` that would have passed its limit."""

NONE = -1


ELEMENT = columns(
    *("parent", "name", "depth", "first_child", "next_sibling", "first_attribute", "n_attributes"),
    *("first_text", "text_start", "text_end", "last_text"),
)
TEXT_NODE = columns("next", "start", "end")
ATTRIBUTE = columns("name", "start", "end")
NAME = columns("uri_start", "uri_end", "local_start", "local_end")
NAME_KEY = columns(local=np.uint64, uri=np.uint64, slot=np.uint64)
BINDING = columns("prefix_start", "prefix_end", "uri_start", "uri_end", "element", key=np.uint64)
MOST_BINDINGS = 64


class FlatDocument(NamedTuple):
    """One document as arrays: records of int32, texts in UTF-8 (uint8), counts in int64.

    The field `name` of elements and attributes numbers the distinct (namespace, local name) pairs of this
    document; the pair's bytes are in `name_text`, and an empty namespace range means no namespace. What
    comes after `counts` is working memory of the walk.
    """

    elements: Any
    text_nodes: Any
    attributes: Any
    names: Any
    text: Any
    attribute_text: Any
    name_text: Any
    counts: Any
    name_keys: Any
    name_slots: Any
    bindings: Any


COUNTED_ARRAYS = {
    N_ELEMENTS: "elements",
    N_TEXT_NODES: "text_nodes",
    N_ATTRIBUTES: "attributes",
    N_NAMES: "names",
    TEXT_BYTES: "text",
    ATTRIBUTE_BYTES: "attribute_text",
    NAME_BYTES: "name_text",
}
MAX_ROWS = 2**31 - 1
RETAINED_ROWS, RETAINED_TEXT_BYTES = 2**18, 2**24
"""Scratch that one large document blew up beyond these is given back before the next document."""


def new_flat_document(rows: int = 1024, text_bytes: int = 16 * 1024) -> FlatDocument:
    """Return empty scratch with room for `rows` rows an array; both numbers are powers of two."""
    return FlatDocument(
        elements=np.zeros(rows, ELEMENT),
        text_nodes=np.zeros(rows, TEXT_NODE),
        attributes=np.zeros(rows, ATTRIBUTE),
        names=np.zeros(rows, NAME),
        text=np.zeros(text_bytes, np.uint8),
        attribute_text=np.zeros(text_bytes, np.uint8),
        name_text=np.zeros(text_bytes, np.uint8),
        counts=np.zeros(N_COUNTS, np.int64),
        name_keys=np.zeros(rows, NAME_KEY),
        # Twice as many slots as names keeps the open-addressing table half empty.
        name_slots=np.zeros(2 * rows, np.int32),
        bindings=np.zeros(MOST_BINDINGS, BINDING),
    )


def grown(flat: FlatDocument, full: int) -> FlatDocument:
    """Return `flat` with twice the room for what the cell `full` counts; contents are lost."""
    arrays = [COUNTED_ARRAYS[full], *(("name_keys", "name_slots") if full == N_NAMES else ())]
    if 2 * getattr(flat, arrays[0]).size > MAX_ROWS:
        raise DocumentError("document too large: more text or nodes than 31-bit positions can number")
    return flat._replace(**{array: _doubled(getattr(flat, array)) for array in arrays})


def _doubled(array: Any) -> Any:
    return np.zeros(2 * array.size, array.dtype)


def is_oversized(flat: FlatDocument) -> bool:
    """Whether `flat` has more room than is worth keeping."""
    rows = max(flat.elements.size, flat.text_nodes.size, flat.attributes.size, flat.names.size)
    text_bytes = max(flat.text.size, flat.attribute_text.size, flat.name_text.size)
    return rows > RETAINED_ROWS or text_bytes > RETAINED_TEXT_BYTES


def too_deep(max_depth: int) -> DocumentError:
    return DocumentError(f"document too deep: elements are nested in more than {max_depth} levels")
