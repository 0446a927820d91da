"""Both clients against a real gRPC server: what they send, what they make of answers, how they go on after faults."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from pathsieve import DeliveryPolicy, Document, Email, Filter, Interval, Point, Schedule, Subscription, Webhook
from pathsieve.errors import (
    AlreadyExists,
    Cancelled,
    DocumentRefused,
    EtagMismatch,
    InvalidExpression,
    NotFound,
    Unauthenticated,
    Unavailable,
)
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


def test_a_subscription_comes_back_as_it_was_made(client: Any) -> None:
    made = client.subscribe(
        id="ibm",
        xpath="//q:quote",
        namespaces={"q": "urn:quotes"},
        labels={"team": "rates"},
        delivery=DeliveryPolicy(ack_deadline=2.5, max_attempts=3),
        schedule=60,
        webhook=Webhook("https://example.org/hook", headers={"X-Team": "rates"}),
    )
    assert made.name == "subscriptions/ibm"
    assert made.id == "ibm"
    assert made.filter == Filter("//q:quote", namespaces={"q": "urn:quotes"})
    assert made.delivery == DeliveryPolicy(2.5, 3)
    assert made.schedule == Schedule(every=60)
    assert made.push == Webhook("https://example.org/hook", headers={"X-Team": "rates"})
    assert made.create_time is not None
    assert made.create_time.tzinfo is UTC
    assert client.get("ibm").labels == {"team": "rates"}


def test_short_forms_are_spelled_out(client: Any) -> None:
    made = client.subscribe(boolean="price > 100", schedule="0 8 * * *", email="desk@example.org")
    assert made.filter == Filter(boolean="price > 100")
    assert made.schedule == Schedule(cron="0 8 * * *")
    assert made.push == Email(("desk@example.org",))


def test_all_pages_are_listed(client: Any, server: ScriptedServer) -> None:
    results = list(client.import_subscriptions({"id": f"s{n:04}", "xpath": "//a"} for n in range(2500)))
    assert [result.index for result in results] == list(range(2500))
    assert [subscription.id for subscription in client.list()] == [f"s{n:04}" for n in range(2500)]


def test_one_bad_subscription_of_an_import_does_not_stop_the_others(client: Any) -> None:
    wishes = [{"id": "a", "xpath": "//a"}, {"id": "b", "xpath": "//book/[price]"}, {"id": "a", "xpath": "//c"}]
    good, bad, again = client.import_subscriptions(wishes)
    assert good.name == "subscriptions/a"
    assert good.error is None
    assert isinstance(bad.error, InvalidExpression)
    assert bad.error.column == 8
    assert "^" in str(bad.error)
    assert isinstance(again.error, AlreadyExists)


def test_an_update_changes_what_is_given_and_nothing_else(client: Any) -> None:
    made = client.subscribe(id="x", xpath="//a", labels={"a": "1"})
    changed = client.update("x", labels={"b": "2"})
    assert changed.labels == {"b": "2"}
    assert changed.filter == made.filter


def test_a_change_by_somebody_else_is_noticed(client: Any) -> None:
    made = client.subscribe(id="x", xpath="//a")
    client.update("x", labels={"a": "1"})
    with pytest.raises(EtagMismatch) as caught:
        client.update(made, labels={"a": "2"})
    assert (caught.value.name, caught.value.etag) == ("subscriptions/x", "2")
    with pytest.raises(EtagMismatch):
        client.delete(made)
    client.delete("x")
    with pytest.raises(NotFound) as missing:
        client.get("x")
    assert missing.value.name == "subscriptions/x"


def test_errors_have_facts(client: Any) -> None:
    with pytest.raises(InvalidExpression) as caught:
        client.subscribe(xpath="//book/[price]")
    assert (caught.value.column, caught.value.expected) == (8, "a node test")
    assert str(caught.value).splitlines()[1:] == ["  //book/[price]", "         ^"]
    client.subscribe(id="x", xpath="//a")
    with pytest.raises(AlreadyExists, match="exists already"):
        client.subscribe(id="x", xpath="//a")
    with pytest.raises(DocumentRefused) as refused:
        client.publish("<oops>")
    assert (refused.value.line, refused.value.column) == (1, 6)


WRONG_CALLS = {
    "no_filter": lambda client: client.subscribe(id="x"),
    "two_filters": lambda client: client.subscribe(xpath="//a", boolean="a = 1"),
    "two_ways_to_push": lambda client: client.subscribe(xpath="//a", webhook="https://x", email="a@b"),
    "no_target_to_seek": lambda client: client.seek("x"),
    "a_time_without_a_zone": lambda client: client.seek("x", time=datetime(2026, 1, 1)),
    "nothing_to_attach_to": lambda client: client.attach(),
    "an_unknown_mode": lambda client: client.attach("x", mode="greedy"),
    "too_large_an_integer": lambda client: client.publish(attributes={"n": 1 << 70}),
}


@pytest.mark.parametrize("call", WRONG_CALLS.values(), ids=WRONG_CALLS)
def test_what_cannot_be_meant_is_refused_before_it_is_sent(client: Any, call: Any) -> None:
    with pytest.raises(ValueError, match=r"expected|an integer"):
        call(client)


def test_a_closed_client_says_so(client: Any) -> None:
    client.close()
    with pytest.raises(Cancelled, match="the client is closed"):
        client.get("x")


def test_a_document_is_described_in_one_place(client: Any) -> None:
    with pytest.raises(TypeError, match="a Document has its own id"):
        client.publish(Document("<a/>"), id="x")


def test_a_misspelt_keyword_is_refused(client: Any) -> None:
    with pytest.raises(TypeError, match="a subscription has no xpaht"):
        client.subscribe(xpaht="//a")


def test_a_filter_is_tested(client: Any) -> None:
    tested = client.test(Filter("//a"), Document("<a/>", attributes={"n": 1}))
    assert tested
    assert tested.attributes == {"n": 1}
    client.subscribe(id="b", xpath="//b")
    assert not client.test("b", "<a/>")


def test_a_document_arrives_as_it_was_published(client: Any, server: ScriptedServer) -> None:
    attributes = {"s": "text", "n": 7, "f": 1.5, "b": True, "p": Point(1, 2), "i": Interval(3, 4), "l": ["a", 1]}
    client.subscribe(id="a", xpath="//a")
    published = client.publish("<a/>", id="d1", source="here", attributes=attributes, headers={"h": "v"})
    assert (published.id, published.matches, published.duplicate) == ("d1", 1, False)
    with client.attach("a") as messages:
        message = next(messages)
    document = message.document
    assert (document.xml, document.id, document.source) == (b"<a/>", "d1", "here")
    assert document.attributes == attributes
    assert document.headers == {"h": "v"}
    assert document.publish_time is not None


def test_the_same_document_again_is_a_duplicate(client: Any) -> None:
    assert not client.publish("<a/>", id="d1").duplicate
    assert client.publish("<a/>", id="d1").duplicate
    assert not client.publish("<a/>").duplicate
    assert not client.publish("<a/>").duplicate


def test_a_call_is_repeated_when_the_server_has_no_time(client: Any, server: ScriptedServer) -> None:
    server.unavailable = 2
    assert client.publish("<a/>").id
    server.unavailable = 2
    assert client.subscribe(id="x", xpath="//a").id == "x"


@pytest.mark.parametrize("face", FACES)
def test_nobody_there_is_unavailable(face: str) -> None:
    with (
        make(face, "localhost:1", patience=0) as client,
        pytest.raises(Unavailable, match="no answer from localhost:1"),
    ):
        client.get("x")
    with make(face, "localhost:1", patience=0.2) as client, pytest.raises(Unavailable):
        client.subscribe(xpath="//a")


@pytest.mark.parametrize("face", FACES)
def test_another_address_is_tried(face: str, server: ScriptedServer) -> None:
    with make(face, ["localhost:1", server.address]) as client:
        assert client.subscribe(id="x", xpath="//a").id == "x"
        assert client.get("x").id == "x"


@pytest.mark.parametrize("face", FACES)
def test_a_token_goes_with_every_call(face: str, server: ScriptedServer) -> None:
    server.token = "secret"
    with make(face, server.address) as client:
        with pytest.raises(Unauthenticated):
            client.publish("<a/>")
        with pytest.raises(Unauthenticated):
            list(client.publish_many(["<a/>"]))
        with pytest.raises(Unauthenticated):
            client.attach("-")
        with pytest.raises(Unauthenticated):
            list(client.import_subscriptions([{"xpath": "//a"}]))
    with make(face, server.address, token="secret") as client:
        assert [result.matches for result in client.publish_many(["<a/>"])] == [0]


def test_a_batch_is_staged_and_committed_once(client: Any, server: ScriptedServer) -> None:
    client.subscribe(id="a", xpath="//a")
    staged = client.stage("query", 1, ["<a/>", "<oops", "<b/>"], partition=0, attempt=2)
    assert staged.staged == 2
    assert list(staged.refused) == [1]
    assert isinstance(staged.refused[1], DocumentRefused)
    first, again = (client.commit("query", 1, [(0, 2)]) for _ in range(2))
    assert (first.documents, first.matches, first.repeated) == (2, 1, False)
    assert (again.documents, again.matches, again.repeated) == (2, 1, True)
    client.stage("query", 2, ["<a/>"])
    client.abort("query", 2)
    assert [key[1] for key in server.staged] == [1]


def test_messages_are_pulled_and_acknowledged(client: Any, server: ScriptedServer) -> None:
    client.subscribe(id="a", xpath="//a")
    for _ in range(3):
        client.publish("<a/>")
    pulled = client.pull("a", max_messages=2)
    assert [message.sequence for message in pulled] == [1, 2]
    client.modify_ack_deadline("a", pulled, 60)
    client.acknowledge("a", pulled)
    client.acknowledge("a", [3])
    assert client.pull("a") == []
    assert client.get("a").progress.floor == 3


def test_seeking_says_what_comes_next(client: Any, server: ScriptedServer) -> None:
    assert client.seek("a", sequence=7) == 7
    assert client.seek("a", time=datetime(2026, 1, 1, tzinfo=UTC)) == 1
    assert server.said[-1].time.ToDatetime() == datetime(2026, 1, 1)


def test_all_pages_of_dead_letters_are_read(client: Any) -> None:
    letters = list(client.dead_letters("a"))
    assert [letter.sequence for letter in letters] == [1, 2, 3, 4]
    assert (letters[0].subscription, letters[0].attempts, letters[0].reason) == ("subscriptions/a", 5, "no")


def test_a_subscription_is_named_in_any_way(client: Any) -> None:
    made = client.subscribe(id="subscriptions/x", xpath="//a")
    assert isinstance(made, Subscription)
    assert client.get(made) == client.get("x") == client.get("subscriptions/x")


def noted(client: Any, n_documents: int) -> None:
    client.subscribe(id="a", xpath="//a")
    client.subscribe(id="b", xpath="//b")
    for n in range(n_documents):
        client.publish("<a><b/></a>" if n % 2 else "<a/>", id=f"d{n}")


def test_what_is_in_the_log_is_read_page_by_page_and_nothing_is_taken(client: Any, server: ScriptedServer) -> None:
    noted(client, 8)
    assert [(one.sequence, one.document.id) for one in client.read("a", after=1)] == [
        (n, f"d{n - 1}") for n in range(2, 9)
    ]
    assert [(one.after, one.through) for one in server.said] == [(1, 8), (4, 8), (7, 8)]
    assert [one.sequence for one in client.read("b", after=1, through=3)] == [2, 3]
    found = {one.position: one.matches for one in client.read("-", through=2)}
    assert found == {1: [("subscriptions/a", 1)], 2: [("subscriptions/a", 2), ("subscriptions/b", 1)]}
    assert not any(note.is_acked for note in server.notifications)


def test_a_page_says_what_is_gone(client: Any, server: ScriptedServer) -> None:
    noted(client, 5)
    server.dropped = 2
    assert [(found.dropped, found.head) for found in client.ranges(["a", "b"])] == [(2, 5), (2, 2)]
    page = client.read_page("a", 1, 5)
    assert ([one.sequence for one in page.notifications], page.through, page.dropped) == ([3, 4], 4, 2)
    assert client.read_page("a", 2, 3).dropped == 0
    assert client.tenant_range(after=1, max_documents=3).through == 4


def test_a_read_goes_on_after_a_fault(client: Any, server: ScriptedServer) -> None:
    noted(client, 8)
    found = []
    for one in client.read("a"):
        found.append(one.sequence)
        server.unavailable = 1 if len(found) == 2 else 0
    assert found == list(range(1, 9))


def test_who_is_not_there_cannot_be_read(client: Any) -> None:
    with pytest.raises(NotFound) as caught:
        list(client.read("nobody"))
    assert caught.value.name == "subscriptions/nobody"


def test_all_up_to_a_point_is_acknowledged_in_one_call(client: Any, server: ScriptedServer) -> None:
    noted(client, 5)
    client.acknowledge_through({"a": 3})
    client.acknowledge_through({"-": 5}, after=4)
    assert [note.is_acked for note in server.notifications] == [True, True, True, False, True]
    client.acknowledge_through({f"s{n}": 1 for n in range(1500)})
    assert [len(request.marks) for request in server.said] == [1, 1, 1000, 500]
