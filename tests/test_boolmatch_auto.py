"""Left to itself, an index files its subscriptions as they and the stream suggest, and changes its mind."""

from random import Random
from typing import Any

import numpy as np
import pytest

from boolmatch import BooleanIndex
from boolmatch.auto import LARGE_BATCH, MEMORY, Watch
from boolmatch.event_writer import write_events
from boolmatch.index import AttributeNames, Deciders

pytestmark = pytest.mark.kernels

N_SUBSCRIPTIONS = 300


def texts() -> list[str]:
    """Conditions that each hold now and then, and seldom together: whoever looks at one looks mostly in vain."""
    random = Random(5)
    return [" AND ".join(f"{name} > {random.uniform(6, 9)}" for name in "bcd") for _ in range(N_SUBSCRIPTIONS)]


def event(random: Random) -> dict[str, Any]:
    return {name: random.uniform(0, 9) for name in "bcdefgh"}


def alike(n: int) -> list[dict[str, Any]]:
    return [event(Random(number % 10)) for number in range(n)]


def unlike(n: int) -> list[dict[str, Any]]:
    return [event(Random(number)) for number in range(n)]


def algorithms(index: BooleanIndex) -> set[str]:
    return {segment["algorithm"] for segment in index.stats()["segments"]}


def test_a_few_are_scanned_and_many_are_filed() -> None:
    index = BooleanIndex()
    index.add_many(texts()[:5])
    assert algorithms(index) == {"scan"}
    index.add_many(texts())
    index.merge()
    assert algorithms(index) == {"pst-bloom"}


def test_a_stream_of_similar_batches_is_noticed_and_so_is_its_end() -> None:
    index, plain = BooleanIndex(), BooleanIndex("scan")
    for one in (index, plain):
        one.add_many(texts())
    for batch, expected in ((alike, "a-pcm"), (unlike, "pst-bloom"), (alike, "a-pcm")):
        for _ in range(5 * MEMORY // 1024):
            found = index.match_many(batch(1024))
        index.wait_until_merged()
        assert algorithms(index) == {expected}
        assert index.stats()["auto"]["preferred"] == expected
        for ids, right in zip(found, plain.match_many(batch(1024)), strict=True):
            assert np.array_equal(ids, right)


def test_events_that_come_one_by_one_have_nothing_to_share() -> None:
    index = BooleanIndex()
    index.add_many(texts())
    for happening in alike(2 * LARGE_BATCH):
        index.match(happening)
    assert index.stats()["auto"]["similarity"] == 0.0
    assert algorithms(index) == {"pst-bloom"}


def test_similarity_is_what_the_most_similar_event_shares() -> None:
    names = AttributeNames(["a", "b", "c", "d"])
    base = [{"a": 1, "b": "x", "c": 3, "d": 4}] + [
        {"a": 1, "b": "x", "c": -number, "d": -number} for number in range(1, 600)
    ]
    flat, _ = write_events(base, names, Deciders(names), ())
    watch = Watch()
    assert not watch.see(flat, None)
    assert watch._last == pytest.approx(0.5)


def test_a_named_algorithm_stays() -> None:
    index = BooleanIndex("be-tree")
    index.add_many(texts())
    for _ in range(8):
        index.match_many(alike(1024))
    index.wait_until_merged()
    assert algorithms(index) == {"be-tree"}
    assert index.stats()["auto"] is None
