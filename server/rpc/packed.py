"""Arrays of numbers into repeated fields of a message, without a Python object for each.

    [1, 300]  ──▶  01 ac 02  ──▶  field tag, 3 bytes, 01 ac 02  ──▶  parsed by protobuf, in C
    values         varints        as they would come over the wire

A repeated field takes a list in 30 to 50 ns a number; this way it is 5 to 10, which counts where one document is wanted
by thousands of subscriptions (1,000 slots and sequences: 95 µs by lists, 10 µs this way). Few numbers go by lists.
"""

from typing import Any

import numpy as np
from google.protobuf.message import Message

from sievecore.jit import brief_kernel

__all__ = ["extend", "warm_up"]

FEW = 32
LONGEST_VARINT = 10
LENGTH_DELIMITED = 2
BITS, MORE = np.uint64(7), np.uint64(128)
LOW = np.uint64(127)


def extend(message: Message, field: str, values: np.ndarray) -> None:
    """Append `values`, none of them negative, to a repeated field of integers."""
    if len(values) < FEW:
        repeated: Any = getattr(message, field)
        repeated.extend(values.tolist())
        return
    packed = np.empty(len(values) * LONGEST_VARINT, np.uint8)
    content = packed[: pack(values, packed)].tobytes()
    tag = message.DESCRIPTOR.fields_by_name[field].number << 3 | LENGTH_DELIMITED
    message.MergeFromString(varint(tag) + varint(len(content)) + content)


def varint(number: int) -> bytes:
    """One number as protobuf writes it.

    >>> varint(300).hex()
    'ac02'
    """
    written = bytearray()
    while number > 127:
        written.append(number & 127 | 128)
        number >>= 7
    written.append(number)
    return bytes(written)


@brief_kernel
def pack(values, packed):
    """Write `values` as varints, one after the other; return how many bytes that took."""
    n_bytes = 0
    for value in values:
        rest = np.uint64(value)
        while rest >= MORE:
            packed[n_bytes] = np.uint8((rest & LOW) | MORE)
            n_bytes += 1
            rest = rest >> BITS
        packed[n_bytes] = np.uint8(rest)
        n_bytes += 1
    return n_bytes


def warm_up() -> None:
    """Compile the kernel for the two kinds of arrays that there are."""
    packed = np.empty(LONGEST_VARINT, np.uint8)
    pack(np.zeros(1, np.uint32), packed)
    pack(np.zeros(1, np.int64), packed)
