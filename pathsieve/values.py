"""Values of attributes, as Python has them and as they travel.

    "IBM"  7  99.5  True            text, numbers, truth values
    Point(13.4, 52.5)               what WITHIN looks at
    Interval(95, 105)               any number from 95 to 105, both ends included
    ["new", 7]                      several values: a condition holds when it holds for one of them

`boolmatch` has the same two classes. They are written again here because importing an engine takes a second, and a
program that only talks to a server needs none.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from google.protobuf.internal.containers import MessageMap

from pathsieve.v1 import document_pb2

__all__ = ["AttributeValue", "Interval", "Point", "SingleValue", "from_value", "to_value", "write_attributes"]


@dataclass(frozen=True, slots=True)
class Point:
    """A place in the plane, in the coordinates of the polygons it is compared with."""

    x: float
    y: float


@dataclass(frozen=True, slots=True)
class Interval:
    """All numbers from `low` to `high`, both included."""

    low: float
    high: float


SingleValue = str | int | float | bool | Point | Interval
AttributeValue = SingleValue | list["SingleValue"] | tuple["SingleValue", ...] | set["SingleValue"]

N_BITS = 63


def to_value(value: object) -> document_pb2.Value:
    """A value as it travels.

    >>> to_value(["new", 7]).list_value.values[1].integer_value
    7
    """
    match value:
        case str():
            return document_pb2.Value(string_value=value)
        case bool():
            return document_pb2.Value(bool_value=value)
        case int():
            return document_pb2.Value(integer_value=_checked(value))
        case float():
            return document_pb2.Value(double_value=value)
        case Point(x, y):
            return document_pb2.Value(point_value=document_pb2.Point(x=x, y=y))
        case Interval(low, high):
            return document_pb2.Value(interval_value=document_pb2.Interval(low=low, high=high))
        case list() | tuple() | set() | frozenset():
            return document_pb2.Value(list_value=document_pb2.ValueList(values=[_single(one) for one in value]))
    raise TypeError(
        f"expected text, a number, a truth value, Point, Interval or several of them, found {type(value).__name__}"
    )


def _checked(number: int) -> int:
    if number.bit_length() > N_BITS:
        raise ValueError(f"an integer has at most {N_BITS} bits, found {number.bit_length()}; send it as text")
    return number


def _single(value: object) -> document_pb2.Value:
    if isinstance(value, list | tuple | set | frozenset):
        raise TypeError("several values in one of several values; write them in one list")
    return to_value(value)


def from_value(value: document_pb2.Value) -> AttributeValue:
    """The value that was sent; several of them as a list."""
    if value.WhichOneof("kind") == "list_value":
        return [_from_single(one) for one in value.list_value.values]
    return _from_single(value)


def _from_single(value: document_pb2.Value) -> SingleValue:
    kind = value.WhichOneof("kind")
    if kind == "point_value":
        return Point(value.point_value.x, value.point_value.y)
    if kind == "interval_value":
        return Interval(value.interval_value.low, value.interval_value.high)
    found: SingleValue = getattr(value, kind) if kind else ""
    return found


def write_attributes(attributes: Mapping[str, object], into: MessageMap[str, document_pb2.Value]) -> None:
    """Put attributes into a message; an error says which one it is about."""
    for name, value in attributes.items():
        try:
            into[name].CopyFrom(to_value(value))
        except (TypeError, ValueError) as error:
            raise type(error)(f"attribute {name!r}: {error}") from None
