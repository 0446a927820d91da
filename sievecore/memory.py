"""Reading memory that belongs to somebody else: loads at a bare address, for kernels.

    address ──▶ [ 8 bytes ][ 4 ][ 4 ][ 8 bytes ] …     load_u64(address + 16)
                  some C library's struct

A C library hands out a pointer to a struct whose layout is known; these few intrinsics let a
kernel follow it without Python in between. Nothing is checked: whoever calls must have
proved the layout, and must keep the owner of the memory alive during the call.
Addresses are `uint64` or `int64`; all loads are of the machine's own byte order.
"""

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

_BYTE_POINTER = ir.IntType(8).as_pointer()


def _is_address(type_: Any) -> bool:
    return isinstance(type_, types.Integer) and type_.bitwidth == 64


def _load(name: str, result: Any) -> Any:
    """Make the intrinsic that loads one value of numba type `result`."""

    def typing(typing_context: Any, address: Any) -> tuple[Any, Callable[..., Any]] | None:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            pointer = builder.inttoptr(arguments[0], context.get_value_type(result).as_pointer())
            return builder.load(pointer)

        return (result(address), generate) if _is_address(address) else None

    typing.__name__ = name
    typing.__doc__ = f"Return the {result} stored at `address`."
    return intrinsic(typing)


load_u8 = _load("load_u8", types.uint8)
load_u16 = _load("load_u16", types.uint16)
load_i32 = _load("load_i32", types.int32)
load_u64 = _load("load_u64", types.uint64)


@intrinsic
def string_length(typing_context: Any, address: Any) -> tuple[Any, Callable[..., Any]] | None:
    """Return the number of bytes before the NUL that ends the C string at `address`."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        function_type = ir.FunctionType(ir.IntType(64), [_BYTE_POINTER])
        strlen = cgutils.get_or_insert_function(builder.module, function_type, "strlen")
        return builder.call(strlen, [builder.inttoptr(arguments[0], _BYTE_POINTER)])

    return (types.int64(address), generate) if _is_address(address) else None


@intrinsic
def copy_bytes(
    typing_context: Any, address: Any, target: Any, start: Any, n_bytes: Any
) -> tuple[Any, Callable[..., Any]] | None:
    """Copy `n_bytes` from `address` to `target[start:]`, a contiguous uint8 array with room for them."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[1])(context, builder, arguments[1])
        source = builder.inttoptr(arguments[0], _BYTE_POINTER)
        cgutils.raw_memcpy(builder, builder.gep(array.data, [arguments[2]]), source, arguments[3], 1)
        return context.get_dummy_value()

    is_bytes = isinstance(target, types.Array) and target.dtype == types.uint8 and target.layout == "C"
    if not (_is_address(address) and is_bytes):
        return None
    return types.none(address, target, types.int64, types.int64), generate
