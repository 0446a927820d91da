"""From a parsed tree to its flat document: two walks that fill the same arrays.

                          ┌── flatten_tree     a kernel: follows the pointers of libxml2, without the GIL
    root of an lxml tree ─┤                                                              ──▶ FlatDocument
                          └── flatten_slowly   plain Python, in `plain_walk`: asks lxml

The layout of libxml2's structs is proved when this module is imported: both walk a known document and
every array must agree, otherwise `layout_is_proved` is False, a warning is logged and the slow walk is
used. What the arrays mean is told in `flat_document`.
"""

import ctypes
import gc
import logging
import os
import struct
from itertools import islice
from typing import Any

import numba
import numpy as np
from lxml import etree

from sievecore.jit import kernel
from sievecore.memory import copy_bytes, load_i32, load_u8, load_u64, string_length
from xpathfilter.document import DEEPEST
from xpathfilter.flat_document import (
    ATTRIBUTE_BYTES,
    COUNTED_ARRAYS,
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
    too_deep,
)
from xpathfilter.plain_walk import flatten_slowly

__all__ = [
    "N_ELEMENTS",
    "N_LEVELS",
    "N_NAMES",
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

# The C walk -------------------------------------------------------------------------------------

# Offsets in libxml2's xmlNode, xmlAttr and xmlNs on 64-bit machines (include/libxml/tree.h).
# They are unsigned because numba adds a signed and an unsigned 64-bit integer as floats.
NODE_TYPE, NODE_NAME, NODE_CHILDREN = np.uint64(8), np.uint64(16), np.uint64(24)
NODE_PARENT, NODE_NEXT, NODE_NS = np.uint64(40), np.uint64(48), np.uint64(72)
NODE_CONTENT, NODE_PROPERTIES, NS_HREF = np.uint64(80), np.uint64(88), np.uint64(16)
ELEMENT_NODE, CHARACTERS_NODE, CDATA_NODE = 1, 3, 4


@kernel
def flatten_tree(root, flat, max_depth):
    """Fill `flat` from the libxml2 element at address `root`; return OK or the cell that says why not.

    `max_depth` is the number of levels allowed, the root's included. The owner of the tree must stay
    alive and unchanged during the call.
    """
    flat.counts[:] = 0
    node, parent_node = np.uint64(root), np.uint64(0)
    parent, previous, full = NONE, NONE, OK
    while True:
        kind = load_i32(node + NODE_TYPE)
        if kind == ELEMENT_NODE:
            full = _open_element(node, parent, previous, max_depth, flat)
            parent, previous = flat.counts[N_ELEMENTS], NONE
            flat.counts[N_ELEMENTS] += 1
            parent_node, node = node, load_u64(node + NODE_CHILDREN)
        else:
            if kind in (CHARACTERS_NODE, CDATA_NODE):
                full = _add_text_node(node, parent, flat)
            node = load_u64(node + NODE_NEXT)
        if full != OK:
            return full
        while node == 0:
            flat.elements[parent].text_end = flat.counts[TEXT_BYTES]
            previous, parent = parent, flat.elements[parent].parent
            if parent == NONE:  # the root is closed; what stands beside it is not walked
                return _write_names(flat)
            node, parent_node = load_u64(parent_node + NODE_NEXT), load_u64(parent_node + NODE_PARENT)


@kernel
def _open_element(node, parent, previous, max_depth, flat):
    """Write the element's row and attributes, and the links that lead to it; return OK or the full cell."""
    counts, number = flat.counts, flat.counts[N_ELEMENTS]
    depth = flat.elements[parent].depth + 1 if parent != NONE else 0
    if depth >= max_depth:
        return N_LEVELS
    if number == flat.elements.size:
        return N_ELEMENTS
    if previous != NONE:
        flat.elements[previous].next_sibling = number
    elif parent != NONE:
        flat.elements[parent].first_child = number
    counts[N_LEVELS] = max(counts[N_LEVELS], depth + 1)
    name = _intern(node, flat)
    if name == NONE:
        return N_NAMES
    element = flat.elements[number]
    element.parent, element.depth, element.name = parent, depth, name
    element.first_child = element.next_sibling = element.first_text = element.last_text = NONE
    element.text_start, element.first_attribute = counts[TEXT_BYTES], counts[N_ATTRIBUTES]
    full = _add_attributes(node, flat)
    element.n_attributes = counts[N_ATTRIBUTES] - element.first_attribute
    return full


@kernel
def _add_attributes(node, flat):
    counts, node = flat.counts, load_u64(node + NODE_PROPERTIES)
    while node != 0:
        if counts[N_ATTRIBUTES] == flat.attributes.size:
            return N_ATTRIBUTES
        attribute = flat.attributes[counts[N_ATTRIBUTES]]
        name, start = _intern(node, flat), counts[ATTRIBUTE_BYTES]
        if name == NONE:
            return N_NAMES
        end = _append_value(node, flat.attribute_text, start)
        if end == NONE:
            return ATTRIBUTE_BYTES
        attribute.name, attribute.start, attribute.end = name, start, end
        counts[N_ATTRIBUTES] += 1
        counts[ATTRIBUTE_BYTES] = end
        node = load_u64(node + NODE_NEXT)
    return OK


@kernel
def _add_text_node(node, parent, flat):
    """Append a text node to those of the element `parent`; return OK or the full cell."""
    counts, number, element = flat.counts, flat.counts[N_TEXT_NODES], flat.elements[parent]
    if number == flat.text_nodes.size:
        return N_TEXT_NODES
    start = counts[TEXT_BYTES]
    end = _append(load_u64(node + NODE_CONTENT), flat.text, start)
    if end == NONE:
        return TEXT_BYTES
    text_node = flat.text_nodes[number]
    text_node.next, text_node.start, text_node.end = NONE, start, end
    if element.last_text == NONE:
        element.first_text = number
    else:
        flat.text_nodes[element.last_text].next = number
    element.last_text = number
    counts[N_TEXT_NODES] += 1
    counts[TEXT_BYTES] = end
    return OK


@kernel
def _append(string, target, start):
    """Copy a C string to `target[start:]`; return its end there, or NONE if it does not fit.

    A null pointer is an empty string.
    """
    if string == 0:
        return start
    n_bytes = string_length(string)
    if start + n_bytes > target.size:
        return NONE
    copy_bytes(string, target, start, n_bytes)
    return start + n_bytes


@kernel
def _append_value(attribute, target, start):
    """Copy an attribute's value, the text nodes below it, as `_append` does."""
    end = start
    child = load_u64(attribute + NODE_CHILDREN)
    while child != 0 and end != NONE:
        if load_i32(child + NODE_TYPE) == CHARACTERS_NODE:
            end = _append(load_u64(child + NODE_CONTENT), target, end)
        child = load_u64(child + NODE_NEXT)
    return end


@kernel
def _intern(node, flat):
    """Return the number of the node's name, a new one when it is first met, or NONE when there is no room.

    Local names come out of the parser's dictionary, so that equal names are equal pointers; namespace
    URIs do not, and a document may declare the same one a thousand times. Hence the table is keyed by
    the pointer of the local name, and URIs are compared by pointer first and by bytes second. A slot is
    in use only if its name points back at it, so nothing has to be cleared between documents.
    """
    local, namespace = load_u64(node + NODE_NAME), load_u64(node + NODE_NS)
    uri = load_u64(namespace + NS_HREF) if namespace != 0 else np.uint64(0)
    mask = np.uint64(flat.name_slots.size - 1)
    slot = (local * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(32)) & mask
    while True:
        name = np.int64(flat.name_slots[slot])
        if name >= flat.counts[N_NAMES] or flat.name_keys[name].slot != slot:
            return _new_name(local, uri, slot, flat)
        key = flat.name_keys[name]
        if key.local == local and _is_same_string(key.uri, uri):
            key.uri = uri  # the next use is likely to stand under the same declaration
            return name
        slot = (slot + np.uint64(1)) & mask


@kernel
def _new_name(local, uri, slot, flat):
    name = flat.counts[N_NAMES]
    if name == flat.name_keys.size:
        return NONE
    key = flat.name_keys[name]
    key.local, key.uri, key.slot = local, uri, slot
    flat.name_slots[slot] = name
    flat.counts[N_NAMES] += 1
    return name


@kernel
def _is_same_string(left, right):
    """Compare two C strings, either of which may be a null pointer."""
    if left == right or left == 0 or right == 0:
        return left == right
    while load_u8(left) == load_u8(right) and load_u8(left) != 0:
        left, right = left + np.uint64(1), right + np.uint64(1)
    return load_u8(left) == load_u8(right)


@kernel
def _write_names(flat):
    """Copy the names met by the walk from libxml2's memory to `name_text`; return OK or the full cell."""
    end = 0
    for number in range(flat.counts[N_NAMES]):
        name, key = flat.names[number], flat.name_keys[number]
        name.uri_start = end
        name.uri_end = name.local_start = end = _append(key.uri, flat.name_text, end)
        if end != NONE:
            name.local_end = end = _append(key.local, flat.name_text, end)
        if end == NONE:
            return NAME_BYTES
    flat.counts[NAME_BYTES] = end
    return OK


# The friendly side ------------------------------------------------------------------------------


def flatten(root: Any, flat: FlatDocument, max_depth: int = DEEPEST) -> FlatDocument:
    """Write the tree below the lxml element `root` into `flat`; return it, or a larger one in its place.

    >>> flat = flatten(etree.XML("<a>x<b>yz</b></a>"), new_flat_document())
    >>> flat.elements["parent"][: flat.counts[N_ELEMENTS]].tolist()
    [-1, 0]
    >>> bytes(flat.text[: flat.counts[TEXT_BYTES]])
    b'xyz'
    """
    if is_oversized(flat):
        flat = new_flat_document()
    if not layout_is_proved:
        return flatten_slowly(root, flat, max_depth)
    address = node_address(root)
    while (full := flatten_tree(address, flat, max_depth)) != OK:
        if full == N_LEVELS:
            raise too_deep(max_depth)
        flat = grown(flat, full)
    return flat


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
    """Whether two flat documents agree in everything that describes the document."""
    return np.array_equal(left.counts, right.counts) and all(
        np.array_equal(getattr(left, array)[: left.counts[cell]], getattr(right, array)[: left.counts[cell]])
        for cell, array in COUNTED_ARRAYS.items()
    )


def prove_layout() -> bool:
    """Walk a known document both ways and compare; say once in the log if the C walk cannot be used."""
    if os.environ.get(FORCE_PLAIN_WALK) or numba.config.DISABLE_JIT:
        return False
    root = etree.fromstring(PROOF)
    if _layout_is_known(root):
        by_pointer, by_lxml = new_flat_document(), new_flat_document()
        full = flatten_tree(node_address(root), by_pointer, DEEPEST)
        if full == OK and _is_same_document(by_pointer, flatten_slowly(root, by_lxml)):
            return True
    logger.warning(
        "lxml %s with libxml2 %s has an unknown memory layout: documents are walked through lxml, slowly",
        etree.__version__,
        ".".join(map(str, etree.LIBXML_VERSION)),
    )
    return False


layout_is_proved: bool = prove_layout()
"""Whether `flatten` uses the C walk. Tests may set it to False; True must be earned."""
