"""PSTBloom finds what the scan finds, and passes over what lacks an attribute."""

import random

import numpy as np
import pytest

from boolmatch.index import BooleanIndex
from tests.bool_workloads import events, subscriptions

pytestmark = pytest.mark.kernels


def filled(algorithm: str, texts: list[str]) -> BooleanIndex:
    index = BooleanIndex(algorithm)
    index.add_many(texts)
    return index


@pytest.mark.parametrize("odd", [0.0, 0.1, 0.6])
@pytest.mark.parametrize("threads", [1, 2])
def test_many_conjunctions_are_found_as_by_the_scan(odd: float, threads: int) -> None:
    source = random.Random(odd)
    texts, happening = subscriptions(source, 5000, odd), events(source, 100)
    expected = filled("scan", texts).match_many(happening)
    found = filled("pst-bloom", texts).match_many(happening, threads)
    assert all(np.array_equal(one, other) for one, other in zip(found, expected, strict=True))
    assert sum(map(len, expected)) > 1000


# Section 5.1 of the paper, with attributes of bytes.
PAPER = {
    "S1": "attr1 < -5 AND attr2 BETWEEN 1 AND 5",
    "S2": "attr1 BETWEEN -5 AND -1 AND attr2 < 1",
    "S3": "attr1 BETWEEN -5 AND -1 AND attr2 > 5",
}

EVENTS = {
    "left_of_all": ({"attr1": -100, "attr2": 5}, ["S1"]),
    "between": ({"attr1": -5, "attr2": 0}, ["S2"]),
    "right_of_all": ({"attr1": -1, "attr2": 6}, ["S3"]),
    "in_no_space_of_any": ({"attr1": -3, "attr2": 3}, []),
    "one_attribute_is_missing": ({"attr1": -3}, []),
}


@pytest.mark.parametrize("event, expected", EVENTS.values(), ids=EVENTS)
def test_the_example_of_the_paper(event: dict[str, int], expected: list[str]) -> None:
    found = filled("pst-bloom", list(PAPER.values())).match(event)
    assert [list(PAPER)[subscription_id - 1] for subscription_id in found] == expected


def test_a_wide_access_predicate_has_few_entries() -> None:
    texts = [f"a BETWEEN {i} AND {i + 5000}" for i in range(5000)]
    filing = filled("pst-bloom", texts)._overlay.snapshot.layers[0].segment.filing
    assert len(filing.entries) <= 5000 * 2 * 15
