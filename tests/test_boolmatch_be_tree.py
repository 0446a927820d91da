"""BE-Tree keeps its promises while it grows and shrinks, and finds what the scan finds."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boolmatch.be_tree import freeze
from boolmatch.be_tree_growth import MIN_SIZE, ROOT, BETree
from boolmatch.conjunctions import Conjunctions
from boolmatch.index import BooleanIndex
from boolmatch.selectivity import Profile, new_profile
from tests.bool_workloads import events, subscriptions

pytestmark = pytest.mark.kernels


def filled(algorithm: str, texts: list[str]) -> BooleanIndex:
    index = BooleanIndex(algorithm)
    index.add_many(texts)
    return index


def table_of(texts: list[str]) -> tuple[Conjunctions, Profile]:
    filed = filled("scan", texts)._overlay.snapshot.layers[0].segment.filed
    return filed.table, new_profile(filed.spaces, filed.table.predicates, filed.table.n_conjunctions)


@settings(max_examples=25)
@given(seed=st.integers(0, 1 << 32), max_size=st.sampled_from([4, 8, 20]))
def test_a_tree_is_in_order_after_any_insertions_and_deletions(seed: int, max_size: int) -> None:
    source = random.Random(seed)
    table, profile = table_of(subscriptions(source, 150))
    tree, inside = BETree(table, profile, max_size), set[int]()
    for step in range(400):
        if inside and source.random() < (0.3 if step < 200 else 0.8):
            gone = source.choice(sorted(inside))
            tree.delete(gone)
            inside.remove(gone)
        elif outside := sorted(set(range(table.n_conjunctions)) - inside):
            new = source.choice(outside)
            tree.insert(new)
            inside.add(new)
        if step % 10 == 0:
            tree._check()
    tree._check()
    assert sorted(conjunction for bucket in tree.buckets().values() for conjunction in bucket) == sorted(inside)


def test_all_at_once_obeys_the_same_rules() -> None:
    table, profile = table_of(subscriptions(random.Random(1), 5000))
    tree = BETree.of_all(table, profile, max_size=6)
    tree._check()
    depths = tree.growth.nodes["depth"][list(tree.buckets())]
    assert depths.max() >= 8


def test_an_emptied_tree_is_a_root() -> None:
    table, profile = table_of(subscriptions(random.Random(2), 2000))
    tree = BETree.of_all(table, profile, max_size=6)
    for conjunction in range(table.n_conjunctions):
        tree.delete(conjunction)
    assert tree.buckets() == {ROOT: []}


def test_what_was_deleted_can_be_inserted_again() -> None:
    table, profile = table_of(subscriptions(random.Random(3), 500))
    tree = BETree.of_all(table, profile, max_size=6)
    for conjunction in range(0, table.n_conjunctions, 2):
        tree.delete(conjunction)
    tree._check()
    for conjunction in range(0, table.n_conjunctions, 2):
        tree.insert(conjunction)
    tree._check()
    assert sorted(freeze(tree).entries.tolist()) == list(range(table.n_conjunctions))


def test_a_bucket_that_cannot_be_cut_grows() -> None:
    table, profile = table_of([f"a{i} IS NULL" for i in range(100)])
    tree = BETree.of_all(table, profile, max_size=4)
    tree._check()
    assert len(tree.buckets()[ROOT]) == 100


def test_a_range_that_straddles_the_middle_stays_above() -> None:
    table, profile = table_of([f"a BETWEEN {20 - i} AND {21 + i}" for i in range(20)] + [f"a = {i}" for i in range(40)])
    tree = BETree.of_all(table, profile, max_size=4)
    tree._check()
    top = tree.children(ROOT)[0]
    assert len(tree.buckets()[top]) >= 20 - MIN_SIZE


def test_frozen_buckets_are_those_of_the_tree() -> None:
    table, profile = table_of(subscriptions(random.Random(4), 3000))
    tree = BETree.of_all(table, profile, max_size=6)
    frozen = freeze(tree)
    slices = [frozen.entries[node["entries"] :][: node["n_entries"]].tolist() for node in frozen.nodes]
    assert sorted(slices) == sorted(sorted(bucket) for bucket in tree.buckets().values())


@pytest.mark.parametrize("odd", [0.0, 0.1, 0.6])
@pytest.mark.parametrize("threads", [1, 2])
def test_a_large_tree_finds_what_the_scan_finds(odd: float, threads: int) -> None:
    source = random.Random(odd)
    texts, happening = subscriptions(source, 5000, odd), events(source, 100)
    expected = filled("scan", texts).match_many(happening)
    found = filled("be-tree", texts).match_many(happening, threads)
    assert all(np.array_equal(one, other) for one, other in zip(found, expected, strict=True))
    assert sum(map(len, expected)) > 1000
