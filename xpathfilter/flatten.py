"""The flat document: a parsed tree as a handful of arrays, in document order.

    <a i="1">x<b>yz</b><b/></a>

    element          0:a  1:b  2:b      text    x y z        text node           0   1
    parent            -1    0    0              0 1 2        text_node_start     0   1
    depth              0    1    1                           text_node_end       1   3
    first_child        1   -1   -1      attribute_text  1    next_text          -1  -1
    next_sibling      -1    2   -1
    first_text         0    1   -1      attribute        0   names     0:a  1:i  2:b
    text_start         0    1    3      attribute_name   1
    text_end           3    3    3      value            [0, 1)

Text is appended as it is met, so the string-value of an element (all text below it) is the slice
`text[text_start:text_end]`. Comments and processing instructions have no row and add no text. A row
of the text nodes is a node that XPath's text() sees; it may be empty (`<b><![CDATA[]]></b>`). A
reference to an entity nobody declared adds nothing, as in libxml2's string-value.

There are two walks and they fill the same arrays. `flatten_tree` is a kernel that follows libxml2's
own structs, without the GIL; `flatten_slowly` asks lxml. The layout of the structs is proved when
this module is imported: both walk a known document and every array must agree, otherwise
`layout_is_proved` is False, a warning is logged and the slow walk is used.

A `FlatDocument` is scratch: one for each thread, overwritten by the next document. Only the first
`counts[...]` rows mean anything.
"""

import ctypes
import gc
import logging
import os
import struct
from collections.abc import Callable
from itertools import islice
from typing import Any, NamedTuple

import numba
import numpy as np
from lxml import etree

from sievecore.jit import kernel
from sievecore.memory import copy_bytes, load_i32, load_u8, load_u64, string_length
from xpathfilter.document import DEEPEST
from xpathfilter.errors import DocumentError

__all__ = [
    "FlatDocument",
    "element_at",
    "flatten",
    "flatten_slowly",
    "flatten_tree",
    "layout_is_proved",
    "new_flat_document",
    "node_address",
]

logger = logging.getLogger("pathsieve.xpathfilter")

# Cells of `FlatDocument.counts`.
N_ELEMENTS, N_TEXT_NODES, N_ATTRIBUTES, N_NAMES, N_LEVELS, TEXT_BYTES, ATTRIBUTE_BYTES, NAME_BYTES = range(8)
N_COUNTS = 8

# What a walk returns. A FULL_ code names the columns that need more rows.
OK, TOO_DEEP, FULL_ELEMENTS, FULL_TEXT_NODES, FULL_ATTRIBUTES, FULL_NAMES = range(6)
FULL_TEXT, FULL_ATTRIBUTE_TEXT, FULL_NAME_TEXT = range(6, 9)

NONE = -1


class FlatDocument(NamedTuple):
    """One document as arrays. Columns are int32, texts uint8 (UTF-8), counts int64.

    `name` and `attribute_name` number the distinct (namespace, local name) pairs of this document;
    the pair's bytes are in `name_text`, and an empty namespace range means no namespace. The columns
    from `last_text` on are working memory of the walk.
    """

    parent: Any
    name: Any
    depth: Any
    first_child: Any
    next_sibling: Any
    first_attribute: Any
    n_attributes: Any
    first_text: Any
    text_start: Any
    text_end: Any
    next_text: Any
    text_node_start: Any
    text_node_end: Any
    attribute_name: Any
    value_start: Any
    value_end: Any
    name_uri_start: Any
    name_uri_end: Any
    name_local_start: Any
    name_local_end: Any
    text: Any
    attribute_text: Any
    name_text: Any
    counts: Any
    last_text: Any
    name_keys: Any
    name_slots: Any


ELEMENT_COLUMNS = [
    *("parent", "name", "depth", "first_child", "next_sibling", "first_attribute", "n_attributes"),
    *("first_text", "text_start", "text_end", "last_text"),
]
TEXT_NODE_COLUMNS = ["next_text", "text_node_start", "text_node_end"]
ATTRIBUTE_COLUMNS = ["attribute_name", "value_start", "value_end"]
NAME_RANGE_COLUMNS = ["name_uri_start", "name_uri_end", "name_local_start", "name_local_end"]
TEXT_COLUMNS = ["text", "attribute_text", "name_text"]
ROW_COLUMNS = [*ELEMENT_COLUMNS, *TEXT_NODE_COLUMNS, *ATTRIBUTE_COLUMNS, *NAME_RANGE_COLUMNS]
WORKING_COLUMNS = {"last_text", "name_keys", "name_slots"}

COLUMNS_OF_CODE = {
    FULL_ELEMENTS: ELEMENT_COLUMNS,
    FULL_TEXT_NODES: TEXT_NODE_COLUMNS,
    FULL_ATTRIBUTES: ATTRIBUTE_COLUMNS,
    FULL_NAMES: [*NAME_RANGE_COLUMNS, "name_keys", "name_slots"],
    FULL_TEXT: ["text"],
    FULL_ATTRIBUTE_TEXT: ["attribute_text"],
    FULL_NAME_TEXT: ["name_text"],
}

MAX_ROWS = 2**31 - 1
RETAINED_ROWS, RETAINED_TEXT_BYTES = 2**18, 2**24
"""Scratch that one large document blew up beyond these is given back before the next document."""


def new_flat_document(rows: int = 1024, text_bytes: int = 16 * 1024) -> FlatDocument:
    """Return empty scratch with room for `rows` rows a column; both numbers are powers of two."""
    arrays = {column: np.zeros(rows, np.int32) for column in FlatDocument._fields}
    arrays |= {column: np.zeros(text_bytes, np.uint8) for column in TEXT_COLUMNS}
    # Twice as many slots as names keeps the open-addressing table half empty.
    arrays |= {"name_keys": np.zeros((rows, 3), np.uint64), "name_slots": np.zeros(2 * rows, np.int32)}
    return FlatDocument(**arrays | {"counts": np.zeros(N_COUNTS, np.int64)})


def grown(flat: FlatDocument, code: int) -> FlatDocument:
    """Return `flat` with twice the room in the columns that `code` reported full; contents are lost."""
    columns = COLUMNS_OF_CODE[code]
    if 2 * getattr(flat, columns[0]).shape[0] > MAX_ROWS:
        raise DocumentError(reason="too large: more text or nodes than 31-bit positions can number")
    return flat._replace(**{column: _doubled(getattr(flat, column)) for column in columns})


def _doubled(column: Any) -> Any:
    return np.zeros((2 * column.shape[0], *column.shape[1:]), column.dtype)


# The C walk -------------------------------------------------------------------------------------

# Offsets in libxml2's xmlNode, xmlAttr and xmlNs on 64-bit machines (include/libxml/tree.h).
# They are unsigned because numba adds a signed and an unsigned 64-bit integer as floats.
NODE_TYPE, NODE_NAME, NODE_CHILDREN = np.uint64(8), np.uint64(16), np.uint64(24)
NODE_PARENT, NODE_NEXT, NODE_NS = np.uint64(40), np.uint64(48), np.uint64(72)
NODE_CONTENT, NODE_PROPERTIES, NS_HREF = np.uint64(80), np.uint64(88), np.uint64(16)
ELEMENT_NODE, TEXT_NODE, CDATA_NODE = 1, 3, 4


@kernel
def flatten_tree(root, flat, max_depth):
    """Fill `flat` from the libxml2 element at address `root`; return OK or why it could not be done.

    `max_depth` is the number of levels allowed, the root's included. The owner of the tree must stay
    alive and unchanged during the call.
    """
    # Columns are taken out of the tuple once: taking one out counts its references, atomically, and doing
    # that for every node made the walk of 129 elements take 110 µs in place of 7.
    parents, names, depths, text = flat.parent, flat.name, flat.depth, flat.text
    first_child, next_sibling = flat.first_child, flat.next_sibling
    first_attribute, n_attributes = flat.first_attribute, flat.n_attributes
    first_text, last_text = flat.first_text, flat.last_text
    text_start, text_end = flat.text_start, flat.text_end
    next_text, text_node_start, text_node_end = flat.next_text, flat.text_node_start, flat.text_node_end
    attribute_name, value_start, value_end = flat.attribute_name, flat.value_start, flat.value_end
    attribute_text, counts, keys, slots = flat.attribute_text, flat.counts, flat.name_keys, flat.name_slots

    counts[:] = 0
    node, parent, previous, depth = np.uint64(root), NONE, NONE, 0
    n_elements, n_text_nodes, n_bytes, n_values, n_value_bytes = 0, 0, 0, 0, 0
    while True:
        kind = load_i32(node + NODE_TYPE)
        children = np.uint64(0)
        if kind == ELEMENT_NODE:
            if depth >= max_depth:
                return TOO_DEEP
            if n_elements == parents.size:
                return FULL_ELEMENTS
            element = n_elements
            name = _intern(node, counts, keys, slots)
            if name < 0:
                return FULL_NAMES
            first_attribute[element] = n_values
            attribute = load_u64(node + NODE_PROPERTIES)
            while attribute != 0:
                if n_values == attribute_name.size:
                    return FULL_ATTRIBUTES
                attribute_name[n_values] = _intern(attribute, counts, keys, slots)
                if attribute_name[n_values] < 0:
                    return FULL_NAMES
                end = _append_value(attribute, attribute_text, n_value_bytes)
                if end < 0:
                    return FULL_ATTRIBUTE_TEXT
                value_start[n_values], value_end[n_values] = n_value_bytes, end
                n_values += 1
                n_value_bytes = end
                attribute = load_u64(attribute + NODE_NEXT)
            n_attributes[element] = n_values - first_attribute[element]
            parents[element], depths[element], names[element] = parent, depth, name
            first_child[element] = next_sibling[element] = NONE
            first_text[element] = last_text[element] = NONE
            text_start[element] = n_bytes
            if previous != NONE:
                next_sibling[previous] = element
            elif parent != NONE:
                first_child[parent] = element
            n_elements += 1
            depth += 1
            counts[N_LEVELS] = max(counts[N_LEVELS], depth)
            parent, previous = element, NONE
            children = load_u64(node + NODE_CHILDREN)
        elif kind in (TEXT_NODE, CDATA_NODE):
            if n_text_nodes == next_text.size:
                return FULL_TEXT_NODES
            end = _append(load_u64(node + NODE_CONTENT), text, n_bytes)
            if end < 0:
                return FULL_TEXT
            if last_text[parent] == NONE:
                first_text[parent] = n_text_nodes
            else:
                next_text[last_text[parent]] = n_text_nodes
            last_text[parent] = n_text_nodes
            next_text[n_text_nodes] = NONE
            text_node_start[n_text_nodes], text_node_end[n_text_nodes] = n_bytes, end
            n_text_nodes += 1
            n_bytes = end

        if children != 0:
            node = children
            continue
        if kind == ELEMENT_NODE:  # an empty one closes at once
            text_end[parent] = n_bytes
            previous, parent, depth = parent, parents[parent], depth - 1
        while parent != NONE and load_u64(node + NODE_NEXT) == 0:
            node = load_u64(node + NODE_PARENT)
            text_end[parent] = n_bytes
            previous, parent, depth = parent, parents[parent], depth - 1
        if parent == NONE:  # the root is closed; what stands beside it is not walked
            break
        node = load_u64(node + NODE_NEXT)
    counts[N_ELEMENTS], counts[N_TEXT_NODES], counts[TEXT_BYTES] = n_elements, n_text_nodes, n_bytes
    counts[N_ATTRIBUTES], counts[ATTRIBUTE_BYTES] = n_values, n_value_bytes
    return _write_names(flat)


@kernel
def _append(string, target, start):
    """Copy a C string to `target[start:]`; return its end there, or -1 if it does not fit.

    A null pointer is an empty string.
    """
    if string == 0:
        return start
    n_bytes = string_length(string)
    if start + n_bytes > target.size:
        return -1
    copy_bytes(string, target, start, n_bytes)
    return start + n_bytes


@kernel
def _append_value(attribute, target, start):
    """Copy an attribute's value, the text nodes below it, as `_append` does."""
    end = start
    child = load_u64(attribute + NODE_CHILDREN)
    while child != 0 and end >= 0:
        if load_i32(child + NODE_TYPE) == TEXT_NODE:
            end = _append(load_u64(child + NODE_CONTENT), target, end)
        child = load_u64(child + NODE_NEXT)
    return end


@kernel
def _intern(node, counts, keys, slots):
    """Return the number of the node's name, a new one when it is first met, or -1 when there is no room.

    Local names come out of the parser's dictionary, so that equal names are equal pointers; namespace
    URIs do not, and a document may declare the same one a thousand times. Hence the table is keyed by
    the pointer of the local name, and URIs are compared by pointer first and by bytes second. A slot is
    in use only if its name points back at it, so nothing has to be cleared between documents.
    """
    local = load_u64(node + NODE_NAME)
    namespace = load_u64(node + NODE_NS)
    uri = load_u64(namespace + NS_HREF) if namespace != 0 else np.uint64(0)
    mask = np.uint64(slots.size - 1)
    slot = (local * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(32)) & mask
    while True:
        name = np.int64(slots[slot])
        if name >= counts[N_NAMES] or keys[name, 2] != slot:
            break
        if keys[name, 0] == local and _is_same_string(keys[name, 1], uri):
            # The next use is likely to stand under the same declaration.
            keys[name, 1] = uri
            return name
        slot = (slot + np.uint64(1)) & mask
    name = counts[N_NAMES]
    if name == keys.shape[0]:
        return -1
    keys[name, 0], keys[name, 1], keys[name, 2], slots[slot] = local, uri, slot, name
    counts[N_NAMES] += 1
    return name


@kernel
def _is_same_string(left, right):
    """Compare two C strings, either of which may be a null pointer."""
    if left == right or left == 0 or right == 0:
        return left == right
    i = np.uint64(0)
    while load_u8(left + i) == load_u8(right + i) and load_u8(left + i) != 0:
        i += np.uint64(1)
    return load_u8(left + i) == load_u8(right + i)


@kernel
def _write_names(flat):
    """Copy the names met by the walk from libxml2's memory to `name_text`."""
    keys, target = flat.name_keys, flat.name_text
    uri_start, uri_end = flat.name_uri_start, flat.name_uri_end
    local_start, local_end = flat.name_local_start, flat.name_local_end
    end = 0
    for name in range(flat.counts[N_NAMES]):
        start = end
        middle = _append(keys[name, 1], target, start)
        end = _append(keys[name, 0], target, middle) if middle >= 0 else -1
        if end < 0:
            return FULL_NAME_TEXT
        uri_start[name], uri_end[name], local_start[name], local_end[name] = start, middle, middle, end
    flat.counts[NAME_BYTES] = end
    return OK


# The plain walk ---------------------------------------------------------------------------------

_CHILD_NODES: Callable[[Any], list[Any]] = etree.XPath("node()", smart_strings=False)


class _PlainWalk:
    """The same rows, gathered through lxml in lists that grow by themselves."""

    def __init__(self, max_depth: int) -> None:
        self.max_depth = max_depth
        self.columns: dict[str, list[int]] = {column: [] for column in ROW_COLUMNS}
        self.texts: dict[str, bytearray] = {column: bytearray() for column in TEXT_COLUMNS}
        self.names: dict[tuple[str, str], int] = {}

    def walk(self, root: Any) -> None:
        open_elements = [(self.open_element(root, NONE, NONE), iter(_CHILD_NODES(root)))]
        previous = NONE
        while open_elements:
            element, children = open_elements[-1]
            child = next(children, None)
            if child is None:
                self.columns["text_end"][element] = len(self.texts["text"])
                previous, _ = open_elements.pop()
            elif isinstance(child, str):
                self.add_text_node(child, element)
            elif isinstance(child.tag, str):
                number = self.open_element(child, element, previous)
                open_elements.append((number, iter(_CHILD_NODES(child))))
                previous = NONE

    def append_row(self, **cells: int) -> int:
        for column, cell in cells.items():
            self.columns[column].append(cell)
        return len(self.columns[column]) - 1

    def append_text(self, column: str, text: str) -> tuple[int, int]:
        start = len(self.texts[column])
        self.texts[column] += text.encode()
        return start, len(self.texts[column])

    def open_element(self, element: Any, parent: int, previous: int) -> int:
        depth = self.columns["depth"][parent] + 1 if parent != NONE else 0
        if depth >= self.max_depth:
            raise _too_deep(self.max_depth)
        number = len(self.columns["parent"])
        if previous != NONE:
            self.columns["next_sibling"][previous] = number
        elif parent != NONE:
            self.columns["first_child"][parent] = number
        links = dict.fromkeys(("first_child", "next_sibling", "first_text", "last_text", "text_end"), NONE)
        self.append_row(parent=parent, depth=depth, name=self.name_of(element.tag), **links)
        self.append_row(text_start=len(self.texts["text"]))
        self.append_row(first_attribute=len(self.columns["attribute_name"]), n_attributes=len(element.attrib))
        for name, value in element.attrib.items():
            start, end = self.append_text("attribute_text", value)
            self.append_row(attribute_name=self.name_of(name), value_start=start, value_end=end)
        return number

    def add_text_node(self, text: str, parent: int) -> None:
        start, end = self.append_text("text", text)
        row = self.append_row(next_text=NONE, text_node_start=start, text_node_end=end)
        last = self.columns["last_text"][parent]
        if last == NONE:
            self.columns["first_text"][parent] = row
        else:
            self.columns["next_text"][last] = row
        self.columns["last_text"][parent] = row

    def name_of(self, tag: str) -> int:
        name = etree.QName(tag)
        key = (name.namespace or "", name.localname)
        if key not in self.names:
            self.names[key] = len(self.names)
            start, middle = self.append_text("name_text", key[0])
            _, end = self.append_text("name_text", key[1])
            self.append_row(
                name_uri_start=start, name_uri_end=middle, name_local_start=middle, name_local_end=end
            )
        return self.names[key]

    def counts(self) -> list[int]:
        leading = ("parent", "next_text", "attribute_name", "name_uri_start")
        rows = [len(self.columns[column]) for column in leading]
        return [*rows, max(self.columns["depth"]) + 1, *(len(self.texts[column]) for column in TEXT_COLUMNS)]


def flatten_slowly(root: Any, flat: FlatDocument, max_depth: int = DEEPEST) -> FlatDocument:
    """Fill `flat` as `flatten` does, through lxml's own interface: about fifty times slower."""
    plain = _PlainWalk(max_depth)
    plain.walk(root)
    rows: dict[str, Any] = plain.columns | plain.texts
    for code, columns in COLUMNS_OF_CODE.items():
        while len(rows[columns[0]]) > getattr(flat, columns[0]).shape[0]:
            flat = grown(flat, code)
    for column, cells in rows.items():
        getattr(flat, column)[: len(cells)] = cells
    flat.counts[:] = plain.counts()
    return flat


# The friendly side ------------------------------------------------------------------------------


def flatten(root: Any, flat: FlatDocument, max_depth: int = DEEPEST) -> FlatDocument:
    """Write the tree below the lxml element `root` into `flat`; return it, or a larger one in its place.

    >>> flat = flatten(etree.XML("<a>x<b>yz</b></a>"), new_flat_document())
    >>> flat.parent[: flat.counts[N_ELEMENTS]].tolist(), bytes(flat.text[: flat.counts[TEXT_BYTES]])
    ([-1, 0], b'xyz')
    """
    if _is_oversized(flat):
        flat = new_flat_document()
    if not layout_is_proved:
        return flatten_slowly(root, flat, max_depth)
    address = node_address(root)
    while (code := flatten_tree(address, flat, max_depth)) != OK:
        if code == TOO_DEEP:
            raise _too_deep(max_depth)
        flat = grown(flat, code)
    return flat


def _is_oversized(flat: FlatDocument) -> bool:
    rows = max(flat.parent.size, flat.next_text.size, flat.attribute_name.size, flat.name_slots.size)
    return rows > RETAINED_ROWS or max(flat.text.size, flat.attribute_text.size) > RETAINED_TEXT_BYTES


def _too_deep(max_depth: int) -> DocumentError:
    return DocumentError(reason=f"too deep: elements are nested in more than {max_depth} levels")


def node_address(root: Any) -> int:
    """Return the address of the libxml2 node behind an lxml element.

    lxml publishes this layout for C code (etreepublic.pxd): object header, document, `_c_node`.
    """
    return ctypes.c_uint64.from_address(id(root) + ELEMENT_C_NODE).value


def element_at(root: Any, number: int) -> Any:
    """Return the element that has `number` in the flat document of `root`, by walking there.

    >>> tree = etree.XML("<a><b/><!-- no element --><b/></a>")
    >>> tree.getroottree().getpath(element_at(tree, 2))
    '/a/b[2]'
    """
    return next(islice(root.iter("*"), number, None))


# The proof --------------------------------------------------------------------------------------

ELEMENT_DOCUMENT, ELEMENT_C_NODE = 16, 24
KNOWN_LXML = range(5, 7)
KNOWN_LIBXML2 = ((2, 10), (2, 16))
FORCE_PLAIN_WALK = "PATHSIEVE_PLAIN_WALK"
"""Set this environment variable to anything but nothing, and libxml2's structs are left alone."""

PROOF = (
    b"<?before?><a xmlns='urn:x' xmlns:p='urn:y' i='1' p:i='&lt;2'><!-- c -->one<p:b xml:lang='de'/>"
    b"two<![CDATA[ & three]]><b><c j=''/>\xc3\xa9<?pi?>\xf0\x9f\x8c\x8d</b><b xmlns=''><![CDATA[]]></b>"
    b"<p:d xmlns:p='urn:x'>tail</p:d> </a><!-- after -->"
)


def _layout_is_known(root: Any) -> bool:
    """Whether it is safe to follow pointers at all: nothing here looks outside the Python object."""
    is_plain_build = struct.calcsize("P") == 8 and object.__basicsize__ == ELEMENT_DOCUMENT
    is_known_version = (
        etree.LXML_VERSION[0] in KNOWN_LXML and KNOWN_LIBXML2[0] <= etree.LIBXML_VERSION < KNOWN_LIBXML2[1]
    )
    if not (is_plain_build and is_known_version and type(root).__basicsize__ > ELEMENT_C_NODE):
        return False
    document = ctypes.c_uint64.from_address(id(root) + ELEMENT_DOCUMENT).value
    address = node_address(root)
    return document in map(id, gc.get_referents(root)) and address != 0 and address % 8 == 0


def _is_same_document(left: FlatDocument, right: FlatDocument) -> bool:
    """Whether two flat documents agree in every column that describes the document."""
    if not np.array_equal(left.counts, right.counts):
        return False
    n_rows = dict(zip(COLUMNS_OF_CODE, left.counts[[0, 1, 2, 3, 5, 6, 7]], strict=True))
    return all(
        np.array_equal(getattr(left, column)[: n_rows[code]], getattr(right, column)[: n_rows[code]])
        for code, columns in COLUMNS_OF_CODE.items()
        for column in columns
        if column not in WORKING_COLUMNS
    )


def prove_layout() -> bool:
    """Walk a known document both ways and compare; say once in the log if the C walk cannot be used."""
    if os.environ.get(FORCE_PLAIN_WALK) or numba.config.DISABLE_JIT:
        return False
    root = etree.fromstring(PROOF)
    if _layout_is_known(root):
        by_pointer, by_lxml = new_flat_document(), new_flat_document()
        code = flatten_tree(node_address(root), by_pointer, DEEPEST)
        if code == OK and _is_same_document(by_pointer, flatten_slowly(root, by_lxml)):
            return True
    logger.warning(
        "lxml %s with libxml2 %s has an unknown memory layout: documents are walked through lxml, more slowly",
        etree.__version__,
        ".".join(map(str, etree.LIBXML_VERSION)),
    )
    return False


layout_is_proved: bool = prove_layout()
"""Whether `flatten` uses the C walk. Tests may set it to False; True must be earned."""
