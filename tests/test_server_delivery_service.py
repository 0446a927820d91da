"""DeliveryService, over a real channel."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from pathsieve.v1 import delivery_service_pb2 as wire
from pathsieve.v1.publish_service_pb2 import PublishRequest
from pathsieve.v1.subscription_service_pb2 import (
    CreateSubscriptionRequest,
    DeleteSubscriptionRequest,
    GetSubscriptionRequest,
)
from server.daemon import Daemon
from tests.servers import Stubs, document, running, settings_in, stubs_of

NAME = "subscriptions/a"
PLENTY = wire.Credit(messages=100, bytes=1 << 20)


@pytest.fixture
async def daemon(tmp_path: Path) -> AsyncIterator[Daemon]:
    async with running(settings_in(tmp_path)) as daemon:
        yield daemon


@pytest.fixture
async def stubs(daemon: Daemon) -> AsyncIterator[Stubs]:
    async with stubs_of(daemon.address) as stubs:
        await create(stubs, "a")
        yield stubs


async def create(stubs: Stubs, subscription_id: str, **fields: Any) -> None:
    wanted = {"filter": {"xpath": "//a"}, **fields}
    request = CreateSubscriptionRequest(subscription=wanted, subscription_id=subscription_id)  # type: ignore[arg-type]
    await stubs.subscriptions.CreateSubscription(request)


async def publish(stubs: Stubs, *ids: str) -> None:
    response = await stubs.publish.Publish(PublishRequest(documents=[document(one) for one in ids]))
    assert not any(result.HasField("problem") for result in response.results)


async def attach(stubs: Stubs, *names: str, credit: wire.Credit = PLENTY, **fields: Any) -> Any:
    call = stubs.delivery.Attach()
    await call.write(wire.AttachRequest(start=wire.Start(subscriptions=names, credit=credit, **fields)))
    return call


async def messages(call: Any, n_messages: int) -> list[wire.Message]:
    found: list[wire.Message] = []
    while len(found) < n_messages:
        response = await call.read()
        found += response.messages.messages
    return found


async def acknowledge(call: Any, *received: wire.Message) -> None:
    ids = [message.message_id for message in received]
    await call.write(wire.AttachRequest(ack=wire.Ack(message_ids=ids)))


async def floor(stubs: Stubs) -> int:
    return (await stubs.subscriptions.GetSubscription(GetSubscriptionRequest(name=NAME))).progress.floor_sequence


async def test_the_first_response_says_which_slot_is_which(stubs: Stubs) -> None:
    await create(stubs, "b")
    call = await attach(stubs, NAME, "subscriptions/b")
    slots = (await call.read()).slots
    assert dict(zip(slots.names, slots.slots, strict=True)) == {NAME: 0, "subscriptions/b": 1}


async def test_a_document_that_several_want_is_one_message(stubs: Stubs) -> None:
    await create(stubs, "b")
    call = await attach(stubs, NAME, "subscriptions/b")
    await publish(stubs, "1")
    [message] = await messages(call, 1)
    assert (message.document.id, message.document.xml, message.attempt) == ("1", b"<a/>", 1)
    assert (sorted(message.slots), list(message.sequences)) == ([0, 1], [1, 1])
    assert message.document.publish_time.seconds > 0


async def test_acks_count_that_came_before_the_client_has_ended_its_side(stubs: Stubs) -> None:
    call = await attach(stubs, NAME)
    await publish(stubs, "1", "2")
    await acknowledge(call, *await messages(call, 2))
    await call.done_writing()
    assert await call.read() is grpc.aio.EOF
    assert await call.code() is grpc.StatusCode.OK
    assert await floor(stubs) == 2


async def test_what_is_refused_is_delivered_again(stubs: Stubs) -> None:
    call = await attach(stubs, NAME)
    await publish(stubs, "1")
    [first] = await messages(call, 1)
    await call.write(wire.AttachRequest(nack={"message_ids": [first.message_id], "delay": {"nanos": 1_000_000}}))
    [again] = await messages(call, 1)
    assert (again.document.id, again.attempt) == ("1", 2)


async def test_nothing_comes_without_credit(stubs: Stubs) -> None:
    call = await attach(stubs, NAME, credit=wire.Credit(messages=1, bytes=1000))
    await publish(stubs, "1", "2")
    [first] = await messages(call, 1)
    waiting = asyncio.ensure_future(messages(call, 1))
    await acknowledge(call, first)
    await call.write(wire.AttachRequest(credit={"messages": 1, "bytes": 1000}))
    [second] = await waiting
    assert (first.document.id, second.document.id) == ("1", "2")


async def test_a_deadline_can_be_put_off(stubs: Stubs) -> None:
    call = await attach(stubs, NAME)
    await publish(stubs, "1")
    [first] = await messages(call, 1)
    await call.write(
        wire.AttachRequest(extend={"message_ids": [first.message_id], "deadline": {"seconds": 0, "nanos": 1000}})
    )
    [again] = await messages(call, 1)
    assert again.attempt == 2


async def test_an_idle_stream_hears_from_the_server(stubs: Stubs) -> None:
    call = await attach(stubs, NAME, heartbeat={"seconds": 1})
    await call.read()
    heartbeat = (await call.read()).heartbeat
    assert heartbeat.backlog == 0


async def test_all_of_a_tenant_are_those_created_later_too(stubs: Stubs) -> None:
    call = await attach(stubs, "subscriptions/-")
    assert list((await call.read()).slots.names) == [NAME]
    await create(stubs, "b")
    assert list((await call.read()).slots.names) == ["subscriptions/b"]


async def test_ephemeral_filters_live_as_long_as_their_stream(stubs: Stubs) -> None:
    call = stubs.delivery.Attach()
    start = wire.Start(ephemeral=[{"xpath": "//b"}, {"xpath": "//a"}], credit=PLENTY)
    await call.write(wire.AttachRequest(start=start))
    await call.read()
    await publish(stubs, "1")
    [message] = await messages(call, 1)
    assert (message.message_id, list(message.slots), list(message.sequences)) == (0, [1], [])


async def test_a_second_exclusive_stream_is_refused(stubs: Stubs) -> None:
    call = await attach(stubs, NAME)
    await call.read()
    second = await attach(stubs, NAME)
    assert await second.code() is grpc.StatusCode.FAILED_PRECONDITION


async def test_a_client_that_goes_away_lets_go_of_the_subscription(daemon: Daemon, stubs: Stubs) -> None:
    call = await attach(stubs, NAME)
    await publish(stubs, "1")
    await messages(call, 1)
    call.cancel()
    while len(daemon.attached):
        await asyncio.sleep(0.01)
    again = await attach(stubs, NAME)
    [message] = await messages(again, 1)
    assert message.document.id == "1"


async def test_a_newer_stream_of_the_same_consumer_takes_over(stubs: Stubs) -> None:
    call = await attach(stubs, NAME, consumer="desk")
    await call.read()
    newer = await attach(stubs, NAME, consumer="desk")
    await newer.read()
    assert (await call.read()).goodbye.reason == wire.GOODBYE_REASON_REPLACED
    await call.done_writing()
    assert await call.code() is grpc.StatusCode.OK


async def test_the_last_subscription_that_goes_ends_the_stream(stubs: Stubs) -> None:
    call = await attach(stubs, NAME)
    await call.read()
    await stubs.subscriptions.DeleteSubscription(DeleteSubscriptionRequest(name=NAME))
    goodbye = (await call.read()).goodbye
    assert goodbye.reason == wire.GOODBYE_REASON_DELETED
    assert NAME in goodbye.message
    assert await call.read() is grpc.aio.EOF
    assert await call.code() is grpc.StatusCode.OK


async def test_what_is_pulled_and_acknowledged_is_done(stubs: Stubs) -> None:
    await publish(stubs, "1", "2")
    pulled = (await stubs.delivery.Pull(wire.PullRequest(subscription=NAME))).messages
    assert [(one.sequence, one.document.id, one.attempt) for one in pulled] == [(1, "1", 1), (2, "2", 1)]
    await stubs.delivery.Acknowledge(wire.AcknowledgeRequest(subscription=NAME, sequences=[1, 2]))
    assert await floor(stubs) == 2
    assert not (await stubs.delivery.Pull(wire.PullRequest(subscription=NAME))).messages


async def test_a_pull_can_wait_for_the_first_message(stubs: Stubs) -> None:
    pulling = asyncio.ensure_future(stubs.delivery.Pull(wire.PullRequest(subscription=NAME, wait={"seconds": 60})))
    await publish(stubs, "1")
    assert [one.document.id for one in (await pulling).messages] == ["1"]


async def test_what_is_pulled_can_be_given_back(stubs: Stubs) -> None:
    await publish(stubs, "1")
    await stubs.delivery.Pull(wire.PullRequest(subscription=NAME))
    request = wire.ModifyAckDeadlineRequest(subscription=NAME, sequences=[1])
    await stubs.delivery.ModifyAckDeadline(request)
    pulled = await stubs.delivery.Pull(wire.PullRequest(subscription=NAME, wait={"seconds": 60}))
    assert [(one.sequence, one.attempt) for one in pulled.messages] == [(1, 2)]


async def test_delivery_can_go_back(stubs: Stubs) -> None:
    await publish(stubs, "1", "2")
    await stubs.delivery.Acknowledge(wire.AcknowledgeRequest(subscription=NAME, sequences=[1, 2]))
    sought = await stubs.delivery.Seek(wire.SeekRequest(subscription=NAME, sequence=2))
    assert sought.next_sequence == 2
    pulled = await stubs.delivery.Pull(wire.PullRequest(subscription=NAME))
    assert [one.document.id for one in pulled.messages] == ["2"]
    sought = await stubs.delivery.Seek(wire.SeekRequest(subscription=NAME, time={"seconds": 1}))
    assert sought.next_sequence == 1


async def test_what_was_given_up_is_listed(stubs: Stubs) -> None:
    await create(stubs, "b", delivery={"max_attempts": 1})
    call = await attach(stubs, "subscriptions/b")
    await publish(stubs, "1", "2", "3")
    received = await messages(call, 3)
    await call.write(wire.AttachRequest(nack={"message_ids": [message.message_id for message in received]}))
    letters: list[wire.DeadLetter] = []
    while len(letters) < 3:
        request = wire.ListDeadLettersRequest(subscription="subscriptions/b", page_size=2)
        page = await stubs.delivery.ListDeadLetters(request)
        letters = list(page.dead_letters)
        if page.next_page_token:
            request.page_token = page.next_page_token
            letters += (await stubs.delivery.ListDeadLetters(request)).dead_letters
    assert [(letter.sequence, letter.document.id, letter.attempts) for letter in letters] == [
        (1, "1", 1),
        (2, "2", 1),
        (3, "3", 1),
    ]
    assert letters[0].reason
    shown = await stubs.subscriptions.GetSubscription(GetSubscriptionRequest(name="subscriptions/b"))
    assert shown.progress.dead_letters == 3
