"""Single machine instructions that numba has no name for: lowest set bit, population count, prefetch.

lowest_bit(0b10100) = 2        count_bits(0b10100) = 2
prefetch(array, i)             asks the cache for array[i] now; the value is read some loops later
"""

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.typing.templates import Signature
from numba.extending import intrinsic
from numba.np import arrayobj

__all__ = ["count_bits", "lowest_bit", "prefetch"]


@intrinsic
def lowest_bit(typing_context: Any, word: types.Type) -> tuple[Signature, Any]:
    """The number of the lowest set bit of a non-zero uint64."""

    def generate(context: Any, builder: Any, signature: Signature, arguments: Any) -> Any:
        return builder.cttz(arguments[0], cgutils.true_bit)

    return types.uint64(types.uint64), generate


@intrinsic
def count_bits(typing_context: Any, word: types.Type) -> tuple[Signature, Any]:
    """How many bits of a uint64 are set."""

    def generate(context: Any, builder: Any, signature: Signature, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), generate


@intrinsic
def prefetch(typing_context: Any, array: types.Array, index: types.Type) -> tuple[Signature, Any]:
    """Start bringing `array[index]` into the cache; never faults, whatever the index."""

    def generate(context: Any, builder: Any, signature: Signature, arguments: Any) -> Any:
        data = arrayobj.make_array(signature.args[0])(context, builder, arguments[0]).data
        address = builder.bitcast(builder.gep(data, [arguments[1]]), cgutils.voidptr_t)
        int32 = ir.IntType(32)
        function_type = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, int32, int32, int32])
        function = builder.module.declare_intrinsic("llvm.prefetch", [cgutils.voidptr_t], function_type)
        builder.call(function, [address, int32(0), int32(3), int32(1)])
        return context.get_dummy_value()

    return types.void(array, types.int64), generate
