"""Names and namespaces of plain documents: which declaration a prefix means here, and which number a name has.

    <a xmlns="urn:x"><p:b xmlns:p="urn:y" i="1" p:i="2"/></a>

    bindings     prefix   uri      element          names    0: urn:x a   1: urn:y b   2: i   3: urn:y i
                          urn:x    a
                 p        urn:y    b        ◀── taken off when b is closed

A name stands for (URI, local name), whatever the prefix. A tag that declares something is read twice, because its
declarations may stand behind the names they are for. URIs are taken where no reader of URIs could have doubts: libxml2
refuses a document for a bad one.
"""

import numpy as np

from sievecore.hashing import SEED, same_bytes
from sievecore.jit import kernel
from xpathfilter.flat_document import N_BINDINGS, N_NAMES, NAME_BYTES, NONE, OK
from xpathfilter.plain_bytes import (
    BLANK,
    COLON,
    DOUBLE_QUOTE,
    EQUALS,
    GREATER,
    IN_HOST,
    IN_NAME,
    IN_QNAME,
    IN_URI,
    KINDS,
    NAME_START,
    NOT_PLAIN,
    NUMBER_SIGN,
    SINGLE_QUOTE,
    SLASH,
    after,
    plain_bytes,
    skip_blanks,
)

__all__ = [
    "PLAIN_NAME",
    "PLAIN_NAMES",
    "UNBOUND",
    "behind_attribute",
    "declare_all",
    "declared_prefix",
    "drop_bindings",
    "read_name",
    "to_value",
]

PLAIN_NAME, PLAIN_NAMES = 1000, 4096
"""Bytes, and names in a document: those that were chosen to have the same hash are all compared."""

UNBOUND = -3
"""Beside what a walk returns: a prefix that nothing has declared so far."""

BYTE_FACTOR = np.uint64(0x100000001B3)
XML, XMLNS = plain_bytes("xml"), plain_bytes("xmlns")
RESERVED = plain_bytes("http://www.w3.org/XML/1998/namespace"), plain_bytes("http://www.w3.org/2000/xmlns/")


@kernel
def to_value(document, place):
    """From behind the name of an attribute to the quote that opens its value, or NONE."""
    place = skip_blanks(document, place)
    if document[place] != EQUALS:
        return NONE
    place = skip_blanks(document, place + 1)
    return place if document[place] == DOUBLE_QUOTE or document[place] == SINGLE_QUOTE else NONE


@kernel
def declared_prefix(document, place):
    """Where the prefix begins that an attribute declares, and where it ends; NONE if it declares none."""
    place = after(document, place, XMLNS)
    if place == NONE or not KINDS[document[place]] & IN_QNAME:
        return place, place
    if document[place] != COLON:
        return NONE, NONE
    end = _behind_name(document, place)
    return (place + 1, end) if end > place + 1 else (NONE, NONE)


@kernel
def declare_all(document, place, flat, element):
    """Bind what the tag declares whose name is at `place`; False if that is not plain."""
    place = _behind_name(document, place)
    while KINDS[document[place]] & BLANK:
        place = skip_blanks(document, place)
        if document[place] == GREATER or document[place] == SLASH:
            return True
        prefix, end = declared_prefix(document, place)
        if prefix == NONE:
            place = behind_attribute(document, place)
        else:
            place = _declare(document, prefix, end, to_value(document, end), flat, element)
        if place == NONE:
            return False
    return True


@kernel
def behind_attribute(document, place):
    """The place behind an attribute, whatever it says; NONE if it never ends."""
    place = to_value(document, _behind_name(document, place))
    if place == NONE:
        return NONE
    quote = document[place]
    place += 1
    while document[place] != quote:
        if document[place] == 0:
            return NONE
        place += 1
    return place + 1


@kernel
def _behind_name(document, place):
    while KINDS[document[place]] & IN_QNAME:
        place += 1
    return place


@kernel
def _declare(document, prefix, prefix_end, start, flat, element):
    """Bind a prefix to the URI that is between the quotes at `start`; the place behind them, or NONE."""
    if start == NONE:
        return NONE
    end, count = _end_of_uri(document, start + 1, document[start]), flat.counts[N_BINDINGS]
    if end == NONE or count == flat.bindings.size or not _may_be_declared(document, prefix, prefix_end, start + 1, end):
        return NONE
    binding = flat.bindings[count]
    binding.prefix_start, binding.prefix_end, binding.element = prefix, prefix_end, element
    binding.uri_start, binding.uri_end, binding.key = start + 1, end, _hash(document, start + 1, end)
    if _is_bound_here(document, flat, count):
        return NONE
    flat.counts[N_BINDINGS] += 1
    return end + 1


@kernel
def _may_be_declared(document, prefix, prefix_end, start, end):
    is_default = prefix == prefix_end
    if start == end:
        return is_default
    if not is_default and not (KINDS[document[prefix]] & NAME_START and _read_part(document, prefix)[0] == prefix_end):
        return False
    if after(document, prefix, XML) == prefix_end or after(document, prefix, XMLNS) == prefix_end:
        return False
    return after(document, start, RESERVED[0]) != end and after(document, start, RESERVED[1]) != end


@kernel
def _is_bound_here(document, flat, count):
    """Whether a binding has the prefix of an earlier one of the same element."""
    new = flat.bindings[count]
    for i in range(count - 1, -1, -1):
        old = flat.bindings[i]
        if old.element != new.element:
            return False
        if same_bytes(document, old.prefix_start, old.prefix_end, document, new.prefix_start, new.prefix_end):
            return True
    return False


@kernel
def _end_of_uri(document, place, quote):
    """Where the URI ends, at its quote; NONE unless it is empty, scheme://host/path#fragment or scheme:path."""
    if document[place] == quote:
        return place
    start = place
    while KINDS[document[place]] & IN_HOST:
        place += 1
    if not KINDS[document[start]] & NAME_START or document[place] != COLON:
        return NONE
    place += 1
    if document[place] == SLASH and document[place + 1] == SLASH:
        host = place = place + 2
        while KINDS[document[place]] & IN_HOST:
            place += 1
        if place == host or (KINDS[document[place]] & IN_URI and document[place] != SLASH):
            return NONE
    elif not KINDS[document[place]] & IN_HOST:
        return NONE
    while KINDS[document[place]] & IN_URI:
        place += 1
    if document[place] == NUMBER_SIGN:
        place += 1
        while KINDS[document[place]] & IN_URI:
            place += 1
    return place if document[place] == quote else NONE


@kernel
def drop_bindings(flat, element):
    """Forget what an element has declared, which is closed."""
    while flat.counts[N_BINDINGS] and flat.bindings[flat.counts[N_BINDINGS] - 1].element == element:
        flat.counts[N_BINDINGS] -= 1


@kernel
def read_name(document, place, flat, is_element):
    """OK, the number of the name at `place`, a new one when it is first met, and the place behind it.

    The table is that of `flatten`, keyed by a hash of the name instead of its address.
    """
    local, uri_start, uri_end = place, 0, 0
    end, key = _read_part(document, place)
    if document[end] == COLON:
        local = end + 1
        end, key = _read_part(document, local)
        if not KINDS[document[local]] & NAME_START or document[end] == COLON:
            return NOT_PLAIN, NONE, end
    if not KINDS[document[place]] & NAME_START or end - place > PLAIN_NAME:
        return NOT_PLAIN, NONE, end
    if local != place or (is_element and flat.counts[N_BINDINGS]):
        bound = _find_binding(document, place, max(place, local - 1), flat)
        if bound == NONE and local != place:
            return UNBOUND, NONE, end
        if bound != NONE and flat.bindings[bound].uri_start != flat.bindings[bound].uri_end:
            binding = flat.bindings[bound]
            key, uri_start, uri_end = key ^ binding.key, binding.uri_start, binding.uri_end
    mask = np.uint64(flat.name_slots.size - 1)
    slot = (key ^ (key >> np.uint64(32))) & mask
    while True:
        number = np.int64(flat.name_slots[slot])
        if number >= flat.counts[N_NAMES] or flat.name_keys[number].slot != slot:
            code, number = _new_name(document, local, end, uri_start, uri_end, key, slot, flat)
            return code, number, end
        name, known = flat.names[number], flat.name_keys[number]
        if (
            known.local == key
            and same_bytes(flat.name_text, name.local_start, name.local_end, document, local, end)
            and (
                known.uri == np.uint64(uri_start)
                or same_bytes(flat.name_text, name.uri_start, name.uri_end, document, uri_start, uri_end)
            )
        ):
            return OK, number, end
        slot = (slot + np.uint64(1)) & mask


@kernel
def _read_part(document, place):
    """Where a prefix or a local name ends, and a hash of it."""
    key = SEED
    while KINDS[document[place]] & IN_NAME:
        key = (key ^ np.uint64(document[place])) * BYTE_FACTOR
        place += 1
    return place, key


@kernel
def _hash(document, start, end):
    key = SEED
    for i in range(start, end):
        key = (key ^ np.uint64(document[i])) * BYTE_FACTOR
    return key


@kernel
def _find_binding(document, prefix, prefix_end, flat):
    """The innermost binding of a prefix, or NONE."""
    for i in range(flat.counts[N_BINDINGS] - 1, -1, -1):
        binding = flat.bindings[i]
        if same_bytes(document, binding.prefix_start, binding.prefix_end, document, prefix, prefix_end):
            return i
    return NONE


@kernel
def _new_name(document, local, end, uri_start, uri_end, key, slot, flat):
    counts, number = flat.counts, flat.counts[N_NAMES]
    if number == PLAIN_NAMES:
        return NOT_PLAIN, NONE
    if number == flat.name_keys.size:
        return N_NAMES, NONE
    if counts[NAME_BYTES] + uri_end - uri_start + end - local > flat.name_text.size:
        return NAME_BYTES, NONE
    known, name = flat.name_keys[number], flat.names[number]
    known.local, known.uri, known.slot = key, np.uint64(uri_start), slot
    flat.name_slots[slot] = number
    name.uri_start = counts[NAME_BYTES]
    name.uri_end = name.local_start = _append(document, uri_start, uri_end, flat)
    name.local_end = _append(document, local, end, flat)
    counts[N_NAMES] += 1
    return OK, number


@kernel
def _append(document, start, end, flat):
    place = flat.counts[NAME_BYTES]
    for i in range(start, end):
        flat.name_text[place] = document[i]
        place += 1
    flat.counts[NAME_BYTES] = place
    return place
