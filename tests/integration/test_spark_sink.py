"""The sink in a real Spark, with a real server: what arrives, what is refused and when, and what a kill does to it.

Documents have no ids here, and nothing recognises their repetition: what comes twice has been published twice.
"""

import asyncio
import os
import signal
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from pathsieve import AsyncClient, Interval, Point
from pyspark_pathsieve import register
from pyspark_pathsieve.spark_internals import BATCH_ID, QUERY_ID
from server.dev_cluster import missing
from server.server_process import ServerProcess
from tests.certificates import Authority
from tests.integration.clusters import clusters, new_folder
from tests.integration.spark_scene import (
    SMALL_BATCHES,
    N,
    connected_to,
    documents,
    driver,
    gated,
    received,
    staged,
    until,
)
from tests.relay import Relay
from tests.spark import in_thread, lacking_for_spark

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(300)]

TOKENS = """
[[tokens]]
token = "writer-secret"
tenant = "acme"
roles = ["publish"]
[[tokens]]
token = "reader-secret"
tenant = "acme"
roles = ["subscribe"]
"""


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[ServerProcess]:
    async with ServerProcess(tmp_path) as running:
        await subscribe(running.address)
        yield running


@pytest.fixture
def small_batches(spark: SparkSession) -> Iterator[None]:
    """Spark hands over few rows at a time, so that a task can be met in the middle."""
    for name, value in SMALL_BATCHES.items():
        spark.conf.set(name, value)
    yield
    for name in SMALL_BATCHES:
        spark.conf.unset(name)


async def subscribe(address: str, **options: Any) -> None:
    async with AsyncClient(address, timeout=60, **options) as client:
        await client.subscribe(id="all", xpath="//a")


async def write(frame: DataFrame, endpoint: str, **options: str) -> None:
    writer = frame.write.format("pathsieve").mode("append").options(endpoint=endpoint, **options)
    await in_thread(frame.sparkSession, writer.save)


ONCE = dict.fromkeys(range(N), 1)


# -- what arrives ----------------------------------------------------------------------------------


@pytest.mark.parametrize("guarantee", ["exactly-once", "at-least-once"])
async def test_every_row_arrives(spark: SparkSession, server: ServerProcess, guarantee: str) -> None:
    await write(documents(spark), server.address, deliveryGuarantee=guarantee)
    assert await received(server.address) == ONCE


async def test_a_document_has_all_its_parts(spark: SparkSession, server: ServerProcess) -> None:
    frame = spark.sql(
        """SELECT unhex('3C612F3E') AS xml, 7L AS number, 'desk' AS desk, map('trace', 'abc', 'none', NULL) AS headers,
        named_struct('price', 1.5D, 'n', 3, 'is_new', true, 'name', 'IBM', 'nothing', CAST(NULL AS STRING),
            'tags', array('a', 'b'), 'place', named_struct('x', 13.4D, 'y', 52.5D),
            'size', named_struct('low', 1, 'high', 5)) AS attributes"""
    )
    columns = {"bodyColumn": "XML", "idColumn": "number", "sourceColumn": "desk", "headersColumn": "headers"}
    async with (
        AsyncClient(server.address, timeout=60) as client,
        client.attach("all", auto_ack=True) as messages,
    ):
        await write(frame, server.address, attributesColumn="attributes", **columns)
        document = (await anext(messages)).document
    assert (document.xml, document.id, document.source, document.headers) == (b"<a/>", "7", "desk", {"trace": "abc"})
    assert document.attributes == {
        "price": 1.5,
        "n": 3,
        "is_new": True,
        "name": "IBM",
        "tags": ["a", "b"],
        "place": Point(13.4, 52.5),
        "size": Interval(1, 5),
    }


async def test_the_same_batch_of_a_transaction_is_published_once(spark: SparkSession, server: ServerProcess) -> None:
    for batch in ("1", "1", "2"):
        await write(documents(spark), server.address, transactionId="nightly", batchId=batch)
    assert await received(server.address) == dict.fromkeys(range(N), 2)
    assert staged(server) == 0


async def test_foreach_batch_does_the_same_as_a_stream(
    spark: SparkSession, server: ServerProcess, tmp_path: Path
) -> None:
    def publish(frame: DataFrame, batch_id: int) -> None:
        for _ in range(2):  # as after a restart
            writer = frame.write.format("pathsieve").mode("append").options(endpoint=server.address)
            writer.options(transactionId="orders", batchId=str(batch_id), bodyColumn="value").save()

    lines(tmp_path, 3)
    stream = spark.readStream.option("maxFilesPerTrigger", 2).text(str(tmp_path / "lines"))
    query = stream.writeStream.foreachBatch(publish).trigger(availableNow=True)
    started = query.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    await asyncio.to_thread(started.awaitTermination)
    assert await received(server.address) == dict.fromkeys(range(300), 1)


async def test_tokens_and_certificates(spark: SparkSession, tmp_path: Path) -> None:
    authority, tokens = Authority(tmp_path), tmp_path / "tokens.toml"
    tokens.write_text(TOKENS)
    pair, own = authority.pair("server"), authority.pair("client")
    settings = {
        "SECURITY__CERTIFICATE": str(pair.certificate),
        "SECURITY__KEY": str(pair.key),
        "SECURITY__CLIENT_CA": str(authority.certificate),
        "SECURITY__TOKENS": str(tokens),
    }
    tls = authority.certificate, own.certificate, own.key
    files = dict(zip(("tlsCa", "tlsCert", "tlsKey"), map(str, tls), strict=True))
    async with ServerProcess(tmp_path, **settings) as server:
        await subscribe(server.address, token="reader-secret", tls=tls)
        await write(documents(spark), server.address, token="writer-secret", **files)
        async with AsyncClient(server.address, token="reader-secret", tls=tls) as client:
            progress = (await client.get("all")).progress
            assert progress is not None
            assert progress.head == N
        for token, words in {"nobody": "does not know who asks", "reader-secret": "refuses: .*publish"}.items():
            with pytest.raises(Exception, match=f"CannotConnect: .*{words}"):
                await write(documents(spark), server.address, token=token, **files)


# -- what is refused, in the driver ----------------------------------------------------------------

REFUSED = {
    "a_missing_column": ({"bodyColumn": "xml"}, "ColumnError: no column xml .*there are body"),
    "a_wrong_type": ({"idColumn": "when"}, "ColumnError: column when .idColumn.: expected string .*found timestamp"),
    "an_unknown_option": ({"batchDoc": "8"}, "OptionError: unknown option batchdoc; did you mean batchDocs"),
    "a_bad_value": ({"batchDocs": "0"}, "OptionError: option batchDocs: expected a whole number, 1 or more, found '0'"),
    "nobody_there": ({"endpoint": "127.0.0.1:1", "patience": "1s"}, "CannotConnect: no server at 127.0.0.1:1"),
}


@pytest.mark.parametrize("options, words", REFUSED.values(), ids=REFUSED)
async def test_what_cannot_go_well_is_told_before_any_task(
    spark: SparkSession, server: ServerProcess, options: dict[str, str], words: str
) -> None:
    frame = spark.sql("SELECT '<a/>' AS body, current_timestamp() AS when")
    with pytest.raises(Exception, match=r"(?s)Failed to initialize Python data source writer.*" + words):
        await write(frame, **{"endpoint": server.address, **options})


async def test_the_configuration_of_the_session_supplies_options(spark: SparkSession, server: ServerProcess) -> None:
    spark.conf.set("spark.pathsieve.endpoint", server.address)
    register(spark)
    try:
        await in_thread(spark, documents(spark).write.format("pathsieve").mode("append").save)
    finally:
        spark.conf.unset("spark.pathsieve.endpoint")
        register(spark)
    assert await received(server.address) == ONCE


# -- documents that are none -----------------------------------------------------------------------


async def test_a_bad_document_fails_the_job_and_leaves_nothing(spark: SparkSession, server: ServerProcess) -> None:
    with pytest.raises(Exception, match=r"MalformedDocument: document '17' in partition 0, row 17: .*line 1, column"):
        await write(with_one_bad(spark), server.address, idColumn="id")
    assert await received(server.address) == {}
    assert staged(server) == 0


@pytest.mark.parametrize("guarantee", ["exactly-once", "at-least-once"])
async def test_a_bad_document_is_dropped(spark: SparkSession, server: ServerProcess, guarantee: str) -> None:
    await write(with_one_bad(spark), server.address, onMalformed="drop", deliveryGuarantee=guarantee)
    assert await received(server.address) == dict.fromkeys(set(range(100)) - {17}, 1)


async def test_a_dead_letter_can_be_mended_and_written_again(
    spark: SparkSession, server: ServerProcess, tmp_path: Path
) -> None:
    options = {"onMalformed": "deadLetter", "deadLetterPath": str(tmp_path / "letters"), "transactionId": "t"}
    for _ in range(2):  # the second time it replaces what the first has left
        await write(with_one_bad(spark), server.address, idColumn="id", **options)
    (letter,) = spark.read.parquet(str(tmp_path / "letters")).collect()
    assert (letter["id"], letter["_pathsieve_row"], letter["_pathsieve_query"]) == (17, 17, "t")
    assert "line 1" in letter["_pathsieve_reason"]
    mended = spark.read.parquet(str(tmp_path / "letters")).selectExpr("concat(body, '/>') AS body", "id")
    await write(mended, server.address, idColumn="id")
    assert await received(server.address) == dict.fromkeys(range(100), 1)


def with_one_bad(spark: SparkSession) -> DataFrame:
    text = "concat('<a n=\\'', id, '\\'', if(id = 17, '', '/>')) AS body"
    return spark.range(0, 100, 1, 2).selectExpr("id", text)


# -- faults ----------------------------------------------------------------------------------------


async def in_mid_write(spark: SparkSession, server: ServerProcess, gate: Path, guarantee: str) -> "asyncio.Task[None]":
    """A write that goes on when the file `gate` is there; two tasks have connected, and staged something if they do."""
    writing = asyncio.create_task(
        write(gated(documents(spark), gate), server.address, batchDocs="20", deliveryGuarantee=guarantee)
    )
    await until(lambda: writing.done() or len(connected_to(server.port)) == 2)
    if guarantee == "exactly-once":
        await until(lambda: writing.done() or staged(server) > 0)
    assert not writing.done()
    return writing


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("guarantee", ["exactly-once", "at-least-once"])
async def test_python_workers_killed_in_mid_write(
    spark: SparkSession, server: ServerProcess, tmp_path: Path, guarantee: str
) -> None:
    gate = tmp_path / "gate"
    writing = await in_mid_write(spark, server, gate, guarantee)
    for worker in connected_to(server.port):
        os.kill(worker, signal.SIGKILL)
    gate.touch()
    await writing
    assert await received(server.address) == ONCE
    assert staged(server) == 0


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("guarantee", ["exactly-once", "at-least-once"])
async def test_a_server_killed_in_the_middle_of_a_batch(
    spark: SparkSession, server: ServerProcess, tmp_path: Path, guarantee: str
) -> None:
    gate = tmp_path / "gate"
    writing = await in_mid_write(spark, server, gate, guarantee)
    await server.kill()
    gate.touch()
    await server.start()
    await writing
    assert await received(server.address) == ONCE
    assert staged(server) == 0


async def test_a_server_that_does_not_answer_in_time_is_asked_again(spark: SparkSession, server: ServerProcess) -> None:
    """The first hand-over is held until the sink gives it up; it comes again in halves, and nothing comes twice."""
    async with Relay(server.address) as relay:
        given_up = asyncio.Event()

        async def hold(number: int) -> None:
            if number == 1:
                try:
                    await asyncio.Event().wait()
                finally:
                    given_up.set()

        relay.before["StageDocuments"] = hold
        await write(documents(spark, partitions=1), relay.address, timeout="1s")
        assert given_up.is_set()
        assert relay.calls["StageDocuments"] == 3
    assert await received(server.address) == ONCE


def lines(folder: Path, n_files: int) -> None:
    """Files of a hundred documents, a line each, one after the other."""
    (folder / "lines").mkdir()
    for file in range(n_files):
        numbers = range(100 * file, 100 * file + 100)
        path = folder / "lines" / f"{file}.txt"
        path.write_text("".join(f"<a n='{n}'/>\n" for n in numbers))
        os.utime(path, (file, file))  # a stream takes the oldest first


async def test_a_driver_killed_at_its_worst_moments(server: ServerProcess, tmp_path: Path) -> None:
    """Killed before a commit arrives, when it is done but not answered, and in the middle of staging; then let go."""
    if lacking := lacking_for_spark():
        pytest.skip(f"no Spark on this machine: {'; '.join(lacking)}")
    lines(tmp_path, 6)
    async with Relay(server.address) as relay:
        await killed(relay, tmp_path, relay.before, "CommitBatch")
        assert await received(server.address) == {}
        await killed(relay, tmp_path, relay.after, "CommitBatch")
        assert await received(server.address) == dict.fromkeys(range(200), 1)
        n_staged = relay.calls["StageDocuments"]
        await killed(relay, tmp_path, relay.after, "StageDocuments", lambda number: number > n_staged + 12)
        async with stream_to(relay.address, tmp_path) as process:
            assert await process.wait() == 0, (tmp_path / "driver.log").read_text()[-5000:]
    async with AsyncClient(server.address, timeout=60) as client:
        await client.seek("all", sequence=1)
    assert await received(server.address) == dict.fromkeys(range(600), 1)
    assert staged(server) == 0


async def killed(relay: Relay, folder: Path, holds: dict[str, Any], call: str, when: Any = lambda number: True) -> None:
    """Start a driver, and kill it when it has made a call, which is held just before or after the server does it."""
    reached = asyncio.Event()

    async def hold(number: int) -> None:
        if when(number):
            reached.set()
            await asyncio.Event().wait()

    holds[call] = hold
    async with stream_to(relay.address, folder) as process:
        ended = asyncio.create_task(process.wait())
        reaching = asyncio.create_task(reached.wait())
        await asyncio.wait([ended, reaching], return_when=asyncio.FIRST_COMPLETED)
        assert not ended.done(), (folder / "driver.log").read_text()[-5000:]
    reaching.cancel()
    del holds[call]


def stream_to(endpoint: str, folder: Path) -> AbstractAsyncContextManager[Process]:
    """A driver that streams the files into a server."""
    module, arguments = (
        "tests.integration.stream_to_server",
        (endpoint, str(folder / "lines"), str(folder / "checkpoint")),
    )
    return driver(folder / "driver.log", module, *arguments)


async def test_parts_staged_at_all_replicas_are_committed_at_one(spark: SparkSession) -> None:
    if lacking := missing():
        pytest.skip(f"no cluster on this machine: {'; '.join(lacking)}")
    with new_folder() as folder:
        async with clusters(folder) as cluster:
            await subscribe(cluster.addresses[0])
            await write(documents(spark), ",".join(cluster.addresses))
            await cluster.replicas[0].kill()
            await write(documents(spark), ",".join(cluster.addresses))
            found = await received(
                cluster.addresses[1], at_least=2 * N
            )  # what another replica took comes a moment later
            assert found == dict.fromkeys(range(N), 2)


# -- Spark's inside --------------------------------------------------------------------------------


async def test_spark_tells_a_task_its_query_and_batch(spark: SparkSession, tmp_path: Path) -> None:
    """Should this fail, Spark has renamed what `pyspark_pathsieve.spark_internals` reads: mend it there."""
    found = tmp_path / "found"

    def look(batches: Iterator[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        found.write_text(f"{context.getLocalProperty(QUERY_ID)} {context.getLocalProperty(BATCH_ID)}")
        yield from batches

    lines(tmp_path, 1)
    frame = spark.readStream.text(str(tmp_path / "lines")).mapInArrow(look, "value string")
    options = {"checkpointLocation": str(tmp_path / "checkpoint")}
    query = frame.writeStream.format("noop").options(**options).trigger(availableNow=True).start()
    await asyncio.to_thread(query.awaitTermination)
    assert found.read_text() == f"{query.id} 0"
