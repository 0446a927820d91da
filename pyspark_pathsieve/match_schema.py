"""Which columns and parameters matching takes: checked in the driver, in words, before any task runs.

body            string, binary                                       null: no XML, and every XPath is false
attributes      a struct, or a map from string, of                   null: no such attribute
                string, boolean, numbers; {x, y} a point; {low, high} an interval; arrays of those
what comes out  the columns that are kept, and  subscription, error  or  matches, error
"""

from collections.abc import Sequence
from typing import Any

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    CharType,
    DataType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    VarcharType,
)

from pyspark_pathsieve.errors import ColumnError
from pyspark_pathsieve.match_errors import MatchSetupError

__all__ = ["OUTPUTS", "body_column", "check_attributes", "check_subscription_frame", "result_schema"]

OUTPUTS = {"rows": "subscription", "arrays": "matches"}
"""What may come out, and the column that has the answers then."""

TEXTS = (StringType, VarcharType, CharType)
NUMBERS = (ByteType, ShortType, IntegerType, LongType, FloatType, DoubleType)
VALUES = "string, boolean, a number (cast decimals to double), struct<x,y>, struct<low,high>, or an array of those"


def body_column(frame: Any, body: str) -> None:
    """`ColumnError` unless the column is there and holds documents."""
    found = _column(frame, "body", body)
    if not isinstance(found, (*TEXTS, BinaryType)):
        raise _wrong("body", body, found, "documents as string or binary")


def check_attributes(frame: Any, attributes: str) -> None:
    """`ColumnError` unless the column is there and holds what can be matched."""
    found = _column(frame, "attributes", attributes)
    if isinstance(found, StructType):
        bad = [field for field in found if not _is_value(field.dataType)]
        if bad:
            raise _wrong("attributes", f"{attributes}.{bad[0].name}", bad[0].dataType, VALUES)
    elif not isinstance(found, MapType) or not isinstance(found.keyType, TEXTS):
        raise _wrong("attributes", attributes, found, "a struct, or a map from string")
    elif not _is_value(found.valueType):
        raise _wrong("attributes", attributes, found, f"a map from string to {VALUES}")


def _is_value(kind: DataType) -> bool:
    if isinstance(kind, ArrayType):
        return _is_single(kind.elementType)
    return _is_single(kind)


def _is_single(kind: DataType) -> bool:
    if isinstance(kind, StructType):
        are_numbers = all(isinstance(field.dataType, NUMBERS) for field in kind)
        return are_numbers and set(kind.names) in ({"x", "y"}, {"low", "high"})
    return isinstance(kind, (*TEXTS, *NUMBERS, BooleanType))


def result_schema(frame: Any, keep: Sequence[str], output: str, id_type: str, error: str) -> StructType:
    """The columns that are kept, the answers, and the column of errors."""
    if output not in OUTPUTS:
        raise MatchSetupError(f"output: expected 'rows' or 'arrays', found {output!r}")
    names = [field.name for field in frame.schema]
    for name in keep:
        _column(frame, "keep", name)
    answers = OUTPUTS[output]
    taken = [name for name in keep if name.lower() in (answers.lower(), error.lower())]
    if taken or len({name.lower() for name in keep}) < len(keep):
        problem = f"{taken[0]!r} is the name of a column of the result" if taken else f"a name is there twice: {names}"
        raise MatchSetupError(f"columns: {problem}; rename it, or leave it out of keep=")
    kept = [StructField(name, frame.schema[name].dataType, True) for name in keep]
    kind = id_type if output == "rows" else f"array<{id_type}>"
    return StructType([*kept, StructField(answers, _type(kind)), StructField(error, StringType())])


def _type(written: str) -> DataType:
    simple: dict[str, DataType] = {"string": StringType(), "bigint": LongType()}
    if written in simple:
        return simple[written]
    return ArrayType(simple[written.removeprefix("array<").removesuffix(">")], containsNull=False)


def check_subscription_frame(frame: Any) -> list[str]:
    """The columns of a DataFrame of subscriptions."""
    if frame.isStreaming:
        raise MatchSetupError("subscriptions: expected a DataFrame that ends, found a streaming one")
    for name in ("id", "expression"):
        found = _column(frame, "subscriptions", name)
        allowed = (*TEXTS, *NUMBERS[:4]) if name == "id" else TEXTS
        if not isinstance(found, allowed):
            raise _wrong("subscriptions", name, found, "text or whole numbers" if name == "id" else "text")
    names = set(frame.columns)
    if "kind" in names and not isinstance(frame.schema["kind"].dataType, TEXTS):
        raise _wrong("subscriptions", "kind", frame.schema["kind"].dataType, "text: xpath or boolean")
    if "namespaces" in names:
        found = frame.schema["namespaces"].dataType
        if not isinstance(found, MapType) or not isinstance(found.valueType, TEXTS):
            raise _wrong("subscriptions", "namespaces", found, "a map from prefix to URI")
    return ["id", "expression", *sorted(names & {"kind", "namespaces"})]


def _column(frame: Any, option: str, name: str) -> DataType:
    if not isinstance(name, str) or name not in frame.columns:
        there = ", ".join(frame.columns)
        raise ColumnError(
            f"{option}: there is no column {name!r}; there are {there}", {"option": option, "column": name}
        )
    found: DataType = frame.schema[name].dataType
    return found


def _wrong(option: str, name: str, found: DataType, expected: str) -> ColumnError:
    written = found.simpleString()
    facts = {"option": option, "column": name, "found": written}
    return ColumnError(f"{option}: the column {name!r} is {written}, expected {expected}", facts)
