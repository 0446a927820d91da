"""attach: every message, acknowledged or delivered again, whatever becomes of the connection."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pathsieve import Filter
from pathsieve.errors import Detached, NotFound, Unauthenticated
from pathsieve.v1.delivery_service_pb2 import GoodbyeReason, Heartbeat
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
        client.subscribe(id="a", xpath="//a")
        client.subscribe(id="b", xpath="//b")
        yield client


def publish(client: Any, n_documents: int, text: str = "<a/>") -> None:
    list(client.publish_many([text] * n_documents))


def acked(server: ScriptedServer) -> list[bool]:
    return [note.is_acked for note in server.notifications]


def taken(messages: Any, n_messages: int) -> list[Any]:
    return [next(messages) for _ in range(n_messages)]


def test_messages_come_in_order_and_are_acknowledged(client: Any, server: ScriptedServer) -> None:
    publish(client, 50)
    with client.attach("a") as messages:
        for expected in range(1, 51):
            message = next(messages)
            assert (message.subscription, message.sequence, message.attempt) == ("subscriptions/a", expected, 1)
            assert message.matches == [("subscriptions/a", expected)]
            message.ack()
    assert acked(server) == [True] * 50


def test_acknowledgements_travel_together(client: Any, server: ScriptedServer) -> None:
    publish(client, 200)
    with client.attach("a") as messages:
        held = taken(messages, 200)
        for message in held:
            message.ack()
    requests = [said for said in server.said if said.HasField("ack")]
    assert sum(len(said.ack.message_ids) for said in requests) == 200
    assert len(requests) < 200


def test_with_auto_ack_a_message_is_acknowledged_when_the_next_is_asked_for(
    client: Any, server: ScriptedServer
) -> None:
    publish(client, 3)
    with client.attach("a", auto_ack=True) as messages:
        taken(messages, 3)
    assert acked(server) == [True, True, False]


def test_a_document_for_several_subscriptions_is_one_message(client: Any) -> None:
    publish(client, 2, "<a><b/></a>")
    with client.attach(["a", "b"]) as messages:
        message = taken(messages, 2)[1]
    assert message.matches == [("subscriptions/a", 2), ("subscriptions/b", 2)]
    assert message.n_matches == 2
    assert message.xml == b"<a><b/></a>"


def test_all_subscriptions_are_one_name(client: Any, server: ScriptedServer) -> None:
    publish(client, 1, "<b/>")
    with client.attach("-") as messages:
        assert next(messages).subscription == "subscriptions/b"
    assert list(server.starts[0].subscriptions) == ["subscriptions/-"]


def test_ephemeral_filters_need_no_acknowledgement(client: Any, server: ScriptedServer) -> None:
    with client.attach(ephemeral=[Filter("//x"), Filter("//a")]) as messages:
        publish(client, 1)
        message = next(messages)
        message.ack()
    assert message.is_ephemeral
    assert message.matches == [("//a", 0)]
    assert not any(said.HasField("ack") for said in server.said)


SAYINGS: dict[str, tuple[Callable[[Any], None], str, float | None]] = {
    "nack": (lambda message: message.nack(), "nack", None),
    "nack_later": (lambda message: message.nack(1.5), "nack", 1.5),
    "extend": (lambda message: message.extend(90), "extend", 90),
}


@pytest.mark.parametrize("say, kind, seconds", SAYINGS.values(), ids=SAYINGS)
def test_what_is_said_about_a_message_reaches_the_server(
    client: Any, server: ScriptedServer, say: Any, kind: str, seconds: float | None
) -> None:
    publish(client, 1)
    with client.attach("a") as messages:
        say(next(messages))
    (said,) = [getattr(said, kind) for said in server.said if said.HasField(kind)]
    assert list(said.message_ids) == [1]
    duration = said.delay if kind == "nack" else said.deadline
    assert duration.ToTimedelta().total_seconds() == (seconds or 0)
    assert said.HasField("delay" if kind == "nack" else "deadline") == (seconds is not None)


def test_a_returned_message_comes_again(client: Any) -> None:
    publish(client, 1)
    with client.attach("a") as messages:
        next(messages).nack()
        again = next(messages)
    assert (again.sequence, again.attempt) == (1, 2)


def test_credit_is_given_back_as_messages_are_taken(client: Any, server: ScriptedServer) -> None:
    publish(client, 100)
    with client.attach("a", credit=8) as messages:
        assert [message.sequence for message in taken(messages, 100)] == list(range(1, 101))
    assert server.starts[0].credit.messages == 8
    assert sum(credit.messages for credit in server.credits) >= 92
    assert max(credit.messages for credit in server.credits) <= 8


def test_credit_in_bytes_is_given_back_too(client: Any, server: ScriptedServer) -> None:
    publish(client, 30)
    with client.attach("a", credit_bytes=200) as messages:
        assert len(taken(messages, 30)) == 30


def test_no_more_waits_here_than_the_credit_allows(client: Any, server: ScriptedServer) -> None:
    publish(client, 50)
    with client.attach("a", credit=4) as messages:
        next(messages)
        while not server.credits:
            next(messages)
    assert sum(note.attempt for note in server.notifications) <= 10


BREAKS = {"before_the_first": [0], "in_the_middle": [3], "again_and_again": [2, 5, 1]}


@pytest.mark.parametrize("breaks", BREAKS.values(), ids=BREAKS)
def test_after_a_break_what_was_not_acknowledged_comes_again(
    client: Any, server: ScriptedServer, breaks: list[int]
) -> None:
    publish(client, 20)
    server.attach_breaks = list(breaks)
    seen = set()
    with client.attach("a") as messages:
        while len(seen) < 20 or not all(acked(server)):
            message = messages.receive(0.2)
            if message:
                seen.add(message.sequence)
                message.ack()
        assert messages.n_breaks == sum(n_messages > 0 for n_messages in breaks)
    assert seen == set(range(1, 21))
    assert len({start.consumer for start in server.starts}) == 1
    assert server.starts[0].consumer


def test_an_acknowledgement_after_a_break_is_late_and_no_error(client: Any, server: ScriptedServer) -> None:
    publish(client, 1)
    with client.attach("a") as messages:
        first = next(messages)
        run(server.cut())
        again = next(messages)
        assert (again.sequence, again.attempt) == (first.sequence, 2)
        first.ack()
        assert messages.n_late == 1
    assert acked(server) == [False]


COME_BACK = {"draining": GoodbyeReason.GOODBYE_REASON_DRAINING, "no_reason": GoodbyeReason.GOODBYE_REASON_UNSPECIFIED}


@pytest.mark.parametrize("reason", COME_BACK.values(), ids=COME_BACK)
def test_a_server_that_stops_is_come_back_to(client: Any, server: ScriptedServer, reason: Any) -> None:
    publish(client, 2)
    server.goodbyes = [reason]
    with client.attach("a") as messages:
        while next(messages).attempt < 2:
            pass
    assert len(server.starts) == 2


FOR_GOOD = {
    "replaced": (GoodbyeReason.GOODBYE_REASON_REPLACED, Detached),
    "deleted": (GoodbyeReason.GOODBYE_REASON_DELETED, Detached),
    "too_slow": (GoodbyeReason.GOODBYE_REASON_TOO_SLOW, Detached),
    "unauthenticated": (GoodbyeReason.GOODBYE_REASON_UNAUTHENTICATED, Unauthenticated),
}


@pytest.mark.parametrize("reason, error", FOR_GOOD.values(), ids=FOR_GOOD)
def test_other_goodbyes_are_told(client: Any, server: ScriptedServer, reason: Any, error: type[Exception]) -> None:
    server.goodbyes = [reason]
    messages = client.attach("a")
    with pytest.raises(error) as caught:
        next(messages)
    assert caught.value.reason == GoodbyeReason.Name(reason).removeprefix("GOODBYE_REASON_")
    messages.close()
    assert len(server.starts) == 1


def test_an_unknown_subscription_is_told_at_once(client: Any) -> None:
    with pytest.raises(NotFound) as caught:
        client.attach("nobody")
    assert caught.value.name == "subscriptions/nobody"


def test_heartbeats_tell_what_waits(client: Any, server: ScriptedServer) -> None:
    server.heartbeat = Heartbeat(backlog=42)
    server.heartbeat.oldest_age.FromSeconds(7)
    publish(client, 1)
    with client.attach("a") as messages:
        next(messages)
        assert (messages.backlog, messages.oldest_age) == (42, 7.0)


def test_one_may_wait_for_a_while(client: Any) -> None:
    with client.attach("a") as messages:
        assert messages.receive(timeout=0.01) is None
        publish(client, 1)
        message = messages.receive(timeout=20)
    assert message.sequence == 1


def test_a_closed_attachment_has_no_more_messages(client: Any) -> None:
    messages = client.attach("a")
    messages.close()
    assert list(messages) == []


def test_closing_the_client_sends_what_was_said_and_ends_the_streams(client: Any, server: ScriptedServer) -> None:
    publish(client, 1)
    messages = client.attach("a")
    next(messages).ack()
    client.close()
    assert acked(server) == [True]
    assert list(messages) == []


@pytest.mark.parametrize("face", FACES)
def test_a_consumer_that_comes_back_has_its_name(face: str, server: ScriptedServer) -> None:
    with make(face, server.address) as client:
        client.subscribe(id="a", xpath="//a")
        client.attach("a", consumer="desk-7", mode="shared").close()
    assert server.starts[0].consumer == "desk-7"
    assert server.starts[0].mode == 2
