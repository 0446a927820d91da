"""Which columns of a data frame make a document, and whether they can.

    bodyColumn         string, binary                                the document
    idColumn           string, or an integer                         its id
    sourceColumn       string                                        who publishes it
    headersColumn      map<string, string>                           headers
    attributesColumn   struct<name: value, …>, map<string, value>    attributes

A value is a string, a boolean, a number (no decimal), a struct<x, y> of numbers (a point), a struct<low, high> of
numbers (an interval), or an array of these. All this is known in the driver, before there is any data.
"""

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructType,
)

from pyspark_pathsieve.errors import ColumnError
from pyspark_pathsieve.options import Options

__all__ = ["Columns"]

INTEGERS = (ByteType, ShortType, IntegerType, LongType)
NUMBERS = (*INTEGERS, FloatType, DoubleType)
PAIRS = {("x", "y"), ("low", "high")}


@dataclass(frozen=True, slots=True)
class Columns:
    """The names of the columns; None where there is none."""

    body: str
    id: str | None = None
    source: str | None = None
    headers: str | None = None
    attributes: str | None = None

    @classmethod
    def of(cls, options: Options, schema: StructType) -> Self:
        """What the options name, found in the schema and of the right types."""
        found = {name: _column(options, f"{name}Column", schema, check) for name, check in CHECKS.items()}
        return cls(**found)  # type: ignore[arg-type]  # the body always has a name


def _column(options: Options, option: str, schema: StructType, check: Callable[[DataType], str]) -> str | None:
    """The name of the column as the schema spells it."""
    wanted: str | None = options[option]
    if wanted is None:
        return None
    spelled = {name.lower(): name for name in schema.fieldNames()}
    if wanted.lower() not in spelled:
        raise _missing(option, wanted, schema, options.is_given(option))
    name = spelled[wanted.lower()]
    if problem := check(schema[name].dataType):
        kind = schema[name].dataType.simpleString()
        facts = {"option": option, "column": name, "found": kind}
        raise ColumnError(f"column {name} ({option}): {problem}, found {kind}", facts)
    return name


def _missing(option: str, wanted: str, schema: StructType, is_given: bool) -> ColumnError:
    names = schema.fieldNames()
    close = difflib.get_close_matches(wanted, names, n=1)
    hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(names) or 'none'}"
    default = "" if is_given else f'; name another with .option("{option}", …)'
    return ColumnError(f"no column {wanted} ({option}); {hint}{default}", {"option": option, "column": wanted})


def _body(kind: DataType) -> str:
    return "" if isinstance(kind, StringType | BinaryType) else "expected string or binary"


def _id(kind: DataType) -> str:
    return "" if isinstance(kind, (StringType, *INTEGERS)) else "expected string or an integer"


def _text(kind: DataType) -> str:
    return "" if isinstance(kind, StringType) else "expected string"


def _headers(kind: DataType) -> str:
    is_map = isinstance(kind, MapType)
    is_good = is_map and not _text(kind.keyType) and not _text(kind.valueType)  # type: ignore[attr-defined]
    return "" if is_good else "expected map<string,string>"


def _attributes(kind: DataType) -> str:
    if isinstance(kind, StructType):
        problems = ((field.name, _value(field.dataType)) for field in kind.fields)
        return next((f"attribute {name}: {problem}" for name, problem in problems if problem), "")
    if isinstance(kind, MapType) and not _text(kind.keyType):
        return _value(kind.valueType)
    return "expected a struct, or a map from string"


def _value(kind: DataType) -> str:
    return _single(kind.elementType) if isinstance(kind, ArrayType) else _single(kind)


def _single(kind: DataType) -> str:
    if isinstance(kind, (StringType, BooleanType, *NUMBERS)):
        return ""
    if isinstance(kind, StructType) and tuple(kind.names) in PAIRS and _are_numbers(kind):
        return ""
    return (
        "expected a string, a boolean, a number, struct<x,y>, struct<low,high> or an array of them "
        f"(cast decimals and times to what expressions are to compare), not {kind.simpleString()}"
    )


def _are_numbers(kind: StructType) -> bool:
    return all(isinstance(field.dataType, NUMBERS) for field in kind.fields)


CHECKS = {"body": _body, "id": _id, "source": _text, "headers": _headers, "attributes": _attributes}
