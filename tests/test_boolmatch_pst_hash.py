"""PSTHash finds what the scan finds, looks at little, and says when another structure would do better."""

import random
from typing import Any

import numpy as np
import pytest

from boolmatch.index import BooleanIndex
from boolmatch.matching import N_CHECKED
from boolmatch.pst_hash import PARTS, PstHashFiling
from boolmatch.segment import Segment
from boolmatch.stream import _Run
from boolmatch.values import Interval
from tests.bool_workloads import Event, events, subscriptions

pytestmark = pytest.mark.kernels


def filled(algorithm: str, texts: list[str]) -> BooleanIndex:
    index = BooleanIndex(algorithm)
    index.add_many(texts)
    return index


def segment_of(index: BooleanIndex) -> Segment:
    return index._overlay.snapshot.layers[0].segment


def filing_of(texts: list[str]) -> PstHashFiling:
    filing: PstHashFiling = segment_of(filled("pst-hash", texts)).filing
    return filing


def n_candidates(index: BooleanIndex, event: Event, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many conjunctions are decided for an event."""
    counts: list[Any] = []
    run = _Run.run
    monkeypatch.setattr(_Run, "run", lambda self, threads: (run(self, threads), counts.append(self.counts.copy()))[0])
    index.match(event)
    return int(counts[0][N_CHECKED])


# Section 6.1 of the paper, with attributes of bytes.
PAPER = {
    "S1": "attr1 = 1 AND attr2 = -1 AND attr3 < 0",
    "S2": "attr1 = 1 AND attr2 = -1 AND attr3 > 0",
    "S3": "attr1 = 1 AND attr2 < -1 AND attr3 = 0",
    "S4": "attr1 < 1 AND attr2 = -1 AND attr3 = 0",
}


def test_the_example_of_the_paper(monkeypatch: pytest.MonkeyPatch) -> None:
    index = filled("pst-hash", list(PAPER.values()))
    event = {"attr1": 1, "attr2": -1, "attr3": 2}
    found = [list(PAPER)[subscription_id - 1] for subscription_id in index.match(event)]
    assert found == ["S2"]
    assert n_candidates(index, event, monkeypatch) == len(["S1", "S2"])


@pytest.mark.parametrize("odd", [0.0, 0.1, 0.6])
@pytest.mark.parametrize("threads", [1, 2])
def test_many_conjunctions_are_found_as_by_the_scan(odd: float, threads: int) -> None:
    source = random.Random(odd)
    texts, happening = subscriptions(source, 5000, odd), events(source, 100)
    expected = filled("scan", texts).match_many(happening)
    found = filled("pst-hash", texts).match_many(happening, threads)
    assert all(np.array_equal(one, other) for one, other in zip(found, expected, strict=True))
    assert sum(map(len, expected)) > 1000


def test_an_interval_over_everything_is_still_exact() -> None:
    texts = [f"a = {i} AND b = {i % 70} AND c < {i}" for i in range(3000)]
    happening = [
        {"a": Interval(10, 2500), "b": 3, "c": 20},
        {"a": Interval(10, 2500), "b": Interval(0, 69), "c": 20},
        {"a": {5, 2990}, "b": {5, 50}, "c": -1},
    ]
    found = filled("pst-hash", texts).match_many(happening)
    expected = filled("scan", texts).match_many(happening)
    assert [ids.tolist() for ids in found] == [ids.tolist() for ids in expected]
    assert all(map(len, found))


def test_wide_ranges_have_few_entries() -> None:
    filing = filing_of([f"a BETWEEN {i} AND {200 + i} AND b BETWEEN {i} AND {300 + i}" for i in range(800)])
    assert 0 < len(filing.pair_entries) <= 800 * PARTS**2


ALONE = {
    "one_attribute": ["a = 1", "a = 2 AND a < 7"],
    "absent_values_cannot_be_looked_up": ["a = 1 AND b IS NULL"],
    "a_range_over_nearly_everything_tells_nothing": ["a = 1 AND b IS NOT NULL", "a = 2 AND b IS NOT NULL"],
    "nothing_at_all": ["a IS NULL"],
}


@pytest.mark.parametrize("texts", ALONE.values(), ids=ALONE)
def test_what_has_no_pair_is_filed_singly_and_said_so(texts: list[str]) -> None:
    index = filled("pst-hash", texts)
    told = index.stats()["segments"][0]
    assert (told["filed_singly"], told["better"]) == (len(texts), "pst-bloom")


def test_pairs_need_no_advice() -> None:
    told = filled("pst-hash", [f"a = {i} AND b = {i}" for i in range(50)]).stats()["segments"][0]
    assert told["filed_singly"] == 0
    assert "better" not in told
