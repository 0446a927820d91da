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


def test_an_attribute_that_few_are_filed_under_has_one_leaf() -> None:
    texts = [f"a BETWEEN {i} AND {i + 5}" for i in range(60)] + [f"b = {i}" for i in range(300)]
    filing = filled("pst-bloom", texts)._overlay.snapshot.layers[0].segment.filing
    # a has one leaf of all its cells; the 606 of b go by 8 to a leaf, so that it has 4 conjunctions.
    assert np.diff(filing.tree_start).tolist() == [2, 2 * 76]
    assert len(filing.entries) == len(texts)


@pytest.mark.parametrize("n", [63, 64, 65, 200, 1000])
def test_leaves_of_any_width_find_what_the_scan_finds(n: int) -> None:
    source = random.Random(n)
    texts = [f"a BETWEEN {low} AND {low + source.randrange(3000)}" for low in source.sample(range(9000), n)]
    texts += [f"a IN ({source.randrange(9000)}, {source.randrange(9000)}) AND b > {i}" for i in range(n)]
    happening = [{"a": source.randrange(12000), "b": source.randrange(n)} for _ in range(200)]
    happening += [{"a": [source.randrange(12000) for _ in range(3)], "b": n} for _ in range(20)]
    found, expected = (filled(name, texts).match_many(happening) for name in ("pst-bloom", "scan"))
    assert all(map(np.array_equal, found, expected))
