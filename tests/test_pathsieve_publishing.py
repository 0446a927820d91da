"""publish_many: in order, within the credit, and after a broken connection without loss and without duplicates."""

import asyncio
import itertools
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from pathsieve import AsyncClient, Document
from pathsieve.errors import DocumentRefused, LimitExceeded, PathSieveError, Unavailable
from tests.faces import FACES, make, run
from tests.scripted_server import ScriptedServer


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    server = ScriptedServer()
    server.address = run(server.start())
    yield server
    run(server.stop())


@pytest.fixture(params=FACES)
def client(request: pytest.FixtureRequest, server: ScriptedServer) -> Iterator[Any]:
    with make(request.param, server.address, timeout=20, patience=20) as client:
        yield client


def numbered(n_documents: int) -> Iterator[Document]:
    return (Document(f"<a n='{n}'/>", id=f"d{n}") for n in range(n_documents))


def ids(n_documents: int) -> list[str]:
    return [f"d{n}" for n in range(n_documents)]


def test_results_come_in_the_order_of_the_documents(client: Any, server: ScriptedServer) -> None:
    client.subscribe(id="odd", xpath="//a[@n mod 2 = 1]")
    results = list(client.publish_many(numbered(500)))
    assert [result.id for result in results] == ids(500)
    assert [result.matches for result in results] == [0, 1] * 250
    assert [document.id for document in server.accepted] == ids(500)


def test_documents_travel_in_batches(client: Any, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first may go alone, since nothing is on the way; the others wait for each other."""
    monkeypatch.setattr("pathsieve.publish_stream.LINGER", 0.5)
    list(client.publish_many(numbered(641)))
    assert sum(server.batches) == 641
    assert max(server.batches) == 64
    assert len(server.batches) <= 12


def test_a_refused_document_has_an_error_and_does_not_stop_the_others(client: Any) -> None:
    first, bad, last = client.publish_many(["<a/>", Document("<oops", id="bad"), "<b/>"])
    assert first.error is None
    assert last.error is None
    assert isinstance(bad.error, DocumentRefused)
    assert bad.id == "bad"
    assert bad.error.line == 1


CREDITS = {"one_document": (1, 1 << 20), "three_documents": (3, 1 << 20), "few_bytes": (1000, 60)}


@pytest.mark.parametrize("credit", CREDITS.values(), ids=CREDITS)
def test_no_more_is_sent_than_is_granted(client: Any, server: ScriptedServer, credit: tuple[int, int]) -> None:
    server.credit = credit
    assert [result.id for result in client.publish_many(numbered(40))] == ids(40)
    assert max(server.batches) <= credit[0]


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_document_that_never_fits_is_refused(client: Any, server: ScriptedServer, place: int) -> None:
    server.credit = (1000, 100)
    documents = [Document("<a/>", id="a"), Document("<b/>", id="b")]
    documents.insert(place, Document(f"<c>{'c' * 500}</c>", id="large"))
    results = list(client.publish_many(documents))
    assert [result.id for result in results] == [document.id for document in documents]
    error = results[place].error
    assert isinstance(error, LimitExceeded)
    assert (error.limit, error.allowed) == ("credit_bytes", 100)
    assert [document.id for document in server.accepted] == ["a", "b"]


BREAKS = {"at_once": [0], "after_some": [70], "again_and_again": [5, 0, 64, 1]}


@pytest.mark.parametrize("breaks", BREAKS.values(), ids=BREAKS)
def test_a_broken_connection_costs_nothing(client: Any, server: ScriptedServer, breaks: list[int]) -> None:
    client.subscribe(id="all", xpath="//a")
    server.publish_breaks = list(breaks)
    results = list(client.publish_many(numbered(300)))
    assert [result.id for result in results] == ids(300)
    assert sorted(document.id for document in server.accepted) == sorted(ids(300))
    assert len(server.notifications) == 300
    assert any(result.duplicate for result in results) == any(breaks)
    assert server.publish_breaks == []


def test_documents_without_an_id_are_not_published_twice_either(client: Any, server: ScriptedServer) -> None:
    server.publish_breaks = [10]
    results = list(client.publish_many(["<a/>"] * 100))
    assert len({result.id for result in results}) == 100
    assert len(server.accepted) == 100


def test_a_server_that_has_no_time_is_asked_again(client: Any, server: ScriptedServer) -> None:
    server.unavailable = 2
    assert len(list(client.publish_many(numbered(5)))) == 5


def test_what_the_store_has_no_time_for_is_sent_again(client: Any, server: ScriptedServer) -> None:
    server.storeless = 3
    assert [result.error for result in client.publish_many(numbered(5))] == [None] * 5
    server.storeless = 2
    assert client.publish("<a/>", id="alone").id == "alone"
    assert len(server.accepted) == 6


@pytest.mark.parametrize("face", FACES)
def test_a_store_that_stays_away_is_told_in_the_end(face: str, server: ScriptedServer) -> None:
    server.storeless = 1_000_000
    with make(face, server.address, patience=0.3) as client, pytest.raises(Unavailable, match="the store is away"):
        client.publish("<a/>")


@pytest.mark.parametrize("face", FACES)
def test_patience_has_an_end(face: str, server: ScriptedServer) -> None:
    server.unavailable = 1_000_000
    with make(face, server.address, patience=0.3) as client, pytest.raises(Unavailable):
        list(client.publish_many(numbered(5)))


@pytest.mark.parametrize("face", FACES)
def test_a_server_that_comes_back_gets_the_rest(face: str, server: ScriptedServer) -> None:
    port = int(server.address.rpartition(":")[2])
    with make(face, server.address) as client:
        results = iter(client.publish_many(itertools.chain(numbered(100), _restarted(server, port))))
        assert [result.id for result in results] == [*ids(100), "after"]
    assert len(server.accepted) == 101


def _restarted(server: ScriptedServer, port: int) -> Iterator[Document]:
    """Restart the server in mid-stream, from a thread of its own: the caller may be the loop's."""

    async def restart() -> None:
        await server.stop()
        await server.start(port)

    thread = threading.Thread(target=lambda: run(restart()))
    thread.start()
    yield Document("<a/>", id="after")


def test_an_error_of_the_source_is_raised(client: Any) -> None:
    def failing() -> Iterator[str]:
        yield "<a/>"
        raise LookupError("the disk is gone")

    with pytest.raises(LookupError, match="the disk is gone"):
        list(client.publish_many(failing()))


def test_one_may_stop_in_the_middle(client: Any) -> None:
    results = iter(client.publish_many(numbered(10_000)))
    assert next(results).id == "d0"
    if hasattr(results, "close"):
        results.close()
    else:
        results.aclose()
    assert client.publish("<a/>").id


def test_nothing_to_publish_is_no_error(client: Any) -> None:
    assert list(client.publish_many([])) == []


def test_more_than_the_window_is_published(
    client: Any, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pathsieve.pipeline.WINDOW_DOCUMENTS", 10)
    assert len(list(client.publish_many(numbered(200)))) == 200


async def test_results_come_while_the_source_waits() -> None:
    """A live source: each document is answered before the next one exists."""
    address = await (here := ScriptedServer()).start()
    answered = asyncio.Event()

    async def live() -> Any:
        for n in range(5):
            yield f"<a n='{n}'/>"
            await answered.wait()
            answered.clear()

    async with AsyncClient(address) as client:
        n_results = 0
        async for result in client.publish_many(live()):
            assert not isinstance(result.error, PathSieveError)
            n_results += 1
            answered.set()
    await here.stop()
    assert n_results == 5
