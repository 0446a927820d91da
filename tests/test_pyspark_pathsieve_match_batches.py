"""What a worker does with a batch, without a Spark around it: slices, offsets, errors, and which file it asks."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark import SparkFiles

from pyspark_pathsieve import compile_subscriptions, shipping
from pyspark_pathsieve.compiled import Part, digest_of
from pyspark_pathsieve.match_batches import Matcher, matched_arrays, matched_rows
from pyspark_pathsieve.shipping import ExtractorSettings, part_of

Ship = Callable[[Part], str]
SUBSCRIPTIONS = {"a": "//a", "b": "//b", "x": "//x", "all": "/*", "rich": {"boolean": "p > 1"}}
BODIES = ["<a/>", None, "<a><b/></a>", "<b>", "", "<z/>", "<b/>", None, "<a/>"]
WANTED = [["a", "all"], [], ["a", "b", "all"], None, None, ["all"], ["b", "all"], [], ["a", "all"]]


@pytest.fixture
def ship(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ship]:
    """Brings a part to where a worker of Spark finds it; gives its name."""

    def shipped(part: Part) -> str:
        part.save(tmp_path / "new")
        name = f"pathsieve-{digest_of(tmp_path / 'new')}.sieve"
        (tmp_path / "new").rename(tmp_path / name)
        return name

    monkeypatch.setattr(SparkFiles, "get", lambda name: str(tmp_path / name))
    shipping._parts.clear()
    yield shipped
    shipping._parts.clear()


@pytest.fixture
def name(ship: Ship) -> str:
    return ship(compile_subscriptions(SUBSCRIPTIONS).parts[0])


def batches(sizes: list[int], kind: pa.DataType | None = None) -> Iterator[pa.RecordBatch]:
    """The documents in batches of these sizes; each batch is a slice of one that begins before it."""
    columns = [pa.array(range(len(BODIES))), pa.array(BODIES).cast(kind or pa.string())]
    whole, first = pa.RecordBatch.from_arrays(columns, ["id", "body"]), 0
    for size in sizes:
        yield whole.slice(first, size)
        first += size


SIZES = [[9], [4, 5], [1] * 9, [3, 0, 6]]


@pytest.mark.parametrize("kind", [pa.string(), pa.binary(), pa.large_string()], ids=str)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("batch_documents", [1, 2, 4, 64])
def test_each_document_has_its_own_answers(
    name: str, sizes: list[int], batch_documents: int, kind: pa.DataType
) -> None:
    matcher = Matcher(name, "body", batch_documents=batch_documents)
    found = pa.Table.from_batches(list(matched_arrays(matcher, ["id"], batches(sizes, kind))))
    assert found["id"].to_pylist() == list(range(len(BODIES)))
    assert found["matches"].to_pylist() == WANTED
    assert [error is None for error in found["error"].to_pylist()] == [wanted is not None for wanted in WANTED]


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("batch_documents", [1, 2, 4, 64])
@pytest.mark.parametrize("row_bytes", [1, 60, 1 << 20])
def test_each_match_is_a_row(
    name: str, sizes: list[int], batch_documents: int, row_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pyspark_pathsieve.match_batches.ROW_BYTES", row_bytes)
    matcher = Matcher(name, "body", batch_documents=batch_documents)
    rows = pa.Table.from_batches(list(matched_rows(matcher, ["id", "body"], batches(sizes)))).to_pylist()
    assert all(row["body"] == BODIES[row["id"]] for row in rows)
    wanted = [(place, own) for place, ids in enumerate(WANTED) for own in ids or ()]
    assert sorted((row["id"], row["subscription"]) for row in rows if row["error"] is None) == sorted(wanted)
    bad = [(row["id"], row["subscription"]) for row in rows if row["error"] is not None]
    assert sorted(bad) == [(place, None) for place, ids in enumerate(WANTED) if ids is None]


def test_errors_are_those_of_their_documents(name: str) -> None:
    (found,) = matched_arrays(Matcher(name, "body"), ["id"], batches([9]))
    errors = found["error"].to_pylist()
    assert "Premature end" in errors[3]
    assert errors[4].startswith("empty document")


def test_attributes_are_those_of_their_documents(name: str) -> None:
    attributes: list[Any] = [{"p": 0.0}, {"p": 2.0}, None, {"p": None}, {"p": 3.0}]
    columns = [pa.array(range(5)), pa.array(["<z/>", None, "<z/>", None, "<z>"]), pa.array(attributes)]
    batch = pa.RecordBatch.from_arrays(columns, ["id", "body", "known"])
    for size in (1, 2, 64):
        matcher = Matcher(name, "body", "known", batch_documents=size)
        found = pa.Table.from_batches(list(matched_arrays(matcher, ["id"], iter([batch.slice(1)]))))
        assert found["matches"].to_pylist() == [["rich"], ["all"], [], None]


def test_ids_of_a_shard_have_their_places_among_all(ship: Ship) -> None:
    given = {f"s{number}": expression for number, expression in enumerate(["//a", "//b", "//a", "//[", "//a"])}
    compiled = compile_subscriptions(given, shards=2, on_bad="skip")
    places = []
    for part in compiled.parts:
        found = Matcher(ship(part), "body").match(pa.array(["<b/>", "<a/>"]), None)
        places += found.placed_ids().to_pylist()
    assert sorted((one["place"], one["id"]) for one in places) == [(0, "s0"), (1, "s1"), (2, "s2"), (4, "s4")]


def test_a_name_stands_for_one_version_and_one_setting(ship: Ship) -> None:
    old, new = (ship(compile_subscriptions({own: path}).parts[0]) for own, path in (("old", "//a"), ("new", "//b")))
    assert old != new
    assert [part_of(name, ExtractorSettings()).ids.to_pylist() for name in (old, new, old)] == [
        ["old"],
        ["new"],
        ["old"],
    ]
    other = ExtractorSettings((("p", "count(//*)"),))
    assert part_of(old, other) is not part_of(old, ExtractorSettings())
    assert part_of(old, other) is part_of(old, other)


def test_a_worker_keeps_the_versions_it_has_used_last(ship: Ship) -> None:
    names = [ship(compile_subscriptions({number: "//a"}).parts[0]) for number in range(shipping.KEPT + 1)]
    first = part_of(names[0], ExtractorSettings())
    for name in names[1:-1]:
        part_of(name, ExtractorSettings())
    assert part_of(names[0], ExtractorSettings()) is first
    part_of(names[-1], ExtractorSettings())
    assert part_of(names[0], ExtractorSettings()) is first, "it was used after all others but one"
    assert {name for name, _ in shipping._parts} == {*names} - {names[1]}
