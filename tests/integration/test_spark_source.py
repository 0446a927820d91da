"""Notifications read by a real Spark from a real server: as a batch and as a stream, through kills and restarts."""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from pathsieve import Client, Document
from server.server_process import ServerProcess
from tests.faces import run
from tests.integration.clusters import clusters, new_folder
from tests.spark import spark_environment

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.timeout(400)]

Row = tuple[str, int, str]
PACKAGES = Path(__file__).resolve().parents[2]


@contextlib.contextmanager
def serving(folder: Path, **settings: str) -> Iterator[ServerProcess]:
    server = ServerProcess(folder, **settings)
    run(server.start())
    try:
        yield server
    finally:
        if server.is_running:
            run(server.kill())


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with serving(tmp_path_factory.mktemp("server")) as server:
        yield server


@pytest.fixture
def client(server: ServerProcess) -> Iterator[Client]:
    with Client(server.address, timeout=60, patience=60) as client:
        yield client


def publish(client: Client, topic: str, first: int, last: int) -> None:
    """Documents of a topic, which every test has of its own; even ones say so."""
    documents = (
        Document(f"<{topic} n='{n}'/>", id=f"{topic}-{n}", attributes={"even": n % 2 == 0}, headers={"n": str(n)})
        for n in range(first, last)
    )
    assert not [result.error for result in client.publish_many(documents) if result.error]


def subscribe(client: Client, topic: str) -> tuple[str, str]:
    """One for all documents of a topic, one for every other."""
    client.subscribe(id=topic, xpath=f"/{topic}")
    client.subscribe(id=f"{topic}-even", boolean=f"even = TRUE AND XPATH '/{topic}'")
    return topic, f"{topic}-even"


def reading(spark: SparkSession, address: str, subscription: str, **options: Any) -> DataFrame:
    given = {"endpoint": address, "subscription": subscription, "patience": "60s", **options}
    return spark.read.format("pathsieve").options(**given).load()


def rows(frame: DataFrame) -> list[Row]:
    return [tuple(row) for row in frame.select("subscription", "sequence", "id").collect()]  # type: ignore[misc]


def told(client: Client, name: str, after: int = 0, through: int | None = None) -> list[Row]:
    """What the client reads."""
    return [
        (subscription.removeprefix("subscriptions/"), sequence, notification.document.id)
        for notification in client.read(name, after, through)
        for subscription, sequence in notification.matches
    ]


class Stream:
    """Queries of one checkpoint, one after the other, each until there is nothing more to read."""

    def __init__(self, spark: SparkSession, address: str, folder: Path, subscription: str, **options: Any) -> None:
        self._spark = spark
        self._folder = folder
        self.options = {"endpoint": address, "subscription": subscription, "patience": "60s", **options}
        self.batches: dict[int, list[Row]] = {}
        self.ends: list[dict[str, int]] = []

    @property
    def rows(self) -> list[Row]:
        return [row for batch in sorted(self.batches) for row in self.batches[batch]]

    def start(self, available_now: bool = True, **options: Any) -> Any:
        frame = self._spark.readStream.format("pathsieve").options(**(self.options | options)).load()
        writing = frame.writeStream.foreachBatch(self._keep).option("checkpointLocation", str(self._folder))
        return (writing.trigger(availableNow=True) if available_now else writing).start()

    def run(self, **options: Any) -> "Stream":
        query = self.start(**options)
        query.awaitTermination()
        self.ends += [json.loads(progress.sources[0].endOffset) for progress in query.recentProgress]
        return self

    def _keep(self, frame: DataFrame, batch: int) -> None:
        self.batches[batch] = rows(frame)


def until(is_so: Callable[[], bool]) -> None:
    while not is_so():
        time.sleep(0.05)


def test_a_batch_is_what_the_client_reads(spark: SparkSession, server: ServerProcess, client: Client) -> None:
    """Of several subscriptions, and of all of the tenant; in one part and in many."""
    names = subscribe(client, "plain")
    before = client.tenant_range().head
    publish(client, "plain", 0, 200)
    expected = [row for name in names for row in told(client, name)]
    assert len(expected) == 300
    frame = reading(spark, server.address, ",".join(names), docsPerPartition=70)
    assert rows(frame) == expected
    assert frame.rdd.getNumPartitions() == 5

    start = json.dumps({"-": before + 1})
    frame = reading(spark, server.address, "-", startingPosition=start, docsPerPartition=30)
    assert rows(frame) == told(client, "-", before)

    [first, *_] = reading(spark, server.address, names[0]).orderBy("sequence").collect()
    document = next(client.read(names[0])).document
    assert (first.position, bytes(first.body), first.source) == (before + 1, document.xml, "")
    assert (first.headers, first.attributes) == ({"n": "0"}, {"even": "true"})
    assert document.publish_time is not None
    [seconds] = reading(spark, server.address, names[0]).selectExpr("unix_micros(min(publish_time))").first()  # type: ignore[misc]
    assert seconds == round(document.publish_time.timestamp() * 1e6)
    assert client.get(names[0]).progress.backlog == 200


def test_a_batch_begins_and_ends_where_one_says(spark: SparkSession, server: ServerProcess, client: Client) -> None:
    names = subscribe(client, "part")
    publish(client, "part", 0, 20)
    both = ",".join(names)
    start, end = json.dumps({"part": 17}), json.dumps({"part": 19, "part-even": 3})
    frame = reading(spark, server.address, both, startingPosition=start, endingPosition=end)
    assert rows(frame) == [
        ("part", 17, "part-16"),
        ("part", 18, "part-17"),
        ("part-even", 1, "part-0"),
        ("part-even", 2, "part-2"),
    ]
    assert rows(reading(spark, server.address, both, startingPosition="latest")) == []


WRONG = {
    "no_such_subscription": ({"subscription": "nobody"}, "there is no subscription nobody"),
    "nobody_answers": ({"endpoint": "127.0.0.1:1", "patience": "1s"}, "no server at 127.0.0.1:1"),
    "no_position": ({"startingPosition": "oldest"}, "expected earliest, latest, or what to read first"),
    "no_such_option": ({"subscriptions": "a"}, "unknown option subscriptions; did you mean subscription"),
}


@pytest.mark.parametrize("options, words", WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_said_when_it_is_loaded(
    spark: SparkSession, server: ServerProcess, options: dict[str, str], words: str
) -> None:
    with pytest.raises(AnalysisException, match=words):
        spark.read.format("pathsieve").options(**{"endpoint": server.address, "subscription": "-", **options}).load()


def test_a_schema_of_ones_own_is_some_of_the_columns(
    spark: SparkSession, server: ServerProcess, client: Client
) -> None:
    subscribe(client, "own")
    publish(client, "own", 0, 2)
    source = spark.read.format("pathsieve").options(endpoint=server.address, subscription="own")
    assert [tuple(row) for row in source.schema("id string, sequence bigint").load().collect()] == [
        ("own-0", 1),
        ("own-1", 2),
    ]
    with pytest.raises(AnalysisException, match="column body is binary, not string"):
        source.schema("body string").load().collect()


def test_a_stream_goes_on_where_its_checkpoint_ends(
    spark: SparkSession, server: ServerProcess, client: Client, tmp_path: Path
) -> None:
    """Batches are as small as one says, everything comes once, and what is committed is acknowledged."""
    names = subscribe(client, "flow")
    publish(client, "flow", 0, 40)
    stream = Stream(spark, server.address, tmp_path, ",".join(names), maxDocsPerTrigger=25, acknowledge=True).run()
    assert [len(batch) for batch in stream.batches.values()] == [25, 25, 10]
    assert stream.ends[-1] == {"flow": 41, "flow-even": 21}
    assert [client.get(name).progress.floor for name in names] == [40, 20]

    publish(client, "flow", 40, 50)
    stream.run(acknowledge=False)
    assert len(stream.batches) == 4
    assert sorted(stream.rows) == sorted(row for name in names for row in told(client, name))
    assert [client.get(name).progress.backlog for name in names] == [10, 5]

    with pytest.raises(StreamingQueryException, match="the checkpoint is of flow, flow-even, and the option"):
        stream.run(subscription="flow")


def test_a_running_stream_gets_what_comes_and_no_empty_batches(
    spark: SparkSession, server: ServerProcess, client: Client, tmp_path: Path
) -> None:
    """All of the tenant, from now on; the server is killed and comes back meanwhile."""
    names = subscribe(client, "live")
    publish(client, "live", 0, 5)
    position = client.tenant_range().head
    stream = Stream(spark, server.address, tmp_path, "-", startingPosition="latest", acknowledge=True)
    query = stream.start(available_now=False)
    try:
        query.processAllAvailable()
        publish(client, "live", 5, 12)
        until(lambda: len(stream.rows) == 7 + 3)
        run(server.kill())
        run(server.start(wait=False))
        publish(client, "live", 12, 20)
        until(lambda: len(stream.rows) == 15 + 7)
        until(lambda: client.get(names[1]).progress.floor == 10)
    finally:
        query.stop()
    assert stream.rows == told(client, "-", position)
    assert all(stream.batches.values())
    assert client.get(names[0]).progress.backlog == 0


def test_a_read_outlives_its_server(spark: SparkSession, server: ServerProcess, client: Client) -> None:
    """It is killed when the first rows are here, and the other parts are read when it is back."""
    name, _ = subscribe(client, "outlive")
    publish(client, "outlive", 0, 60)
    frame = reading(spark, server.address, name, docsPerPartition=20).select("sequence")
    found = []
    for row in frame.toLocalIterator():
        found.append(row.sequence)
        if len(found) == 1:
            run(server.kill())
            run(server.start(wait=False))
    assert found == list(range(1, 61))


DRIVER = """
import json, os, sys, time
sys.path.insert(0, {packages!r})
from tests.spark import running_spark

def keep(frame, batch):
    found = [tuple(row) for row in frame.select("subscription", "sequence", "id").collect()]
    with open(f"{folder}/batch-{{batch}}.tmp", "w") as file:
        json.dump(found, file)
    os.rename(file.name, f"{folder}/batch-{{batch}}")
    while batch == 1:
        time.sleep(1)  # until it is killed: the batch is in the checkpoint, and not committed

with running_spark() as spark:
    frame = spark.readStream.format("pathsieve").options(**{options!r}).load()
    frame.writeStream.foreachBatch(keep).option("checkpointLocation", {checkpoint!r}).start().awaitTermination()
"""


def test_a_batch_whose_driver_was_killed_has_the_same_rows_again(
    spark: SparkSession, server: ServerProcess, client: Client, tmp_path: Path
) -> None:
    """Though documents came meanwhile, others have acknowledged some, and a subscription is gone."""
    names = subscribe(client, "kill")
    position = client.tenant_range().head
    publish(client, "kill", 0, 30)
    options = {"startingPosition": json.dumps({"-": position + 1}), "maxDocsPerTrigger": "10"}
    stream = Stream(spark, server.address, tmp_path / "checkpoint", "-", **options)
    program = DRIVER.format(
        packages=str(PACKAGES), folder=tmp_path, options=stream.options, checkpoint=str(tmp_path / "checkpoint")
    )
    environment = os.environ | spark_environment()
    with (tmp_path / "driver.log").open("w") as log:
        driver = subprocess.Popen(
            [sys.executable, "-c", program], env=environment, stdout=log, stderr=log, start_new_session=True
        )
    try:
        until(lambda: (tmp_path / "batch-1").exists() or driver.poll() is not None)
        assert driver.poll() is None, (tmp_path / "driver.log").read_text()
    finally:
        os.killpg(driver.pid, signal.SIGKILL)
        driver.wait()
    before = [tuple(row) for row in json.loads((tmp_path / "batch-1").read_text())]
    assert not (tmp_path / "checkpoint" / "commits" / "1").exists()

    publish(client, "kill", 30, 40)
    expected = told(client, "-", position)
    client.acknowledge_through({names[0]: 15})
    client.delete(names[1])
    stream.run()
    assert stream.batches[1] == before
    first = [tuple(row) for row in json.loads((tmp_path / "batch-0").read_text())]
    assert first + stream.rows == expected


def test_what_retention_has_dropped_is_an_error_or_passed_over(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "server").mkdir()
    with serving(tmp_path / "server") as server, Client(server.address, timeout=60, patience=60) as client:
        name, _ = subscribe(client, "lost")
        publish(client, "lost", 0, 4)
        named = Stream(spark, server.address, tmp_path / "named", name).run()
        everything = Stream(spark, server.address, tmp_path / "all", "-").run()
        publish(client, "lost", 4, 10)
        run(server.stop())
        keeps = {"RETENTION__DOCUMENTS": "0.001", "RETENTION__INTERVAL": "1"}
        server.settings |= keeps
        run(server.start())
        until(lambda: client.ranges([name])[0].dropped == 10)
        run(server.stop())
        for setting in keeps:
            del server.settings[setting]
        run(server.start())
        publish(client, "lost", 10, 13)
        with pytest.raises(StreamingQueryException, match="lost up to 10 are past retention, and 5 comes next"):
            named.run()
        with pytest.raises(StreamingQueryException, match="the log up to 10 is past retention, and 5 comes next"):
            everything.run()
        first = [("lost", n + 1, f"lost-{n}") for n in range(4)]
        rest = [("lost", n + 1, f"lost-{n}") for n in range(10, 13)]
        assert named.run(failOnDataLoss=False).rows == first + rest
        assert [row for row in everything.run(failOnDataLoss=False).rows if row[0] == name] == first + rest
        with pytest.raises(AnalysisException, match="lost up to 10 are past retention, and 3 comes next"):
            reading(spark, server.address, name, startingPosition='{"lost": 3}').collect()
        assert rows(reading(spark, server.address, name)) == rest


@pytest.mark.usefixtures("cluster_parts")
async def test_replicas_are_read_in_turn_and_each_takes_its_acknowledgements(
    spark: SparkSession, tmp_path: Path
) -> None:
    with new_folder() as folder:
        async with clusters(folder) as cluster:
            addresses = ",".join(replica.address for replica in cluster.replicas)
            await asyncio.to_thread(_read_from_replicas, spark, addresses, tmp_path)


def _read_from_replicas(spark: SparkSession, addresses: str, folder: Path) -> None:
    with Client(addresses, timeout=60, patience=60) as client:
        names = [name for n in range(4) for name in subscribe(client, f"t{n}")]
        for n in range(4):
            publish(client, f"t{n}", 0, 20)
        expected = sorted(row for name in names for row in told(client, name))
        options = {"maxDocsPerTrigger": 50, "docsPerPartition": 20, "acknowledge": True}
        for kind, subscription in (("all", "-"), ("named", ",".join(names))):
            stream = Stream(spark, addresses, folder / kind, subscription, **options).run()
            assert sorted(stream.rows) == expected
            if kind == "all":
                assert [client.get(name).progress.backlog for name in names] == [0] * len(names)
