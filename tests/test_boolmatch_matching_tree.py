"""The matching tree has the shape of the papers' examples, covers by their rules, and finds what the scan finds."""

import random
from typing import Any

import numpy as np
import pytest

from boolmatch import matching_tree
from boolmatch.index import BooleanIndex
from boolmatch.matching_tree import DEPTH, MatchingTreeFiling
from boolmatch.values import Interval, Point
from tests.bool_workloads import Event, events, subscriptions

pytestmark = pytest.mark.kernels


@pytest.fixture(params=[1, 8, matching_tree.SHARED], ids="paths_shared_by_{}".format)
def shared(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching_tree, "SHARED", request.param)


@pytest.fixture
def whole_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching_tree, "SHARED", 1)


def filled(algorithm: str, texts: list[str]) -> BooleanIndex:
    index = BooleanIndex(algorithm)
    index.add_many(texts)
    return index


def filing_of(texts: list[str]) -> MatchingTreeFiling:
    filing: MatchingTreeFiling = filled("matching-tree", texts)._overlay.snapshot.layers[0].segment.filing
    return filing


def found(texts: dict[str, str], event: Event) -> list[str]:
    return [
        list(texts)[subscription_id - 1]
        for subscription_id in filled("matching-tree", list(texts.values())).match(event)
    ]


# Figure 2 of Schitinin and Tsesko.
MERGED = {
    "A1": "name1 = 'A' AND name2 = 'D'",
    "A2": "name1 = 'A' AND name2 = 'E'",
    "A3": "name1 = 'A' AND name3 = 'F'",
    "A4": "name1 = 'B' AND name3 = 'F'",
    "A5": "name1 = 'A'",
    "A6": "name1 = 'C'",
}


@pytest.mark.usefixtures("shared")
def test_an_event_descends_to_a1_a3_and_a5() -> None:
    assert found(MERGED, {"name1": "A", "name2": "D", "name3": "F"}) == ["A1", "A3", "A5"]


@pytest.mark.usefixtures("whole_paths")
def test_merged_paths_are_the_tree_of_the_paper() -> None:
    filing = filing_of(list(MERGED.values()))
    assert len(filing.nodes) - 1 == len(["root", "A", "B", "C", "D", "E", "F", "F"])
    assert len(filing.groups) == len(["name1", "name2", "name3", "name3"])


# Section 2.7, where a disjunction in F1 becomes two paths.
FILTERS = {
    "F1": "mark = 'FORD' AND (model = 'FOCUS' OR model = 'MONDEO') AND year = 2016",
    "F2": "year BETWEEN 2014 AND 2016",
    "F3": "mark = 'FORD' AND model = 'MONDEO'",
}
ADS = {
    "A1": ({"region": "Moscow", "mark": "FORD", "model": "MONDEO", "year": 2016}, ["F1", "F2", "F3"]),
    "A2": ({"region": "Saint-Petersburg", "mark": "BMW", "model": "3ER", "year": 2015}, ["F2"]),
}


@pytest.mark.usefixtures("shared")
@pytest.mark.parametrize("ad, expected", ADS.values(), ids=ADS)
def test_car_ads_visit_their_filters(ad: Event, expected: list[str]) -> None:
    assert found(FILTERS, ad) == expected


SQUARE = "WITHIN(place, 'POLYGON ((0 0, 10 0, 10 10, 0 10, 0 0))')"
COVERAGE = {
    "fixed_covers_an_equal_fixed": ("a = 'x'", "x", True),
    "fixed_covers_no_other_fixed": ("a = 'x'", "y", False),
    "a_range_covers_a_number_inside": ("a BETWEEN 5 AND 9", 7, True),
    "a_range_covers_its_ends": ("a BETWEEN 5 AND 9", 9, True),
    "a_range_covers_no_number_outside": ("a BETWEEN 5 AND 9", 10, False),
    "a_range_covers_no_text": ("a BETWEEN 5 AND 9", "7", False),
    "a_range_with_one_border_covers": ("a >= 5", 1e300, True),
    "a_range_covers_an_interval_that_meets_it": ("a BETWEEN 5 AND 9", Interval(8, 20), True),
    "a_range_covers_an_interval_around_it": ("a BETWEEN 5 AND 9", Interval(0, 20), True),
    "a_range_covers_no_interval_beside_it": ("a BETWEEN 5 AND 9", Interval(10, 20), False),
    "a_number_covers_an_interval_around_it": ("a = 5", Interval(0, 20), True),
    "a_polygon_covers_a_point_inside": (SQUARE, Point(5, 5), True),
    "a_polygon_covers_no_point_outside": (SQUARE, Point(15, 5), False),
}


@pytest.mark.usefixtures("shared")
@pytest.mark.parametrize("filter_, value, covers", COVERAGE.values(), ids=COVERAGE)
def test_coverage(filter_: str, value: Any, covers: bool) -> None:
    texts = {"alone": filter_, "below": f"b = 1 AND {filter_}", "above": f"{filter_} AND c = 1"}
    event = {"place" if filter_ == SQUARE else "a": value, "b": 1, "c": 1}
    assert found(texts, event) == (list(texts) if covers else [])


@pytest.mark.usefixtures("shared")
@pytest.mark.parametrize("odd", [0.0, 0.1, 0.6])
def test_many_conjunctions_are_found_as_by_the_scan(odd: float) -> None:
    source = random.Random(odd)
    texts, happening = subscriptions(source, 5000, odd), events(source, 100)
    expected = filled("scan", texts).match_many(happening)
    results = filled("matching-tree", texts).match_many(happening, threads=2)
    assert all(np.array_equal(one, other) for one, other in zip(results, expected, strict=True))
    assert sum(map(len, expected)) > 1000


@pytest.mark.usefixtures("whole_paths")
def test_what_is_open_fits_on_the_stack() -> None:
    """Every edge covers the event, so that all children of a node are open at once."""
    texts = [" AND ".join(f"a{i} > {(value >> i) & 3}" for i in range(6)) for value in range(512)]
    happening: Event = {f"a{i}": 9 for i in range(6)}
    assert len(filled("matching-tree", texts).match(happening)) == len(texts)


@pytest.mark.usefixtures("whole_paths")
def test_a_path_ends_after_a_few_tests() -> None:
    texts = [" AND ".join(f"a{i} = {number}" for i in range(9)) for number in range(20)]
    assert len(filing_of(texts).nodes) - 1 == 1 + 20 * DEPTH


def test_what_few_share_is_left_to_the_final_revision() -> None:
    texts = [f"a = {number % 2} AND b = {number}" for number in range(2 * matching_tree.SHARED - 1)]
    nodes = filing_of(texts).nodes
    assert len(nodes) - 1 == len(["root", "a = 0", "a = 1"]) + matching_tree.SHARED
