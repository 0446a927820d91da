"""A-PCM finds for each event of a batch what the scan finds, together or alone, and brings similar ones together."""

import itertools
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boolmatch import predicate_words
from boolmatch.event_clusters import BATCH, CodedEvents, cluster_events
from boolmatch.index import BooleanIndex
from tests.bool_workloads import Event, events, plain_event, similar_events, subscriptions

pytestmark = pytest.mark.kernels


def filled(algorithm: str, texts: list[str]) -> BooleanIndex:
    index = BooleanIndex(algorithm)
    index.add_many(texts)
    return index


def agree(index: BooleanIndex, oracle: BooleanIndex, happening: list[Event], threads: int = 1) -> bool:
    found, expected = index.match_many(happening, threads), oracle.match_many(happening)
    return all(np.array_equal(one, other) for one, other in zip(found, expected, strict=True))


BATCHES: dict[str, Any] = {
    "similar": lambda source: similar_events(source, 20, 16, 0.3),
    "identical": lambda source: similar_events(source, 2, 100, 0.0),
    "dissimilar": lambda source: [plain_event(source) for _ in range(200)],
    "with_sets_and_intervals": lambda source: events(source, 200),
    "mixed": lambda source: similar_events(source, 10, 10, 0.2) + events(source, 100) + [{}, {"unknown": 1}],
    "more_than_a_batch": lambda source: similar_events(source, 30, 50, 0.3),
}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("odd", [0.0, 0.3])
@pytest.mark.parametrize("make", BATCHES.values(), ids=BATCHES)
def test_a_batch_gets_the_answers_of_the_scan(make: Any, odd: float, threads: int) -> None:
    source = random.Random(7)
    texts, happening = subscriptions(source, 3000, odd), make(source)
    assert agree(filled("a-pcm", texts), filled("scan", texts), happening, threads)


def test_subscriptions_with_several_conjunctions_are_found_once() -> None:
    source = random.Random(8)
    parts = subscriptions(source, 3000)
    texts = [f"({a}) OR ({b})" for a, b in zip(parts[::2], parts[1::2], strict=True)] + parts[:50] * 2
    assert agree(filled("a-pcm", texts), filled("scan", texts), similar_events(source, 10, 20, 0.2))


def test_removed_subscriptions_are_not_found() -> None:
    source = random.Random(9)
    texts, happening = subscriptions(source, 2000), similar_events(source, 10, 20, 0.2)
    index, oracle = filled("a-pcm", texts), filled("scan", texts)
    for one in (index, oracle):
        one.remove_many(range(1, 2000, 3))
        one.add_many(texts[:100])
    assert agree(index, oracle, happening)


def test_attributes_with_too_many_predicates_are_decided_when_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(predicate_words, "MOST_PREDICATES", 30)
    source = random.Random(10)
    texts, happening = subscriptions(source, 3000), similar_events(source, 10, 20, 0.3)
    index = filled("a-pcm", texts)
    assert (np.diff(index._overlay.snapshot.layers[0].segment.filing.cell_start) == 0).any()
    assert agree(index, filled("scan", texts), happening)


def test_stats_tell_which_events_were_matched_together() -> None:
    source = random.Random(11)
    index = filled("a-pcm", subscriptions(source, 1000))
    index.match_many(similar_events(source, 4, 32, 0.1), threads=1)
    counts = index.stats()["counts"]
    assert (counts["events"], counts["compressed"], counts["clusters"]) == (128, 128, 2)
    index.match({"a1": 1})
    assert index.stats()["counts"]["events"] == 129


def coded(batch: list[set[tuple[int, int]]]) -> CodedEvents:
    pairs = [pair for event in batch for pair in sorted(event)]
    sizes = np.array([len(event) for event in batch], np.int64)
    return CodedEvents(
        np.concatenate([[0], np.cumsum(sizes)]),
        sizes.astype(np.int32),
        np.ones(len(batch), np.bool_),
        np.array([attribute for attribute, _ in pairs], np.int32),
        np.array([code for _, code in pairs], np.int32),
    )


def test_similar_events_stand_together() -> None:
    batch = [{(group, i) for i in range(6)} | {(100 + copy, group)} for copy in range(8) for group in range(5)]
    order, first_alone = cluster_events(coded(batch))
    assert first_alone == len(batch)
    groups = [event % 5 for event in order]
    assert sum(one != other for one, other in itertools.pairwise(groups)) == 4


def test_events_that_share_too_little_are_alone() -> None:
    batch = [{(0, 1), (event, 2), (event + 1, 3)} for event in range(1, 60, 2)]
    order, first_alone = cluster_events(coded(batch))
    assert first_alone == 0
    assert sorted(order) == list(range(len(batch)))


@settings(max_examples=50)
@given(seed=st.integers(0, 1 << 32), count=st.integers(0, 2 * BATCH + 10))
def test_clustering_loses_no_event(seed: int, count: int) -> None:
    source = random.Random(seed)
    batch = [{(source.randrange(9), source.randrange(3)) for _ in range(source.randrange(6))} for _ in range(count)]
    order, _ = cluster_events(coded(batch))
    assert sorted(order) == list(range(count))
