"""What an attribute of an event may hold, beyond plain text, numbers and truth values.

    {"symbol": "IBM",              text
     "price": Interval(95, 105),   any number from 95 to 105, both ends included
     "place": Point(13.4, 52.5),   what WITHIN looks at
     "tags": {"new", 7}}           several values: a condition holds when it holds for one of them

Numbers are compared as doubles. An integer that no double holds would be compared as another one, so it is
refused, like NaN, which has no place in any order.
"""

import math
from dataclasses import dataclass
from numbers import Integral

import numpy as np

from boolmatch.errors import EventError

__all__ = ["EXACT_INTEGERS", "Interval", "Point", "to_double", "to_utf8"]

EXACT_INTEGERS = 2**53
"""Up to here a double holds every integer."""


def to_double(number: float, attribute: str = "") -> float:
    """Return `number` as the double that is equal to it; the sign of zero is dropped.

    >>> to_double(7)
    7.0
    """
    if isinstance(number, bool | np.bool_) or not isinstance(number, int | float | np.integer | np.floating):
        raise EventError(attribute, f"expected a number, found {type(number).__name__}")
    double = _nearest(number)
    if math.isnan(double):
        raise EventError(attribute, "NaN is no number to compare with", "leave the attribute out")
    if isinstance(number, Integral) and int(number) != double:
        raise EventError(attribute, f"no double holds {_shown(int(number))}", "send it as text")
    return double + 0.0


def to_utf8(text: str, attribute: str = "") -> bytes:
    """Return `text` as bytes; they compare like its code points."""
    try:
        return text.encode()
    except UnicodeEncodeError as problem:
        raise EventError(attribute, f"half a character, a lone surrogate, at position {problem.start}") from None


def _nearest(number: float) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf


def _shown(number: int) -> str:
    return str(number) if number.bit_length() <= 128 else f"an integer of {number.bit_length()} bits"


@dataclass(frozen=True, slots=True)
class Interval:
    """All numbers from `low` to `high`, both included. Ends may be infinite.

    >>> Interval(1, 2.5)
    Interval(low=1.0, high=2.5)
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "low", to_double(self.low))
        object.__setattr__(self, "high", to_double(self.high))
        if self.low > self.high:
            raise EventError("", f"expected an interval from low to high, found {self.low!r} to {self.high!r}")


@dataclass(frozen=True, slots=True)
class Point:
    """A place in the plane, in the coordinates of the polygons it is compared with.

    >>> Point(13, 52.5)
    Point(x=13.0, y=52.5)
    """

    x: float
    y: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "x", to_double(self.x))
        object.__setattr__(self, "y", to_double(self.y))
        if not (math.isfinite(self.x) and math.isfinite(self.y)):
            raise EventError("", f"expected a point with finite coordinates, found {self.x!r} {self.y!r}")
