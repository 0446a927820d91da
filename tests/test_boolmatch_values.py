"""Intervals and points hold what can be compared, and refuse what cannot."""

from typing import Any

import numpy as np
import pytest

from boolmatch.errors import EventError
from boolmatch.values import Interval, Point, to_double

INFINITE, NAN = float("inf"), float("nan")

NUMBERS: dict[str, tuple[Any, float]] = {
    "an_integer": (7, 7.0),
    "a_double": (0.1, 0.1),
    "minus_zero": (-0.0, 0.0),
    "infinity": (-INFINITE, -INFINITE),
    "the_last_exact_integer": (2**53, 2.0**53),
    "an_exact_one_behind_it": (2**53 + 2, 2.0**53 + 2),
    "numpy_integers": (np.int32(7), 7.0),
    "numpy_doubles": (np.float32(0.5), 0.5),
}

BAD: dict[str, tuple[Any, str]] = {
    "nan": (NAN, "NaN is no number to compare with; leave the attribute out"),
    "no_double_holds_it": (2**53 + 1, "no double holds 9007199254740993; send it as text"),
    "nor_of_numpy": (np.int64(-(2**53) - 1), "no double holds -9007199254740993; send it as text"),
    "far_too_large": (10**1000, "no double holds an integer of 3322 bits; send it as text"),
    "a_truth": (True, "expected a number, found bool"),
    "text": ("7", "expected a number, found str"),
    "nothing": (None, "expected a number, found NoneType"),
}


@pytest.mark.parametrize("number, double", NUMBERS.values(), ids=NUMBERS)
def test_a_number_is_a_double(number: Any, double: float) -> None:
    found = to_double(number)
    assert type(found) is float
    assert str(found) == str(double)


@pytest.mark.parametrize("number, message", BAD.values(), ids=BAD)
def test_no_number_is(number: Any, message: str) -> None:
    for make in (to_double, lambda bad: Interval(bad, 1), lambda bad: Interval(1, bad), lambda bad: Point(0, bad)):
        with pytest.raises(EventError) as caught:
            make(number)
        assert str(caught.value) == message


def test_the_attribute_is_named() -> None:
    with pytest.raises(EventError, match=r"^attribute 'price': NaN"):
        to_double(NAN, "price")


def test_an_interval_holds_doubles_and_may_be_endless() -> None:
    assert repr(Interval(1, np.int8(2))) == "Interval(low=1.0, high=2.0)"
    assert Interval(-INFINITE, INFINITE).low == -INFINITE
    assert Interval(2, 2) == Interval(2.0, 2.0)
    assert len({Interval(1, 2), Interval(1, 2), Interval(1, 3)}) == 2


def test_an_interval_goes_from_low_to_high() -> None:
    with pytest.raises(EventError, match=r"^expected an interval from low to high, found 2\.0 to 1\.0$"):
        Interval(2, 1)


def test_a_point_is_finite() -> None:
    assert repr(Point(1, 2.5)) == "Point(x=1.0, y=2.5)"
    with pytest.raises(EventError, match=r"^expected a point with finite coordinates, found inf 0\.0$"):
        Point(INFINITE, 0)


@pytest.mark.parametrize("value, field", [(Interval(1, 2), "low"), (Point(1, 2), "x")])
def test_values_are_frozen(value: Any, field: str) -> None:
    with pytest.raises(AttributeError):
        setattr(value, field, 5.0)
