"""What Spark's driver asks of the stream reader, against a scripted server: no JVM."""

import pickle
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql.datasource import InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from pathsieve import Client
from pyspark_pathsieve import stream_reading
from pyspark_pathsieve.errors import CannotConnect, DataLost, OptionError, UnknownSubscription
from pyspark_pathsieve.notification_rows import SCHEMA
from pyspark_pathsieve.options import READ, READ_STREAM, Options
from pyspark_pathsieve.reading import BatchReader, look
from pyspark_pathsieve.stream_reading import StreamReader
from tests.faces import run
from tests.scripted_server import ScriptedServer

ANY = ReadAllAvailable()


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    server = ScriptedServer()
    server.address = run(server.start())
    yield server
    run(server.stop())


@pytest.fixture
def client(server: ScriptedServer) -> Iterator[Client]:
    with Client(server.address) as client:
        client.subscribe(id="a", xpath="//a")
        client.subscribe(id="b", xpath="//b")
        yield client


def publish(client: Client, *xml: str) -> None:
    for one in xml:
        client.publish(one)


@pytest.fixture
def made(server: ScriptedServer) -> Iterator[Any]:
    readers = []

    def make(subscription: str = "a", **options: Any) -> StreamReader:
        given = {"endpoint": server.address, "subscription": subscription, **options}
        readers.append(StreamReader(Options({name: str(value) for name, value in given.items()}, READ_STREAM), SCHEMA))
        return readers[-1]

    yield make
    for reader in readers:
        reader.stop()


def read(reader: Any, parts: list[InputPartition]) -> list[tuple[str, int]]:
    """The rows of some parts, as an executor reads them: with a copy of the reader."""
    copy, parts = pickle.loads(pickle.dumps((reader, parts)))
    rows = [row for part in parts for batch in copy.read(part) for row in batch.to_pylist()]
    return [(row["subscription"], row["sequence"]) for row in rows]


def test_a_query_begins_with_all_there_is_or_with_what_comes(client: Client, made: Any) -> None:
    publish(client, "<a/>", "<a/>", "<b/>")
    assert made("a,b").initialOffset() == {"a": 1, "b": 1}
    assert made("a,b", startingPosition="latest").initialOffset() == {"a": 3, "b": 2}
    assert made("a,b", startingPosition='{"a": 2}').initialOffset() == {"a": 2, "b": 1}
    assert made("-", startingPosition="latest").initialOffset() == {"-": 4}


def test_a_batch_goes_up_to_the_newest_and_is_read_in_parts(client: Client, made: Any) -> None:
    publish(client, *["<a/>"] * 7, "<b/>", "<b/>")
    reader = made("a,b", docsPerPartition=4)
    start, end = {"a": 2, "b": 1}, reader.latestOffset({"a": 2, "b": 1}, ANY)
    assert end == {"a": 8, "b": 3}
    parts = reader.partitions(start, end)
    assert [read(reader, [part]) for part in parts] == [
        [("a", 2), ("a", 3), ("a", 4), ("a", 5)],
        [("a", 6), ("a", 7), ("b", 1), ("b", 2)],
    ]
    assert reader.partitions(end, reader.latestOffset(end, ANY)) == []


def test_a_batch_that_is_run_again_is_the_same(client: Client, made: Any) -> None:
    publish(client, "<a/>", "<a><b/></a>", "<b/>")
    reader = made("-")
    end = reader.latestOffset({"-": 1}, ANY)
    before = read(reader, reader.partitions({"-": 1}, end))
    assert before == [("a", 1), ("a", 2), ("b", 1), ("b", 2)]
    publish(client, "<a/>")
    client.acknowledge_through({"a": 2})
    assert read(made("-"), made("-").partitions({"-": 1}, end)) == before


def test_a_limit_holds_for_what_spark_asks_with_it(client: Client, made: Any) -> None:
    publish(client, *["<a/>"] * 9)
    reader = made("a", maxDocsPerTrigger=4)
    assert reader.getDefaultReadLimit() == ReadMaxRows(4)
    assert reader.latestOffset({"a": 1}, ReadMaxRows(4)) == {"a": 5}
    assert reader.latestOffset({"a": 1}, ANY) == {"a": 10}
    assert made("-").latestOffset({"-": 3}, ReadMaxRows(4)) == {"-": 7}
    assert made("a").getDefaultReadLimit() == ANY


@pytest.mark.parametrize("name", ["a", "-"])
def test_available_now_ends_with_what_there_was(client: Client, made: Any, name: str) -> None:
    publish(client, *["<a/>"] * 5)
    reader = made(name)
    reader.prepareForTriggerAvailableNow()
    offset = reader.initialOffset()
    publish(client, "<a/>")
    ends = []
    while (end := reader.latestOffset(offset, ReadMaxRows(3))) != offset:
        offset = end
        ends.append(end[name])
    assert ends == [4, 6]


@pytest.mark.parametrize("name", ["a", "-"])
def test_what_is_past_retention_fails_or_is_passed_over(
    client: Client, server: ScriptedServer, made: Any, name: str
) -> None:
    publish(client, *["<a/>"] * 6)
    server.dropped = 4
    with pytest.raises(DataLost, match=r"up to 4 (are|is) past retention, and 3 comes next") as caught:
        made(name).latestOffset({name: 3}, ANY)
    assert (caught.value.subscription, caught.value.first, caught.value.dropped) == (name, 3, 4)
    reader = made(name, failOnDataLoss="false")
    end = reader.latestOffset({name: 3}, ANY)
    assert read(reader, reader.partitions({name: 3}, end)) == [("a", 5), ("a", 6)]
    assert made(name).latestOffset({name: 5}, ANY) == {name: 7}


@pytest.mark.parametrize("name", ["a", "-"])
def test_what_is_dropped_before_a_task_gets_there_fails_the_task(
    client: Client, server: ScriptedServer, made: Any, name: str
) -> None:
    publish(client, *["<a/>"] * 6)
    reader = made(name)
    parts = reader.partitions({name: 1}, reader.latestOffset({name: 1}, ANY))
    server.dropped = 1
    with pytest.raises(DataLost, match="past retention"):
        read(reader, parts)


def test_a_subscription_that_was_made_anew_is_lost_data_too(client: Client, made: Any) -> None:
    publish(client, "<a/>", "<a/>")
    with pytest.raises(DataLost, match="a end at 2, before 9 that comes next: deleted and made again"):
        made("a").latestOffset({"a": 9}, ANY)
    reader = made("a", failOnDataLoss="false", acknowledge="true")
    end = reader.latestOffset({"a": 9}, ANY)
    assert read(reader, reader.partitions({"a": 9}, end)) == [("a", 1), ("a", 2)]


def acknowledged(server: ScriptedServer) -> list[dict[str, tuple[int, int]]]:
    """The calls there were: name, after and through."""
    return [
        {mark.subscription.removeprefix("subscriptions/"): (mark.after, mark.through) for mark in request.marks}
        for request in server.said
        if hasattr(request, "marks")
    ]


def test_what_is_committed_is_acknowledged_once(client: Client, server: ScriptedServer, made: Any) -> None:
    publish(client, *["<a/>"] * 6)
    reader = made("a,b", acknowledge="true")
    start = reader.initialOffset()
    end = reader.latestOffset(start, ReadMaxRows(4))
    assert acknowledged(server) == []
    reader.partitions(start, end)
    assert reader.latestOffset(end, ReadMaxRows(1)) == {"a": 6, "b": 1}
    reader.commit(end)
    assert acknowledged(server) == [{"a": (0, 4)}]
    reader.commit({"a": 6, "b": 1})
    assert acknowledged(server)[1:] == [{"a": (0, 5)}]


def test_of_a_tenant_those_are_acknowledged_that_a_batch_had(client: Client, server: ScriptedServer, made: Any) -> None:
    publish(client, *["<a/>"] * 6)
    again = made("-", acknowledge="true")  # as after a crash: this batch was planned, and not committed
    again.partitions({"-": 3}, {"-": 5})
    again.latestOffset({"-": 5}, ANY)
    again.commit({"-": 7})
    assert acknowledged(server) == [{"-": (2, 4)}, {"-": (4, 6)}]


def test_nothing_is_acknowledged_unless_one_says_so(client: Client, server: ScriptedServer, made: Any) -> None:
    publish(client, "<a/>")
    reader = made("a")
    reader.latestOffset({"a": 2}, ANY)
    reader.commit({"a": 2})
    assert acknowledged(server) == []


def test_an_idle_query_moves_past_what_others_write(
    client: Client, server: ScriptedServer, made: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = made("-")
    others = {"-": 9}
    assert reader._past_others({"-": 4}, {"-": 4}, others) == {"-": 4}
    monkeypatch.setattr(stream_reading, "IDLE_SECONDS", -1.0)
    assert reader._past_others({"-": 4}, {"-": 4}, others) == others
    assert reader._past_others({"-": 4}, {"-": 6}, others) == {"-": 6}


def test_a_checkpoint_of_others_is_refused(client: Client, made: Any) -> None:
    with pytest.raises(OptionError, match="the checkpoint is of a, c, and the option subscription names a, b"):
        made("a,b").latestOffset({"a": 1, "c": 1}, ANY)


WRONG = {
    "nobody": ({"subscription": "nobody"}, UnknownSubscription, "there is no subscription nobody at"),
    "a_bad_token": ({"token": "wrong"}, CannotConnect, "check the option token"),
    "unreachable": ({"endpoint": "127.0.0.1:1", "patience": "0"}, CannotConnect, "no server at 127.0.0.1:1"),
    "not_there_yet": ({"startingPosition": '{"a": 5}'}, OptionError, "a ends at 0, so 5 is not there yet"),
    "not_read": ({"startingPosition": '{"b": 1}'}, OptionError, "names b, which the option subscription does not"),
}


@pytest.mark.parametrize("options, kind, words", WRONG.values(), ids=WRONG)
def test_the_driver_says_what_is_wrong(
    client: Client, server: ScriptedServer, options: dict[str, str], kind: type[Exception], words: str
) -> None:
    server.token = "right"
    given = {"endpoint": server.address, "subscription": "a", "token": "right", **options}
    with pytest.raises(kind, match=words):
        BatchReader(Options(given, READ), SCHEMA).partitions()
    if kind is not OptionError:
        with pytest.raises(kind, match=words):
            look(Options(given, READ))


def test_nothing_to_read_is_no_rows(client: Client, server: ScriptedServer) -> None:
    reader = BatchReader(Options({"endpoint": server.address, "subscription": "a"}, READ), SCHEMA)
    assert reader.partitions() == []
    assert list(reader.read(InputPartition(None))) == []
