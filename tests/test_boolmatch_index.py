"""The face of the Boolean index: what goes in, what comes out, and what is refused in words."""

import math
from typing import Any

import numpy as np
import pytest

from boolmatch import (
    AddManyError,
    BooleanIndex,
    BooleanSyntaxError,
    EventError,
    Interval,
    Point,
    UndecidedAtomError,
    UnknownSubscription,
)
from boolmatch.algorithms import ALGORITHMS
from boolmatch.columns import predicate_columns

pytestmark = pytest.mark.kernels

every_algorithm = pytest.mark.parametrize("algorithm", ["auto", *ALGORITHMS])

SQUARE = "POLYGON((0 0, 4 0, 4 4, 0 4, 0 0))"

CASES: dict[str, tuple[str, dict[str, Any], bool]] = {
    "a_number_is_above": ("price > 100", {"price": 100.5}, True),
    "a_number_is_equal_to_an_integer": ("price = 100.0", {"price": 100}, True),
    "numpy_numbers_are_numbers": ("price = 3", {"price": np.int32(3)}, True),
    "text_is_no_number": ("price > 100", {"price": "120"}, False),
    "nor_is_its_negation_true": ("NOT price > 100", {"price": "120"}, False),
    "an_absent_value_is_unknown": ("NOT price > 100", {}, False),
    "none_is_absent": ("price IS NULL", {"price": None}, True),
    "a_truth_value_is_no_number": ("flag = 1", {"flag": True}, False),
    "an_attribute_alone_is_a_condition": ("flag AND NOT other", {"flag": True, "other": False}, True),
    "any_of_several_values_will_do": ("tag = 'a' AND tag = 'b'", {"tag": ["a", "b"]}, True),
    "not_means_none_of_them": ("NOT tag = 'a'", {"tag": {"a", "b"}}, False),
    "unequal_means_some_other": ("tag <> 'a'", {"tag": ("a", "b")}, True),
    "an_empty_list_is_absent": ("tag IS NULL", {"tag": []}, True),
    "an_interval_meets_a_range": ("year BETWEEN 2014 AND 2016", {"year": Interval(2010, 2014)}, True),
    "or_misses_it": ("year BETWEEN 2014 AND 2016", {"year": Interval(2010, 2013.9)}, False),
    "and_only_then_is_not_true": ("NOT year > 2014", {"year": Interval(2010, 2014)}, True),
    "a_point_is_inside": (f"WITHIN(place, '{SQUARE}')", {"place": Point(1, 1)}, True),
    "a_point_is_on_the_boundary": (f"WITHIN(place, '{SQUARE}')", {"place": Point(4, 2)}, True),
    "a_point_is_outside": (f"NOT WITHIN(place, '{SQUARE}')", {"place": Point(5, 2)}, True),
    "text_is_neither": (f"NOT WITHIN(place, '{SQUARE}')", {"place": "here"}, False),
    "infinity_is_above_all": ("price > 1e308", {"price": math.inf}, True),
    "minus_zero_is_zero": ("price = 0", {"price": -0.0}, True),
    "like_sees_characters_not_bytes": ("name LIKE '_'", {"name": "é"}, True),
    "order_is_that_of_code_points": ("name > 'z'", {"name": "é"}, True),
}


@every_algorithm
@pytest.mark.parametrize("expression, event, expected", CASES.values(), ids=CASES)
def test_match(algorithm: str, expression: str, event: dict[str, Any], expected: bool) -> None:
    index = BooleanIndex(algorithm)
    index.add_many(["nothing = 'of this'"] * 3)
    subscription = index.add(expression)
    assert index.match(event).tolist() == [subscription] * expected
    assert index.explain(subscription, event).matched == expected


REFUSED_EVENTS: dict[str, tuple[Any, str, str]] = {
    "an_object": ({"price": object()}, "price", "a value of type object cannot be matched"),
    "an_object_nobody_asks_for": ({"other": {1: 2}}, "other", "a value of type dict cannot be matched"),
    "one_of_several": ({"price": [1, b"x"]}, "price", "a value of type bytes cannot be matched"),
    "nan": ({"price": math.nan}, "price", "NaN is no number to compare with"),
    "an_integer_that_no_double_holds": ({"price": 2**53 + 1}, "price", "no double holds 9007199254740993"),
    "an_enormous_integer": ({"price": 10**400}, "price", "no double holds an integer of 1329 bits"),
    "half_a_character": ({"price": "a\ud800"}, "price", "half a character, a lone surrogate, at position 1"),
    "no_mapping": (["price"], "", "expected a mapping of attributes to values, found list"),
}


@pytest.mark.parametrize("event, attribute, reason", REFUSED_EVENTS.values(), ids=REFUSED_EVENTS)
def test_an_event_is_refused(event: Any, attribute: str, reason: str) -> None:
    index = BooleanIndex()
    index.add("price > 1")
    with pytest.raises(EventError) as caught:
        index.match(event)
    assert (caught.value.attribute, caught.value.reason) == (attribute, reason)


def test_one_bad_event_leaves_the_others_intact() -> None:
    index = BooleanIndex()
    index.add("price > 1")
    good, bad, again = index.match_many([{"price": 2, "tag": "x"}, {"price": 3, "tag": [1, object()]}, {"price": 4}])
    assert isinstance(bad, EventError)
    assert (bad.position, bad.attribute) == (1, "tag")
    assert [good.tolist(), again.tolist()] == [[1], [1]]


def test_bad_expressions_are_reported_together_and_nothing_is_added() -> None:
    index = BooleanIndex()
    with pytest.raises(AddManyError) as caught:
        index.add_many(["a = 1", "a LIKE 5", "b = 2", "XPATH '//a'"])
    assert [(position, type(error)) for position, error in caught.value.errors] == [
        (1, BooleanSyntaxError),
        (3, UndecidedAtomError),
    ]
    assert len(index) == 0


def test_an_xpath_atom_is_decided_by_whoever_calls() -> None:
    keys: dict[str, int] = {}
    index = BooleanIndex(decide=lambda text: keys.setdefault(text, len(keys)))
    both = index.add("XPATH '//quote' AND price BETWEEN 10 AND 20 AND NOT XPATH '//halted'")
    assert keys == {"//quote": 0, "//halted": 1}
    assert index.match({"price": 15}, true_paths=[0]).tolist() == [both]
    assert index.match({"price": 15}, true_paths=[0, 1]).tolist() == []
    assert index.match({"price": 15}).tolist() == []
    assert "NOT XPATH '//halted' failed" in str(index.explain(both, {"price": 15}, true_paths=[0, 1]))


@every_algorithm
def test_identical_expressions_share_their_storage(algorithm: str) -> None:
    one, many = BooleanIndex(algorithm), BooleanIndex(algorithm)
    one.add_many(["a = 1 AND b > 2"])
    ids = many.add_many(["a = 1 AND b > 2", "b > 2 AND a = 1"] * 500)
    extra = many.stats()["bytes"] - one.stats()["bytes"]
    assert extra < 20 * len(ids)
    assert many.match({"a": 1, "b": 3}).tolist() == ids.tolist()


def test_a_very_large_normal_form_is_narrowed_down_and_verified() -> None:
    index = BooleanIndex()
    text = " AND ".join(f"(a{number} = 1 OR b{number} = 1)" for number in range(20))
    subscription = index.add(text)
    event = {f"{'ab'[number % 2]}{number}": 1 for number in range(20)}
    assert index.match(event).tolist() == [subscription]
    assert index.match(event | {"a0": 0, "b0": 2}).tolist() == []
    assert "too many ways" in str(index.explain(subscription, event))


TABLE = {
    "price": np.array([120.0, 3.0, 200.0]),
    "symbol": np.array(["IBM", "x", "IBM"]),
    "flag": np.ma.array([True, False, True], mask=[False, False, True]),
    "n": np.array([1, 2, 3]),
    "unknown": np.array([1, 2, 3]),
}
TABLE_SUBSCRIPTIONS = ["price > 100 AND symbol = 'IBM'", "flag", "NOT flag OR price < 5", "n >= 3"]
TABLE_ANSWERS = [[1, 2], [3], [1, 4]]


def test_a_mapping_of_columns_is_a_table_of_events() -> None:
    index = BooleanIndex()
    index.add_many(TABLE_SUBSCRIPTIONS)
    assert [ids.tolist() for ids in index.match_table(TABLE)] == TABLE_ANSWERS
    assert [ids.tolist() for ids in index.match_table(TABLE, threads=1)] == TABLE_ANSWERS


def test_an_arrow_table_is_a_table_of_events() -> None:
    arrow = pytest.importorskip("pyarrow")
    index = BooleanIndex()
    index.add_many(TABLE_SUBSCRIPTIONS)
    columns = {name: arrow.array(np.ma.getdata(c).tolist(), mask=np.ma.getmaskarray(c)) for name, c in TABLE.items()}
    assert [ids.tolist() for ids in index.match_table(arrow.table(columns))] == TABLE_ANSWERS
    encoded = arrow.table(columns | {"symbol": columns["symbol"].dictionary_encode()})
    assert [ids.tolist() for ids in index.match_table(encoded)] == TABLE_ANSWERS


def test_a_table_of_points_is_looked_at_row_by_row() -> None:
    index = BooleanIndex()
    index.add(f"WITHIN(place, '{SQUARE}')")
    table = {"place": np.array([Point(1, 1), None, Point(9, 9)], object)}
    assert [ids.tolist() for ids in index.match_table(table)] == [[1], [], []]


REFUSED_TABLES: dict[str, tuple[Any, type[Exception], str]] = {
    "nan": ({"n": np.array([1.0, math.nan])}, EventError, "event 1, attribute 'n': NaN is no number"),
    "a_large_integer": ({"n": np.array([1, 2**60 + 1])}, EventError, "event 1, attribute 'n': no double holds"),
    "dates": ({"n": np.array(["2020-01-01"], "M8[D]")}, EventError, "a column of datetime64\\[D\\] cannot be matched"),
    "two_lengths": ({"n": np.zeros(2), "m": np.zeros(3)}, ValueError, "columns must be of one length"),
    "a_matrix": ({"n": np.zeros((2, 2))}, ValueError, "column 'n' must have one dimension, found 2"),
    "no_table": ([1, 2], TypeError, "a table is an Arrow table or a mapping of numpy columns, not list"),
}


@pytest.mark.parametrize("table, error, words", REFUSED_TABLES.values(), ids=REFUSED_TABLES)
def test_a_table_is_refused(table: Any, error: type[Exception], words: str) -> None:
    index = BooleanIndex()
    index.add("n > 1")
    with pytest.raises(error, match=words):
        index.match_table(table)


def test_columns_of_comparisons_are_subscriptions() -> None:
    index = BooleanIndex()
    columns = predicate_columns([2, 1], ["price", "symbol", "price"], [">", "=", "<>"], [100, "IBM", 7])
    first, second = index.add_many(columns).tolist()
    assert index.match({"price": 120, "symbol": "IBM"}).tolist() == [first, second]
    assert index.match({"price": 7, "symbol": "IBM"}).tolist() == []


def test_columns_that_no_value_satisfies_never_match() -> None:
    index = BooleanIndex()
    never = index.add_many(predicate_columns([1, 1, 2], ["a"] * 4, ["BETWEEN", "<", "=", "<"], [5, "", 3, 1], [1] * 4))
    never_texts = index.add_many(["a BETWEEN 5 AND 1", "a BETWEEN 'y' AND 'x'", "a < ''", "a = 1"])
    assert index.match({"a": Interval(0, 10)}).tolist() == [never[2], never_texts[3]]
    assert index.match({"a": ["", "x", "y", 3]}).tolist() == []
    assert len(index) == 7


WRONG_CALLS: dict[str, tuple[Any, type[Exception], str]] = {
    "an_unknown_algorithm": (lambda index: BooleanIndex("quick"), ValueError, "algorithm is 'quick', expected one of"),
    "no_threads": (lambda index: index.match_many([], threads=0), ValueError, "threads is 0, expected 1 or more"),
    "one_text_for_many": (lambda index: index.add_many("a = 1"), TypeError, "expressions is one str"),
    "a_number_for_a_text": (lambda index: index.add_many(["a = 1", 5]), TypeError, "expression 1 is int"),
    "a_float_for_an_id": (lambda index: index.remove(1.0), TypeError, "a subscription id is an int, not float"),
    "an_unknown_id": (lambda index: index.explain(9, {}), UnknownSubscription, "there is no subscription 9"),
}


@pytest.mark.parametrize("call, error, words", WRONG_CALLS.values(), ids=WRONG_CALLS)
def test_a_wrong_call_is_refused_in_words(call: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call(BooleanIndex())


def test_stats_tell_what_is_there() -> None:
    index = BooleanIndex("scan")
    index.add_many(["a = 1", "b = 2"])
    stats = index.stats()
    assert (stats["algorithm"], stats["subscriptions"]) == ("scan", 2)
    assert [(segment["algorithm"], segment["alive"]) for segment in stats["segments"]] == [("scan", 2)]
    assert stats["bytes"] > 0
