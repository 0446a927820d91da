"""Cells of arrays that several threads change at once: compare-and-swap and its relatives.

    thread 1   compare_and_swap(states, 3, AVAILABLE, PARSING)  ──▶ True    the event is mine
    thread 2   compare_and_swap(states, 3, AVAILABLE, PARSING)  ──▶ False   somebody was quicker

For use inside kernels only: each call becomes an instruction or two of the processor, never a lock. Cells
are those of one-dimensional, writable arrays of 32- or 64-bit integers. All operations are sequentially
consistent, so what a thread wrote before its `atomic_store` or successful `compare_and_swap` is seen by
every thread that has seen the new value. As everywhere in kernels, indexes are not checked unless
`NUMBA_BOUNDSCHECK=1`, and a negative one does not count from the end.
"""

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.errors import TypingError
from numba.core.typing import Signature
from numba.extending import intrinsic

__all__ = ["atomic_load", "atomic_or", "atomic_store", "compare_and_swap", "fetch_add"]

Typed = tuple[Signature, Callable[..., Any]]

CELL_TYPES = (types.int32, types.int64, types.uint32, types.uint64)
ORDERING = "seq_cst"


@intrinsic
def compare_and_swap(typing_context: Any, array: Any, i: Any, expected: Any, new: Any) -> Typed:
    """Write `new` to array[i] if it holds `expected`; return whether it did."""
    cell = _cell_type(array)

    def generate(context: Any, builder: ir.IRBuilder, signature: Signature, arguments: Any) -> Any:
        _, _, expected, new = arguments
        pointer = _cell_pointer(context, builder, signature, arguments)
        outcome = builder.cmpxchg(pointer, expected, new, ordering=ORDERING, failordering=ORDERING)
        return builder.extract_value(outcome, 1)

    return types.boolean(array, types.intp, cell, cell), generate


@intrinsic
def fetch_add(typing_context: Any, array: Any, i: Any, delta: Any) -> Typed:
    """Add `delta` to array[i]; return what it held before."""
    return _read_modify_write("add", array)


@intrinsic
def atomic_or(typing_context: Any, array: Any, i: Any, bits: Any) -> Typed:
    """Set `bits` in array[i]; return what it held before."""
    return _read_modify_write("or", array)


@intrinsic
def atomic_load(typing_context: Any, array: Any, i: Any) -> Typed:
    """Return array[i] as some thread has written it, never remembered from an earlier look."""
    cell = _cell_type(array)

    def generate(context: Any, builder: ir.IRBuilder, signature: Signature, arguments: Any) -> Any:
        pointer = _cell_pointer(context, builder, signature, arguments)
        return builder.load_atomic(pointer, ORDERING, align=cell.bitwidth // 8)

    return cell(array, types.intp), generate


@intrinsic
def atomic_store(typing_context: Any, array: Any, i: Any, value: Any) -> Typed:
    """Write `value` to array[i], and before it everything this thread wrote earlier."""
    cell = _cell_type(array)

    def generate(context: Any, builder: ir.IRBuilder, signature: Signature, arguments: Any) -> Any:
        pointer = _cell_pointer(context, builder, signature, arguments)
        builder.store_atomic(arguments[2], pointer, ORDERING, align=cell.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(array, types.intp, cell), generate


def _read_modify_write(operation: str, array: Any) -> Typed:
    cell = _cell_type(array)

    def generate(context: Any, builder: ir.IRBuilder, signature: Signature, arguments: Any) -> Any:
        pointer = _cell_pointer(context, builder, signature, arguments)
        return builder.atomic_rmw(operation, pointer, arguments[2], ordering=ORDERING)

    return cell(array, types.intp, cell), generate


def _cell_type(array: Any) -> Any:
    suitable = isinstance(array, types.Array) and array.ndim == 1 and array.mutable and array.aligned
    if suitable and array.dtype in CELL_TYPES:
        return array.dtype
    raise TypingError(f"atomics need a writable one-dimensional array of 32- or 64-bit integers, not {array}")


def _cell_pointer(context: Any, builder: ir.IRBuilder, signature: Signature, arguments: Any) -> Any:
    array_type = signature.args[0]
    array = context.make_array(array_type)(context, builder, arguments[0])
    checked = context.enable_boundscheck
    return cgutils.get_item_pointer(context, builder, array_type, array, [arguments[1]], boundscheck=checked)
