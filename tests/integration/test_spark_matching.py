"""Matching inside Spark gives the answers of the library, of the oracle and of a server, however it is asked."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import oracle
import pyarrow as pa
import pytest
from bool_workloads import subscriptions as boolean_expressions
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from strategies import NAMESPACES, document, native_expression, other_expression

import boolmatch
import xpathfilter
from pathsieve import Client
from pathsieve import Document as Published
from pyspark_pathsieve import (
    BadSubscriptionsError,
    MatchSetupError,
    MatchStream,
    compile_subscriptions,
    match_documents,
    register_function,
)
from pyspark_pathsieve.errors import ColumnError
from pyspark_pathsieve.shipping import loads
from server.server_process import ServerProcess
from sievefilters import Filter, Given
from tests import server_oracle
from xpathfilter import DocumentError, DocumentLimits, XPathIndex

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

EXTRACTORS = {"a0": "number(//@x)", "a1": "count(//a)"}
MALFORMED = ["<a>", "no xml", "<a/><b/>", "<!DOCTYPE a [<!ENTITY e 'x'>]><a>&e;</a>"]

Answers = dict[int, list[Any] | None]


@dataclass(frozen=True)
class Workload:
    """Subscriptions of all kinds and documents of all kinds; what is malformed has no answers."""

    filters: dict[str, Filter]
    documents: dict[int, Given]

    @property
    def wishes(self) -> list[dict[str, Any]]:
        return [
            {"id": own, filter.kind: filter.expression, "namespaces": dict(filter.namespaces)}
            for own, filter in self.filters.items()
        ]

    def frame(self, spark: SparkSession) -> DataFrame:
        rows = [
            {"id": own, "body": given.xml or None, "attributes": given.attributes}
            for own, given in self.documents.items()
        ]
        return spark.createDataFrame(rows, "id int, body string, attributes map<string,double>").repartition(3)


def boolean_filter(random: Random) -> Filter:
    """Conditions about attributes, an XPATH atom, or both, some of them denied."""
    path = native_expression(random.choice).replace("'", "''")
    condition = boolean_expressions(random, 1)[0]
    form = random.choice(
        ["{0}", "XPATH '{1}'", "({0}) AND XPATH '{1}'", "({0}) OR NOT XPATH '{1}'", "NOT ({0}) AND XPATH '{1}'"]
    )
    return Filter("boolean", form.format(condition, path), tuple(NAMESPACES.items()))


def make_workload(seed: int) -> Workload:
    random = Random(seed)
    paths = [
        Filter("xpath", make(random.choice), tuple(NAMESPACES.items()))
        for make in [native_expression] * 60 + [other_expression] * 15
    ]
    filters = [*paths, *(boolean_filter(random) for _ in range(75))]
    attributes: list[dict[str, float]] = [
        {f"a{number}": float(random.randrange(40)) for number in random.sample(range(24), random.randrange(12))}
        for _ in range(36)
    ]
    texts = [document(random.choice, random.randint(1, 25)) for _ in range(28)] + MALFORMED + [""] * 4
    given = [Given(text, own) for text, own in zip(texts, attributes, strict=True)]
    return Workload({f"s{n}": one for n, one in enumerate(filters)}, dict(enumerate(given)))


@pytest.fixture(scope="module", params=[1, 2])
def workload(request: pytest.FixtureRequest) -> Workload:
    return make_workload(request.param)


@pytest.fixture(scope="module", autouse=True)
def compiled_kernels() -> None:
    """Before any worker needs one: two that compile the same would take twice as long."""
    xpathfilter.warm_up()
    boolmatch.warm_up()


def arrays_of(matched: DataFrame) -> Answers:
    """The answers of each document; None if it is malformed."""
    rows = matched.select("id", "matches", "error").collect()
    assert all((row.matches is None) == (row.error is not None) for row in rows)
    found = {row.id: row.matches for row in rows}
    assert len(found) == len(rows), "one row for each document"
    return found


def rows_of(matched: DataFrame, documents: dict[int, Given]) -> Answers:
    found: Answers = {own: [] for own in documents}
    for row in matched.select("id", "subscription", "error").collect():
        if row.error is not None:
            assert row.subscription is None
            assert found[row.id] == [], "one row for each malformed document, and no other"
            found[row.id] = None
        else:
            found[row.id].append(row.subscription)
    return found


def in_order(answers: Answers) -> Answers:
    return {own: None if ids is None else sorted(ids) for own, ids in sorted(answers.items())}


def expected_of(workload: Workload, extracted: bool = False) -> Answers:
    """What lxml and a tree say."""

    def wanting(given: Given) -> list[str] | None:
        found = {}
        if given.xml:
            try:
                XPathIndex().match(given.xml)
            except DocumentError:
                return None
            root = oracle.read(given.xml.encode())
            if extracted:
                x = root.getroottree().xpath("number(//@x)")
                found = {"a1": root.getroottree().xpath("count(//a)")} | ({"a0": x} if x == x else {})
        whole = Given(given.xml.encode(), {**found, **given.attributes})
        return [own for own, filter in workload.filters.items() if server_oracle.wants(filter, whole)]

    return {own: wanting(given) for own, given in workload.documents.items()}


def test_arrays_are_the_answers_of_the_oracle_in_the_order_of_the_subscriptions(
    spark: SparkSession, workload: Workload
) -> None:
    expected = expected_of(workload)
    assert sum(ids is None for ids in expected.values()) == len(MALFORMED)
    assert sum(len(ids or ()) for ids in expected.values()) > 200
    matched = match_documents(workload.frame(spark), workload.wishes, attributes="attributes", output="arrays")
    assert matched.columns == ["id", "body", "attributes", "matches", "error"]
    assert arrays_of(matched) == expected


def test_rows_shards_and_the_function_of_sql_say_the_same(spark: SparkSession, workload: Workload) -> None:
    frame = workload.frame(spark).cache()
    known: Any = {"attributes": "attributes", "extractors": EXTRACTORS, "keep": ["id"]}
    expected = arrays_of(match_documents(frame, workload.wishes, output="arrays", **known))
    assert in_order(expected) == in_order(expected_of(workload, extracted=True))
    sharded = match_documents(frame, workload.wishes, output="arrays", shards=3, **known)
    assert arrays_of(sharded) == expected
    rows = match_documents(frame, workload.wishes, batch_documents=5, **known)
    assert rows_of(rows, workload.documents) == expected
    sharded_rows = match_documents(frame, workload.wishes, shards=2, threads=2, **known)
    assert in_order(rows_of(sharded_rows, workload.documents)) == in_order(expected)
    register_function(spark, "wanted_by", workload.wishes, extractors=EXTRACTORS)
    frame.createOrReplaceTempView("documents")
    asked = spark.sql("SELECT id, wanted_by(body, attributes) AS ids FROM documents").collect()
    assert {row.id: row.ids for row in asked} == expected


async def test_a_server_gives_the_same_answers(spark: SparkSession, tmp_path: Path) -> None:
    workload = make_workload(3)
    async with ServerProcess(tmp_path, EXTRACTORS=json.dumps(EXTRACTORS)) as server:
        with Client(server.address) as client:
            assert all(result.error is None for result in client.import_subscriptions(workload.wishes))  # type: ignore[arg-type]
            expected = from_server(client, workload)
            matched = match_documents(
                workload.frame(spark), client, attributes="attributes", output="arrays", extractors=EXTRACTORS
            )
            assert in_order(arrays_of(matched)) == in_order(expected)


def from_server(client: Client, workload: Workload) -> Answers:
    found: Answers = {}
    documents = [
        Published(given.xml, id=str(own), attributes=given.attributes) for own, given in workload.documents.items()
    ]
    with client.attach("-", auto_ack=True) as messages:
        published = list(client.publish_many(documents))
        for one in published:
            found[int(one.id)] = None if one.error else []
        waiting = sum(one.matches for one in published)
        while waiting:
            message = next(messages)
            found[int(message.document.id)] += [name.removeprefix("subscriptions/") for name, _ in message.matches]  # type: ignore[operator]
            waiting -= message.n_matches
    return found


def test_documents_of_the_corpus_meet_what_the_library_says(spark: SparkSession, shared: Path) -> None:
    files = sorted((shared / "data" / "corpus").glob("*/*.xml"))[::7][:60]
    bodies = [path.read_bytes() for path in files] + [path.read_bytes()[:-20] for path in files[:5]]
    expressions = [
        "//*[@id]",
        "//*[local-name() = 'title']",
        "count(//*) > 100",
        "/*/*[3]",
        "//*[. = '1']",
        "not(//@*)",
    ]
    index = XPathIndex(limits=DocumentLimits(allow_entities=True))
    index.add_many(expressions)
    frame = spark.createDataFrame(pa.table({"id": range(len(bodies)), "body": bodies}))
    found = arrays_of(match_documents(frame, expressions, output="arrays", limits=DocumentLimits(allow_entities=True)))
    for own, result in enumerate(index.match_many(bodies, threads=1)):
        assert found[own] == (None if isinstance(result, DocumentError) else (result - 1).tolist())
    assert sum(ids is None for ids in found.values()) >= 5


# What comes in, and what is said of it


def test_attributes_may_be_a_struct_with_points_intervals_and_several_values(spark: SparkSession) -> None:
    subscriptions = {
        "inside": {"boolean": "WITHIN(place, 'POLYGON((0 0, 0 10, 10 10, 10 0, 0 0))')"},
        "near 7": {"boolean": "price BETWEEN 6 AND 8"},
        "is new": {"boolean": "tag = 'new'"},
        "urgent": {"boolean": "urgent"},
    }
    frame = spark.sql(
        "SELECT 1 AS id, CAST(NULL AS STRING) AS body, named_struct('place', named_struct('x', 5, 'y', 5),"
        " 'price', named_struct('low', 1.5D, 'high', 6.5D), 'tag', array('old', 'new'), 'urgent', false) AS a"
        " UNION ALL SELECT 2, NULL, named_struct('place', NULL, 'price', NULL, 'tag', NULL, 'urgent', true)"
    )
    matched = match_documents(frame, subscriptions, attributes="a", output="arrays")
    assert arrays_of(matched) == {1: ["inside", "near 7", "is new"], 2: ["urgent"]}


def test_null_is_no_xml_and_empty_is_malformed(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(1, None), (2, b""), (3, b"<a/>")], "id int, body binary")
    matched = match_documents(frame, ["//a", "not(//b)"], output="arrays")
    assert arrays_of(matched) == {1: [], 2: None, 3: [0, 1]}
    (told,) = [row.error for row in matched.collect() if row.id == 2]
    assert told.startswith("empty document")


def test_a_value_that_cannot_be_matched_is_told_like_a_malformed_document(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(1, "<a/>", {"p": float("nan")})], "id int, body string, at map<string,double>")
    (row,) = match_documents(frame, ["//a"], attributes="at").collect()
    assert row.subscription is None
    assert "'p'" in row.error or "p:" in row.error


FORMS = {
    "a_list": ["//a", {"boolean": "p > 1"}],
    "pairs": [(0, "//a"), (1, Filter("boolean", "p > 1"))],
    "a_mapping": {0: "//a", 1: {"kind": "boolean", "expression": "p > 1"}},
    "a_function": lambda: ["//a", {"boolean": "p > 1"}],
}


@pytest.mark.parametrize("subscriptions", FORMS.values(), ids=FORMS)
def test_subscriptions_have_many_forms(subscriptions: Any) -> None:
    compiled = compile_subscriptions(subscriptions)
    assert compiled.parts[0].ids.to_pylist() == [0, 1]
    documents = [Given("<a/>", {"p": 3}), Given("<b/>", {"p": 1})]
    assert [found.tolist() for found in compiled.parts[0].filters.match_many(documents)] == [[1, 2], []]


def test_subscriptions_may_be_a_frame_a_file_or_a_saved_index(spark: SparkSession, tmp_path: Path) -> None:
    listed = tmp_path / "subscriptions.jsonl"
    listed.write_text('{"id": "x", "xpath": "//p:a", "namespaces": {"p": "urn:p"}}\n{"id": "y", "boolean": "p > 1"}\n')
    frame = spark.createDataFrame(
        [("x", "xpath", "//p:a", {"p": "urn:p"}), ("y", "boolean", "p > 1", None)],
        "id string, kind string, expression string, namespaces map<string,string>",
    )
    compile_subscriptions(frame).save(tmp_path / "saved.sieve")
    documents = [Given("<a xmlns='urn:p'/>", {"p": 3}), Given("<a/>")]
    for form in (str(listed), listed, frame, tmp_path / "saved.sieve"):
        part = compile_subscriptions(form).parts[0]
        assert part.ids.to_pylist() == ["x", "y"]
        assert [found.tolist() for found in part.filters.match_many(documents)] == [[1, 2], []]


def test_bad_subscriptions_are_named_or_left_out(tmp_path: Path) -> None:
    given = {"good": "//a", "bad": "//[", "worse": {"boolean": "p >"}, "atom": {"boolean": "XPATH '//['"}, "none": 7}
    with pytest.raises(BadSubscriptionsError, match=r"4 of the subscriptions .*\n.*'none': expected") as told:
        compile_subscriptions(given)
    assert [one.id for one in told.value.refused] == ["none", "bad", "worse", "atom"]
    assert "at column 3" in str(told.value)
    skipped = compile_subscriptions(given, on_bad="skip", shards=2)
    assert [part.ids.to_pylist() for part in skipped.parts] == [["good"], []]
    assert {one.id for one in skipped.refused} == {"none", "bad", "worse", "atom"}
    file = tmp_path / "subscriptions.jsonl"
    file.write_text('{"id": "x", "xpath": "//a"}\nnot json\n{"id": "x", "xpath": "//b"}\n')
    with pytest.raises(BadSubscriptionsError) as told:
        compile_subscriptions(file)
    assert [one.id for one in told.value.refused] == ["x", 2]


WRONG = {
    "no_such_column": ({"body": "xml"}, ColumnError, "body: there is no column 'xml'; there are id, body, at, d"),
    "a_body_of_numbers": ({"body": "id"}, ColumnError, "'id' is int, expected documents as string or binary"),
    "attributes_of_text": ({"attributes": "body"}, ColumnError, "expected a struct, or a map from string"),
    "attributes_of_decimals": ({"attributes": "d"}, ColumnError, "cast decimals to double"),
    "keeping_what_is_not_there": ({"keep": ["x"]}, ColumnError, "keep: there is no column 'x'"),
    "another_output": ({"output": "row"}, MatchSetupError, "expected 'rows' or 'arrays'"),
    "no_shards": ({"shards": 0}, MatchSetupError, "shards: expected a whole number from 1 on"),
    "no_documents_at_a_time": ({"batch_documents": 0}, MatchSetupError, "batch_documents: expected"),
    "another_way_with_bad_ones": ({"on_bad": "drop"}, MatchSetupError, "expected 'fail' or 'skip'"),
    "a_bad_extractor": ({"extractors": {"p": "//["}}, MatchSetupError, r"extractors\.p: expected .* at column 3"),
    "subscriptions_of_no_form": ({"subscriptions": 7}, MatchSetupError, "expected a list, a mapping, a DataFrame"),
    "a_file_that_is_not_there": ({"subscriptions": "/none.txt"}, MatchSetupError, "/none.txt cannot be read"),
    "some_without_an_id": ({"subscriptions": [{"id": "a", "xpath": "//a"}, "//b"]}, MatchSetupError, "1 have no id"),
}


@pytest.mark.parametrize("given, error, told", WRONG.values(), ids=WRONG)
def test_wrong_input_is_told_in_the_driver_before_any_task(
    spark: SparkSession, given: dict[str, Any], error: type[Exception], told: str
) -> None:
    frame = spark.createDataFrame([], "id int, body string, at map<string,double>, d map<string,decimal(9,2)>")
    given = {"subscriptions": ["//a"], **given}
    with pytest.raises(error, match=told):
        match_documents(frame, **given)


def test_a_column_may_not_have_the_name_of_an_answer(spark: SparkSession) -> None:
    frame = spark.createDataFrame([], "body string, error string")
    with pytest.raises(MatchSetupError, match="'error' is the name of a column of the result"):
        match_documents(frame, ["//a"])
    assert match_documents(frame, ["//a"], keep=["body"]).columns == ["body", "subscription", "error"]


def test_a_frame_of_subscriptions_without_expressions_is_told(spark: SparkSession) -> None:
    with pytest.raises(ColumnError, match="there is no column 'expression'"):
        compile_subscriptions(spark.createDataFrame([], "id string, xpath string"))


# Versions


def test_a_worker_loads_a_version_once_for_many_tasks(spark: SparkSession) -> None:
    subscriptions = ["//a", "//only-here"]

    def counted(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import os

        before = loads()
        for _ in batches:
            pass
        yield pa.RecordBatch.from_arrays([pa.array([os.getpid()]), pa.array([before])], ["pid", "loads"])

    def loads_of_workers() -> dict[int, int]:
        asked = spark.range(0, 8, 1, 8).mapInArrow(counted, "pid long, loads long").collect()
        return {row.pid: max(one.loads for one in asked if one.pid == row.pid) for row in asked}

    frame = spark.createDataFrame([("<a/>",)] * 40, "body string").repartition(8)
    before = loads_of_workers()
    for _ in range(3):
        assert match_documents(frame, subscriptions).count() == 40
    after = loads_of_workers()
    grown = {pid: n - before.get(pid, 0) for pid, n in after.items()}
    assert any(grown.values())
    assert max(grown.values()) == 1
    assert loads() == 0, "the driver itself maps nothing"


class Micro:
    """A streaming query over a folder, one file a micro-batch, and what it has written."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self.frame = spark.readStream.schema("body string, n int").json(str(folder))

    def put(self, number: int) -> None:
        lines = [json.dumps({"body": body, "n": number}) for body in ("<a/>", "<b/>", "<c>")]
        hidden = self.folder / f".{number}"
        hidden.write_text("\n".join(lines))
        hidden.rename(self.folder / f"{number}.json")


def test_subscriptions_may_change_between_micro_batches(spark: SparkSession, tmp_path: Path) -> None:
    listed, micro = tmp_path / "subscriptions.jsonl", Micro(spark, tmp_path / "in")
    written: dict[int, set[tuple[str, str | None]]] = {}

    def write(matched: DataFrame, batch_id: int) -> None:
        rows = matched.withColumn("bad", f.col("error").isNotNull()).collect()
        written[rows[0].n] = {(row.body, "bad" if row.bad else row.subscription) for row in rows}

    matching = MatchStream(listed, write, on_refresh_error="keep")
    listed.write_text('{"id": "x", "xpath": "//a"}\n')
    query = micro.frame.writeStream.foreachBatch(matching).option("checkpointLocation", str(tmp_path / "c")).start()
    try:
        for number, lines in enumerate(
            ['{"id": "x", "xpath": "//a"}\n', '{"id": "x", "xpath": "//b"}\n{"id": "y", "xpath": "/*"}\n', "oops\n"]
        ):
            listed.write_text(lines)
            micro.put(number)
            query.processAllAvailable()
    finally:
        query.stop()
    first, second = {("<a/>", "x"), ("<c>", "bad")}, {("<b/>", "x"), ("<a/>", "y"), ("<b/>", "y"), ("<c>", "bad")}
    assert written == {0: first, 1: second, 2: second}
    assert matching.version == 2


def test_a_source_is_compiled_again_only_when_it_is_new() -> None:
    given: list[Any] = [["//a"], ["//a"], ["//b"], [{"id": "x", "xpath": "//b"}]]
    matching = MatchStream(lambda: given.pop(0), lambda matched, batch_id: None)
    assert matching.current() is matching.current()
    assert matching.current().parts[0].ids.to_pylist() == [0]
    assert matching.version == 2
    with pytest.raises(MatchSetupError, match="ids were bigint and are string now"):
        matching.current()


def test_a_stream_may_be_matched_as_it_is(spark: SparkSession, tmp_path: Path) -> None:
    micro = Micro(spark, tmp_path / "in")
    micro.put(0)
    matched = match_documents(micro.frame, ["//a", "/*"], shards=2, keep=["n"])
    query = matched.writeStream.format("memory").queryName("answers").outputMode("append").start()
    try:
        query.processAllAvailable()
    finally:
        query.stop()
    found = spark.table("answers").collect()
    assert sorted(row.subscription for row in found if row.error is None) == [0, 1, 1]
    assert sum(row.error is not None for row in found) == 1
    with pytest.raises(MatchSetupError, match="cannot be put together"):
        match_documents(micro.frame, ["//a", "/*"], shards=2, output="arrays")
