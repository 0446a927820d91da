"""Columns are made of arrays and lists, and what cannot be one is refused by row and column."""

from typing import Any

import numpy as np
import pytest
from test_boolmatch_bulk import expressions_of

from boolmatch.columns import Operator, predicate_columns
from boolmatch.parser import parse

GOOD: dict[str, tuple[tuple[Any, ...], list[str]]] = {
    "lists": (([1, 2], ["a", "b", "a"], ["=", "<>", ">="], [1, "x", 2.5]), ["a = 1", "b <> 'x' AND a >= 2.5"]),
    "arrays": (
        (np.array([2]), np.array(["a", "b"]), np.array(["<", "!="]), np.array([1.5, -0.0])),
        ["a < 1.5 AND b <> 0"],
    ),
    "codes": (
        (np.array([1, 1], np.int8), (np.array([1, 0]), ["a", "b"]), np.array([0, 4]), np.array([7, 8])),
        ["b = 7", "a > 8"],
    ),
    "operators_by_name": (([1], ["a"], [Operator.LESS_EQUAL], [3]), ["a <= 3"]),
    "between": (
        ([1, 1, 1], ["a", "b", "c"], ["between", "BETWEEN", "="], [1, "x", 3], [2, "y", None]),
        ["a BETWEEN 1 AND 2", "b BETWEEN 'x' AND 'y'", "c = 3"],
    ),
    "between_arrays": (
        ([2], ["a", "b"], ["BETWEEN", "="], np.array([1.0, 2.0]), np.array([3.0, np.nan])),
        ["a BETWEEN 1 AND 3 AND b = 2"],
    ),
    "arrays_of_strings": (([1, 1], ["a", "b"], ["=", "="], np.array(["x", "y"])), ["a = 'x'", "b = 'y'"]),
    "large_integers_that_fit": (([1], ["a"], ["="], np.array([2**60])), ["a = 1152921504606846976"]),
    "nothing": (([], [], [], []), []),
    "no_arrays": ((np.empty(0, int), (np.empty(0, int), []), np.empty(0, int), np.empty(0)), []),
}


@pytest.mark.parametrize("given, texts", GOOD.values(), ids=GOOD)
def test_columns_say(given: tuple[Any, ...], texts: list[str]) -> None:
    columns = predicate_columns(*given)
    assert list(expressions_of(columns)) == [parse(text) for text in texts]
    found = [column.dtype.name for column in columns[:7]]
    assert found == ["int32", "int32", "int8", "float64", "float64", "int32", "int32"]


NAN, INFINITE = float("nan"), float("inf")
TWO = ([2], ["a", "b"], ["=", "="])
BAD: dict[str, tuple[tuple[Any, ...], str]] = {
    "a_count_of_none": (([0, 2], ["a", "b"], ["=", "="], [1, 2]), "counts, row 0: expected at least 1, found 0"),
    "counts_that_do_not_add_up": (([1], ["a", "b"], ["=", "="], [1, 2]), "counts: expected 2 rows in all, found 1"),
    "counts_that_are_no_integers": (([1.0, 1.0], *TWO[1:], [1, 2]), "counts: expected integers, found float64"),
    "a_missing_operator": (([2], ["a", "b"], ["="], [1, 2]), "operators: expected 2 rows like attributes, found 1"),
    "a_missing_value": ((*TWO, [1]), "values: expected 2 rows like attributes, found 1"),
    "an_unknown_operator": (
        ([2], ["a", "b"], ["=", "~"], [1, 2]),
        "operators, row 1: expected one of = <> != < <= > >= BETWEEN, found '~'",
    ),
    "an_unknown_code": (([1], ["a"], np.array([7]), [1]), "operators, row 0: expected an Operator, found 7"),
    "a_name_that_is_none": (([2], ["a", 7], ["=", "="], [1, 2]), "attributes, row 1: expected a name, found 7"),
    "an_empty_name": (([1], [""], ["="], [1]), "attributes, row 0: expected a name, found ''"),
    "a_code_without_a_name": (([1], ([1], ["a"]), ["="], [1]), "attributes, row 0: expected a code below 1, found 1"),
    "a_negative_code": (([1], ([-1], ["a"]), ["="], [1]), "attributes, row 0: expected a code below 1, found -1"),
    "codes_that_are_no_integers": (
        ([1], ([0.5], ["a"]), ["="], [1]),
        "attributes: expected integer codes, found float64",
    ),
    "a_name_twice": (([1], ([0], ["a", "a"]), ["="], [1]), "attributes: expected distinct names"),
    "nan": ((*TWO, [1, NAN]), "values, row 1: expected a finite number, found nan"),
    "nan_in_an_array": ((*TWO, np.array([1, NAN])), "values, row 1: expected a finite number, found nan"),
    "infinity": ((*TWO, np.array([-INFINITE, 1])), "values, row 0: expected a finite number, found -inf"),
    "a_truth": ((*TWO, [1, True]), "values, row 1: expected a number or a string, found True"),
    "an_array_of_truths": ((*TWO, np.array([True, False])), "values, row 0: expected a number or a string, found True"),
    "no_value": ((*TWO, [1, None]), "values, row 1: expected a number or a string, found None"),
    "half_a_character": ((*TWO, ["x", "\ud800"]), r"values, row 1: expected a number or a string, found '\ud800'"),
    "an_integer_that_no_double_holds": (
        (*TWO, [1, 2**53 + 1]),
        "values, row 1: expected an integer that a double holds, or a string, found 9007199254740993",
    ),
    "such_a_one_in_an_array": (
        (*TWO, np.array([1, -(2**53) - 1])),
        "values, row 1: expected an integer that a double holds, or a string, found -9007199254740993",
    ),
    "between_without_uppers": (
        ([2], ["a", "b"], ["=", "BETWEEN"], [1, 2]),
        "uppers, row 1: expected the upper end of BETWEEN, found none at all",
    ),
    "between_without_an_upper": (
        ([2], ["a", "b"], ["=", "BETWEEN"], [1, 2], [None, None]),
        "uppers, row 1: expected a number or a string, found None",
    ),
    "between_and_nan": (
        ([2], ["a", "b"], ["=", "BETWEEN"], [1, 2], np.array([NAN, NAN])),
        "uppers, row 1: expected a finite number, found nan",
    ),
    "uppers_that_are_too_few": (
        ([2], ["a", "b"], ["=", "BETWEEN"], [1, 2], [3]),
        "uppers: expected 2 rows like attributes, found 1",
    ),
    "between_a_number_and_a_string": (
        ([2], ["a", "b"], ["=", "BETWEEN"], [1, 2], [1, "x"]),
        "uppers, row 1: expected a number, like the lower end",
    ),
    "between_a_string_and_a_number": (
        ([1], ["b"], ["BETWEEN"], ["x"], [1]),
        "uppers, row 0: expected a string, like the lower end",
    ),
}


@pytest.mark.parametrize("given, message", BAD.values(), ids=BAD)
def test_columns_are_refused_for(given: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ValueError, match=r"^\w+[,:]") as caught:
        predicate_columns(*given)
    assert str(caught.value) == message
