"""The Boolean workloads are what they say: seeded, with the promised shares, and three forms of the same."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.answers import ColumnLoop
from benchmarks.bool_workload import BATCH, SHAPES, BooleanWorkload
from boolmatch import BooleanIndex
from boolmatch.bulk import read_simple
from boolmatch.columns import Operator, PredicateColumns

every_shape = pytest.mark.parametrize("name", SHAPES)


def predicates(columns: PredicateColumns) -> list[tuple]:
    names = [columns.names[attribute] for attribute in columns.attributes.tolist()]
    rest = (column.tolist() for column in (columns.operators, columns.lows, columns.highs))
    return list(zip(names, *rest, strict=True))


def share(columns: PredicateColumns, *operators: Operator) -> float:
    return float(np.isin(columns.operators, operators).mean())


def match_share(workload: BooleanWorkload, n: int, n_events: int) -> float:
    loop = ColumnLoop(workload.columns(n))
    return float(np.mean([len(loop.match(event)) for event in workload.events(n_events)])) / n


@every_shape
def test_subscriptions_are_seeded_and_go_on(name: str) -> None:
    workload, again = BooleanWorkload(SHAPES[name]), BooleanWorkload(SHAPES[name])
    texts = workload.texts(20_000)
    assert again.texts(500) == texts[:500]
    assert again.texts(300, after=16_300) == texts[16_300:16_600]
    assert BooleanWorkload(SHAPES[name], seed=2).texts(500) != texts[:500]


@every_shape
def test_events_are_seeded_and_go_on(name: str) -> None:
    workload = BooleanWorkload(SHAPES[name])
    events = workload.events(BATCH + 10)
    assert BooleanWorkload(SHAPES[name]).events(10) == events[:10]
    assert BooleanWorkload(SHAPES[name], seed=2).events(10) != events[:10]
    assert all(len(event) == SHAPES[name].n_pairs for event in events)


@every_shape
def test_texts_and_columns_are_the_same_subscriptions(name: str) -> None:
    workload = BooleanWorkload(SHAPES[name])
    columns = workload.columns(300, after=50)
    read, plain = read_simple(workload.texts(300, after=50))
    assert plain.tolist() == list(range(300))
    assert columns.counts.tolist() == read.counts.tolist()
    assert predicates(columns) == predicates(read)


@every_shape
def test_tables_and_mappings_are_the_same_events(name: str) -> None:
    workload = BooleanWorkload(SHAPES[name])
    rows: list[dict[str, int]] = [{} for _ in range(40)]
    for attribute, column in workload.table(40).items():
        for position in np.flatnonzero(~np.ma.getmaskarray(column)).tolist():
            rows[position][attribute] = column[position]
    assert rows == workload.events(40)


@every_shape
def test_predicates_come_in_the_promised_shares(name: str) -> None:
    shape, columns = SHAPES[name], BooleanWorkload(SHAPES[name]).columns(20_000)
    fewest, most = shape.n_predicates
    assert (columns.counts.min(), columns.counts.max()) == (fewest, most)
    # Of a near miss the last predicate is one-sided, whatever the others are.
    last = 1 / most if shape.near_miss else 0.0
    one_sided = share(columns, Operator.LESS_EQUAL, Operator.GREATER_EQUAL)
    assert share(columns, Operator.EQUAL) == pytest.approx((1 - last) * shape.equality, abs=0.01)
    assert one_sided == pytest.approx((1 - last) * shape.one_sided + last, abs=0.01)


@every_shape
def test_ranges_are_as_wide_as_promised(name: str) -> None:
    shape, columns = SHAPES[name], BooleanWorkload(SHAPES[name]).columns(20_000)
    between = columns.operators == Operator.BETWEEN
    widths = (columns.highs - columns.lows + 1)[between] / shape.n_values
    rounding = 0.5 / shape.n_values
    assert ((widths >= shape.widths[0] - rounding) & (widths <= shape.widths[1] + rounding)).all()
    assert columns.lows.min() >= 0
    assert columns.highs.max() < shape.n_values


@every_shape
def test_no_subscription_names_an_attribute_twice(name: str) -> None:
    columns = BooleanWorkload(SHAPES[name]).columns(20_000)
    owners = np.repeat(np.arange(20_000), columns.counts)
    named = owners * SHAPES[name].n_attributes + columns.attributes
    assert len(np.unique(named)) == len(named)


@every_shape
def test_an_event_matches_as_many_as_promised(name: str) -> None:
    shape = replace(SHAPES[name], n_copies=1)
    assert 0.5 < match_share(BooleanWorkload(shape), 50_000, 60) / shape.match < 2


def test_copies_share_most_of_their_pairs() -> None:
    shape = replace(SHAPES["apcm"], match=1e-5)  # so many topics that no two events of a batch are of the same
    events = [set(event.items()) for event in BooleanWorkload(shape).events(BATCH)]
    in_common = np.array([[len(one & other) for other in events] for one in events[:64]])
    akin = np.sort(in_common, axis=1)[:, -shape.n_copies : -1]  # without the event itself
    assert akin.mean() / shape.n_pairs == pytest.approx((1 - shape.replaced) ** 2, abs=0.02)
    assert akin.max() < shape.n_pairs


def test_near_misses_fail_by_their_last_predicate_only() -> None:
    workload = BooleanWorkload(SHAPES["near-miss"])
    columns = workload.columns(20_000)
    not_last = np.arange(5 * 20_000) % 5 < 4
    rest = columns._replace(
        counts=columns.counts - 1,
        **{name: getattr(columns, name)[not_last] for name in ("attributes", "operators", "lows", "highs")},
    )
    whole, without_last = ColumnLoop(columns), ColumnLoop(rest)
    events = workload.events(20)
    n_candidates = sum(len(without_last.match(event)) for event in events)
    assert n_candidates / 20 > 0.015 * 20_000
    assert sum(len(whole.match(event)) for event in events) < 0.15 * n_candidates


def test_frequent_attributes_are_frequent() -> None:
    counts = np.bincount(BooleanWorkload(SHAPES["zipf"]).columns(20_000).attributes, minlength=100)
    assert counts[0] > 4 * counts[20] > 8 * counts[80] > 0


def test_the_loop_over_columns_knows_the_answer() -> None:
    texts = ["a = 1 AND b <= 5", "b >= 5", "c BETWEEN 2 AND 3", "a = 2"]
    loop = ColumnLoop(read_simple(texts)[0])
    assert loop.match({"a": 1, "b": 5}).tolist() == [0, 1]
    assert loop.match({"c": 3, "a": 2}).tolist() == [2, 3]
    assert loop.match({}).tolist() == []


@every_shape
def test_the_index_agrees_with_the_columns(name: str) -> None:
    workload = BooleanWorkload(SHAPES[name])
    columns, events = workload.columns(3000), workload.events(20)
    index, loop = BooleanIndex(), ColumnLoop(columns)
    ids = index.add_many(columns)
    for found, event in zip(index.match_many(events), events, strict=True):
        assert found.tolist() == ids[loop.match(event)].tolist()
