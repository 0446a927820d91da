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


ALL = "subscriptions/-"


async def read(stubs: Stubs, name: str, after: int, through: int, **limits: int) -> wire.ReadNotificationsResponse:
    request = wire.ReadNotificationsRequest(subscription=name, after=after, through=through, **limits)
    return await stubs.delivery.ReadNotifications(request)


def shown(page: wire.ReadNotificationsResponse) -> list[tuple[str, dict[str, int]]]:
    """Each document, and who wants it under which sequence."""
    names = [name.removeprefix("subscriptions/") for name in page.subscriptions]
    return [
        (one.document.id, {names[slot]: sequence for slot, sequence in zip(one.slots, one.sequences, strict=True)})
        for one in page.notifications
    ]


async def get_range(stubs: Stubs, name: str, **fields: int) -> wire.Range:
    return (await stubs.delivery.GetRanges(wire.GetRangesRequest(subscriptions=[name], **fields))).ranges[0]


async def acknowledge_through(stubs: Stubs, **marks: int) -> None:
    named = [wire.Mark(subscription=f"subscriptions/{one}", through=through) for one, through in marks.items()]
    await stubs.delivery.AcknowledgeThrough(wire.AcknowledgeThroughRequest(marks=named))


async def test_reading_takes_nothing_and_can_be_repeated(stubs: Stubs) -> None:
    await publish(stubs, "1", "2", "3")
    page = await read(stubs, NAME, 1, 3)
    assert shown(page) == [("2", {"a": 2}), ("3", {"a": 3})]
    assert await read(stubs, NAME, 1, 3) == page
    pulled = (await stubs.delivery.Pull(wire.PullRequest(subscription=NAME))).messages
    assert [(one.sequence, one.attempt) for one in pulled] == [(1, 1), (2, 1), (3, 1)]


async def test_a_tenant_is_read_by_positions_a_document_once(stubs: Stubs) -> None:
    await create(stubs, "b", filter={"xpath": "//b"})
    await create(stubs, "c")
    documents = [document("1"), document("2", "<b/>"), document("3", "<a><b/></a>"), document("4", "<z/>")]
    await stubs.publish.Publish(PublishRequest(documents=documents))
    found = await get_range(stubs, ALL, after=1, max_documents=1)
    assert (found.dropped, found.head, found.through) == (0, 3, 2)
    assert shown(await read(stubs, ALL, 0, 3)) == [
        ("1", {"a": 1, "c": 1}),
        ("2", {"b": 1}),
        ("3", {"a": 2, "b": 2, "c": 2}),
    ]
    await stubs.subscriptions.DeleteSubscription(DeleteSubscriptionRequest(name=NAME))
    assert shown(await read(stubs, ALL, 0, 1)) == [("1", {"a": 1, "c": 1})]


async def test_a_page_ends_where_the_next_begins(stubs: Stubs) -> None:
    await publish(stubs, *"12345")
    first = await read(stubs, NAME, 0, 5, max_messages=2)
    assert ([one.sequences[0] for one in first.notifications], first.through) == ([1, 2], 2)
    second = await read(stubs, NAME, first.through, 5, max_bytes=1)
    assert ([one.sequences[0] for one in second.notifications], second.through) == ([3], 3)


BAD_RANGES = {
    "past_the_newest": (NAME, 0, 3, "from 0 to 2, found 3"),
    "past_the_newest_of_all": (ALL, 0, 3, "from 0 to 2, found 3"),
    "before_the_first": (NAME, -1, 2, "after: expected 0 or more"),
    "of_nobody": ("subscriptions/nobody", 0, 1, "there is no subscriptions/nobody"),
}


@pytest.mark.parametrize("name, after, through, told", BAD_RANGES.values(), ids=BAD_RANGES)
async def test_a_range_that_is_not_there_is_refused(
    stubs: Stubs, name: str, after: int, through: int, told: str
) -> None:
    await publish(stubs, "1", "2")
    with pytest.raises(grpc.aio.AioRpcError, match=told):
        await read(stubs, name, after, through)


async def test_all_and_others_do_not_go_together(stubs: Stubs) -> None:
    with pytest.raises(grpc.aio.AioRpcError, match="alone"):
        await stubs.delivery.GetRanges(wire.GetRangesRequest(subscriptions=[ALL, NAME]))
    with pytest.raises(grpc.aio.AioRpcError, match="1,001 is more"):
        await stubs.delivery.GetRanges(
            wire.GetRangesRequest(subscriptions=[f"subscriptions/s{n}" for n in range(1001)])
        )


async def test_what_was_acknowledged_by_a_point_is_not_delivered_any_more(stubs: Stubs) -> None:
    await publish(stubs, "1", "2", "3")
    await acknowledge_through(stubs, a=2)
    assert await floor(stubs) == 2
    assert [one.sequences[0] for one in await messages(await attach(stubs, NAME), 1)] == [3]
    await acknowledge_through(stubs, a=1)
    assert await floor(stubs) == 2


async def test_a_point_settles_what_is_on_its_way_and_no_more(stubs: Stubs) -> None:
    call = await attach(stubs, NAME, credit=wire.Credit(messages=2, bytes=1 << 20))
    await publish(stubs, "1", "2", "3", "4")
    first, second = await messages(call, 2)
    await acknowledge_through(stubs, a=1)
    await acknowledge(call, second)
    assert first.document.id == "1"
    await call.write(wire.AttachRequest(credit={"messages": 2, "bytes": 1000}))
    assert [one.document.id for one in await messages(call, 2)] == ["3", "4"]
    assert await floor(stubs) == 2


async def test_a_point_settles_what_was_pulled(stubs: Stubs) -> None:
    await publish(stubs, "1", "2", "3")
    await stubs.delivery.Pull(wire.PullRequest(subscription=NAME))
    await acknowledge_through(stubs, a=2)
    zero = wire.ModifyAckDeadlineRequest(subscription=NAME, sequences=[1, 2, 3])
    await stubs.delivery.ModifyAckDeadline(zero)
    again = (await stubs.delivery.Pull(wire.PullRequest(subscription=NAME, wait={"seconds": 20}))).messages
    assert [one.sequence for one in again] == [3]


async def test_all_of_a_tenant_is_acknowledged_by_a_position(stubs: Stubs) -> None:
    await create(stubs, "b", filter={"xpath": "//b"})
    documents = [document("1"), document("2", "<b/>"), document("3"), document("4")]
    await stubs.publish.Publish(PublishRequest(documents=documents))
    mark = wire.Mark(subscription=ALL, after=2, through=3)
    response = await stubs.delivery.AcknowledgeThrough(wire.AcknowledgeThroughRequest(marks=[mark]))
    assert not response.elsewhere
    assert await floor(stubs) == 2
    b = await stubs.subscriptions.GetSubscription(GetSubscriptionRequest(name="subscriptions/b"))
    assert (b.progress.floor_sequence, b.progress.backlog) == (0, 1)
