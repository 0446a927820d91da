"""Attached streams: what they get, in which order, how much at once, and what becomes of what they do not ack."""

import asyncio

import numpy as np
import pytest
from delivery_scene import PLENTY, SHARED, Scene, Stage, ids, messages, soon, subscription

from server.deliveries import Credit, DeliverySettings, Goodbye, GoodbyeReason, Heartbeat, Messages, SlotsJoined
from server.errors import AlreadyAttached, Draining, InvalidRequest
from server.subscriptions import DeliveryPolicy, Subscription, Webhook


async def test_a_stream_is_told_its_slots_first(scene: Stage) -> None:
    async with scene() as stage:
        stream = await stage.deliveries.attach("default", [subscription(7), subscription(3)], credit=PLENTY)
        await stage.publish(3)
        assert await stream.next() == SlotsJoined([0, 1], ["subscriptions/s7", "subscriptions/s3"])
        assert [message.slots.tolist() for message in await messages(stream)] == [[1]]


async def test_one_document_is_one_message_for_all_who_want_it(scene: Stage) -> None:
    async with scene() as stage:
        stream = await stage.attach(3, 5, 9)
        await stage.publish(5)
        await stage.publish(3, 4, 5, 9)
        [_, message] = await messages(stream)
        assert message.slots.tolist() == [0, 1, 2]
        assert message.slots.dtype == np.uint32
        assert message.sequences.tolist() == [1, 2, 1]
        assert message.attempt == 1
        stream.ack([message.message_id])
        assert [stage.done(number) for number in (3, 4, 5, 9)] == [{1}, set(), {2}, {1}]


async def test_no_more_messages_come_than_there_is_credit_for(scene: Stage) -> None:
    async with scene() as stage:
        stream = await stage.attach(1, credit=Credit(2, 1 << 20))
        for _ in range(5):
            await stage.publish(1)
        assert await ids(stream) == ["d1", "d2"]
        stream.grant(2, 0)
        assert await ids(stream) == ["d3", "d4"]
        stream.grant(5, 0)
        assert await ids(stream) == ["d5"]
        await stage.publish(1)
        assert await ids(stream) == ["d6"]


async def test_no_more_bytes_come_than_there_is_credit_for(scene: Stage) -> None:
    async with scene() as stage:
        stream = await stage.attach(1, credit=Credit(100, 250))
        for _ in range(3):
            await stage.publish(1, xml=b"x" * 100)
        assert await ids(stream) == ["d1", "d2"]
        assert stream.credit_bytes == 250 - 2 * 102
        stream.grant(0, 100)
        assert await ids(stream) == ["d3"]


async def test_a_document_larger_than_all_credit_comes_when_nothing_else_is_held(scene: Stage) -> None:
    async with scene() as stage:
        stream = await stage.attach(1, credit=Credit(100, 250))
        await stage.publish(1)
        await stage.publish(1, xml=b"x" * 1000)
        [first] = await messages(stream)
        assert await ids(stream) == []
        stream.ack([first.message_id])
        assert await ids(stream) == ["d2"]
        assert stream.credit_bytes < 0


async def test_a_stalled_stream_holds_back_only_itself(scene: Stage) -> None:
    async with scene() as stage:
        stalled = await stage.attach(1, credit=Credit(1, 1 << 20))
        other = await stage.attach(2)
        for _ in range(100):
            await stage.publish(1, 2)
        assert len(await ids(other)) == 100
        assert len(stalled.held) == 1


async def test_a_consumer_that_acknowledges_nothing_gets_so_much_and_no_more(scene: Stage) -> None:
    async with scene(DeliverySettings(max_unacked_messages=3)) as stage:
        stream = await stage.attach(1)
        for _ in range(10):
            await stage.publish(1)
        found = await messages(stream)
        assert [message.document.id for message in found] == ["d1", "d2", "d3"]
        stream.ack([found[1].message_id])
        assert await ids(stream) == ["d4"]


@pytest.mark.parametrize("credit", [Credit(0, 100), Credit(100, 0)])
async def test_both_kinds_of_credit_are_needed(scene: Stage, credit: Credit) -> None:
    async with scene() as stage:
        stream = await stage.attach(1, credit=credit)
        await stage.publish(1)
        assert await ids(stream) == []


async def test_a_message_that_is_not_acknowledged_in_time_comes_again(scene: Stage) -> None:
    async with scene(DeliverySettings(ack_deadline=10, min_backoff=2)) as stage:
        stream = await stage.attach(1)
        await stage.publish(1)
        [first] = await messages(stream)
        await stage.pass_time(9)
        assert await ids(stream) == []
        await stage.pass_time(1.1)
        assert stage.counts["expired"] == 1
        await stage.pass_time(2.1)
        [again] = await messages(stream)
        assert again.document is first.document
        assert again.attempt == 2
        assert again.message_id != first.message_id
        stream.ack([first.message_id])
        assert stage.done(1) == set()


async def test_an_extended_deadline_counts_from_now(scene: Stage) -> None:
    async with scene(DeliverySettings(ack_deadline=10)) as stage:
        stream = await stage.attach(1)
        await stage.publish(1)
        [message] = await messages(stream)
        await stage.pass_time(9)
        stream.extend([message.message_id], 60)
        await stage.pass_time(59)
        assert stage.counts["expired"] == 0
        await stage.pass_time(1.1)
        assert stage.counts["expired"] == 1


async def test_the_pause_doubles_up_to_a_limit_and_then_the_message_is_a_dead_letter(scene: Stage) -> None:
    async with scene(DeliverySettings(min_backoff=1, max_backoff=3, max_attempts=4)) as stage:
        stream = await stage.attach(1)
        document = await stage.publish(1)
        for attempt, pause in [(1, 1), (2, 2), (3, 3)]:
            [message] = await messages(stream)
            assert message.attempt == attempt
            stream.nack([message.message_id])
            await stage.pass_time(pause - 0.1)
            assert await ids(stream) == []
            await stage.pass_time(0.2)
        [message] = await messages(stream)
        stream.nack([message.message_id])
        await stage.settle()
        [letter] = await stage.deliveries.dead_letters(subscription(1))
        assert (letter.sequence, letter.document, letter.attempts) == (1, document, 4)
        assert letter.reason == "refused by the consumer"
        assert stage.done(1) == {1}
        assert stage.counts["dead_lettered"] == 1


async def test_a_refusal_may_say_when(scene: Stage) -> None:
    async with scene() as stage:
        stream = await stage.attach(1)
        await stage.publish(1)
        [message] = await messages(stream)
        stream.nack([message.message_id], delay=100)
        await stage.pass_time(99)
        assert await ids(stream) == []
        await stage.pass_time(1.1)
        assert await ids(stream) == ["d1"]


async def test_the_strictest_subscription_decides_for_a_message_of_several(scene: Stage) -> None:
    policies = {1: DeliveryPolicy(max_attempts=5), 2: DeliveryPolicy(max_attempts=1), 3: DeliveryPolicy()}
    async with scene() as stage:
        wanted = [subscription(number, delivery=policy) for number, policy in policies.items()]
        stream = await stage.deliveries.attach("default", wanted, credit=PLENTY)
        await stream.next()
        await stage.publish(1, 2, 3)
        [message] = await messages(stream)
        stream.nack([message.message_id])
        await stage.settle()
        assert [letter.number for letter in await stage.letters_of(1, 2, 3)] == [1, 2, 3]


async def test_attempts_survive_detaching(scene: Stage) -> None:
    async with scene() as stage:
        stream = await stage.attach(1)
        await stage.publish(1)
        await stage.publish(1)
        found = await messages(stream)
        stream.nack([found[0].message_id])
        await stream.close()
        again = await messages(await stage.attach(1))
        assert [(message.document.id, message.attempt) for message in again] == [("d1", 2), ("d2", 2)]


async def test_a_closed_stream_counts_against_the_oldest_of_its_messages_only(scene: Stage) -> None:
    async with scene(DeliverySettings(max_attempts=2)) as stage:
        for _ in range(3):
            await stage.publish(1)
        for attempts in ([1, 1, 1], [2, 1, 1]):
            stream = await stage.attach(1)
            assert [message.attempt for message in await messages(stream)] == attempts
            await stream.close()
        await stage.settle()
        assert [letter.sequence for letter in await stage.letters_of(1)] == [1]
        assert await ids(await stage.attach(1)) == ["d2", "d3"]


async def test_streams_share_the_messages_among_them(scene: Stage) -> None:
    async with scene() as stage:
        first, second = await stage.attach(1, 2, mode=SHARED), await stage.attach(2, 1, mode=SHARED)
        for _ in range(4):
            await stage.publish(1)
        assert (await ids(first), await ids(second)) == (["d1", "d3"], ["d2", "d4"])


async def test_what_a_closed_stream_held_goes_to_the_others_at_once(scene: Stage) -> None:
    async with scene() as stage:
        first, second = (
            await stage.attach(1, mode=SHARED),
            await stage.attach(1, mode=SHARED, credit=Credit(0, 1 << 20)),
        )
        for _ in range(3):
            await stage.publish(1)
        assert await ids(first) == ["d1", "d2", "d3"]
        second.grant(10, 0)
        await first.close()
        await stage.pass_time(0.1)
        found = await messages(second)
        assert [(message.document.id, message.attempt) for message in found] == [("d2", 1), ("d3", 1), ("d1", 2)]


async def test_an_exclusive_stream_is_alone(scene: Stage) -> None:
    async with scene() as stage:
        await stage.attach(1, 2)
        for mode in ({}, {"mode": SHARED}):
            with pytest.raises(AlreadyAttached, match="subscriptions/s2"):
                await stage.attach(2, 3, **mode)
        await stage.attach(3)


async def test_shared_streams_have_the_same_list(scene: Stage) -> None:
    async with scene() as stage:
        await stage.attach(1, 2, mode=SHARED)
        with pytest.raises(AlreadyAttached, match="the same list"):
            await stage.attach(1, mode=SHARED)
        with pytest.raises(AlreadyAttached, match="shared mode"):
            await stage.attach(1, 2)


async def test_a_newer_stream_of_the_same_consumer_takes_over(scene: Stage) -> None:
    async with scene() as stage:
        old = await stage.attach(1, consumer="worker-1")
        await stage.publish(1)
        assert await ids(old) == ["d1"]
        new = await stage.attach(1, consumer="worker-1")
        goodbye = await old.next()
        assert isinstance(goodbye, Goodbye)
        assert goodbye.reason is GoodbyeReason.REPLACED
        assert await ids(new) == ["d1"]
        old.ack([1])
        await old.close()
        assert stage.done(1) == set()


async def test_of_shared_streams_only_the_one_of_the_same_name_is_replaced(scene: Stage) -> None:
    async with scene() as stage:
        one, two = [await stage.attach(1, mode=SHARED, consumer=name) for name in ("one", "two")]
        new = await stage.attach(1, mode=SHARED, consumer="one")
        assert isinstance(await one.next(), Goodbye)
        await stage.publish(1)
        await stage.publish(1)
        assert sorted(await ids(two) + await ids(new)) == ["d1", "d2"]


async def test_all_of_a_tenant_includes_what_is_created_later(scene: Stage) -> None:
    async with scene() as stage:
        stream = await stage.attach(1, follow_tenant=True)
        stage.deliveries.subscription_created(subscription(2))
        stage.deliveries.subscription_created(subscription(3, tenant="other"))
        stage.deliveries.subscription_created(subscription(4, push=Webhook("https://example.com")))
        await stage.publish(1, 2, 3, 4)
        assert await stream.next() == SlotsJoined([1], ["subscriptions/s2"])
        assert [message.slots.tolist() for message in await messages(stream)] == [[0, 1]]


async def test_a_tenant_without_subscriptions_can_be_followed(scene: Stage) -> None:
    async with scene() as stage:
        stream = await stage.attach(follow_tenant=True)
        with pytest.raises(AlreadyAttached, match="subscriptions/-"):
            await stage.attach(follow_tenant=True)
        stage.deliveries.subscription_created(subscription(2))
        assert await stream.next() == SlotsJoined([0], ["subscriptions/s2"])


async def test_who_joins_late_gets_what_it_has_missed(scene: Stage) -> None:
    async with scene() as stage:
        stream = await stage.attach(1, follow_tenant=True)
        await stage.publish(2)
        await stage.publish(1)
        stage.deliveries.subscription_created(subscription(2))
        assert isinstance(await stream.next(), SlotsJoined)
        assert await ids(stream) == ["d2", "d1"]
        await stage.publish(1, 2)
        assert [message.slots.tolist() for message in await messages(stream)] == [[0, 1]]


async def test_who_joins_a_stream_that_is_behind_misses_nothing(scene: Stage) -> None:
    async with scene() as stage:
        stream = await stage.attach(1, follow_tenant=True, credit=Credit(0, 1 << 20))
        await stage.publish(1)
        stage.deliveries.subscription_created(subscription(2))
        await stage.publish(1, 2)
        assert isinstance(await stream.next(), SlotsJoined)
        stream.grant(100, 0)
        await stage.settle()
        await stage.publish(1, 2)
        found = await messages(stream)
        seen = [pair for message in found for pair in zip(message.slots, message.sequences, strict=True)]
        assert sorted(seen) == [(0, 1), (0, 2), (0, 3), (1, 1), (1, 2)]


async def test_what_waits_for_a_deleted_subscription_is_dropped(scene: Stage) -> None:
    async with scene() as stage:
        stream = await stage.attach(1, 2)
        await stage.publish(1, 2)
        await stage.publish(1)
        found = await messages(stream)
        stage.deliveries.subscription_deleted(subscription(1))
        stream.nack([message.message_id for message in found], delay=0)
        await stage.pass_time(0.1)
        assert [message.slots.tolist() for message in await messages(stream)] == [[1]]
        await stage.publish(1, 2)
        assert [message.sequences.tolist() for message in await messages(stream)] == [[2]]


async def test_the_last_subscription_takes_the_stream_with_it(scene: Stage) -> None:
    async with scene() as stage:
        stream = await stage.attach(1, 2)
        stage.deliveries.subscription_deleted(subscription(1))
        assert await soon(stream) is None
        stage.deliveries.subscription_deleted(subscription(2))
        goodbye = await stream.next()
        assert isinstance(goodbye, Goodbye)
        assert (goodbye.reason, goodbye.message) == (GoodbyeReason.DELETED, "subscriptions/s2 was deleted")


async def test_an_updated_policy_holds_from_the_next_message_on(scene: Stage) -> None:
    async with scene() as stage:
        stream = await stage.attach(1)
        stage.deliveries.subscription_updated(subscription(1, delivery=DeliveryPolicy(max_attempts=1)))
        await stage.publish(1)
        [message] = await messages(stream)
        stream.nack([message.message_id])
        await stage.settle()
        assert len(await stage.letters_of(1)) == 1


async def test_an_idle_stream_hears_how_much_waits_and_for_how_long(scene: Stage) -> None:
    async with scene(DeliverySettings(heartbeat=5, ack_deadline=1000)) as stage:
        stream = await stage.attach(1, 2, credit=Credit(1, 1 << 20))
        await stage.publish(1, 2)
        await stage.pass_time(20)
        await stage.publish(1)
        await messages(stream)
        waiting = asyncio.ensure_future(stream.next())
        await stage.settle()
        await stage.pass_time(5.1)
        beat = await waiting
        assert isinstance(beat, Heartbeat)
        assert (beat.backlog, round(beat.oldest_age)) == (3, 25)


async def test_draining_says_goodbye_and_lets_nobody_in(scene: Stage) -> None:
    async with scene() as stage:
        stream = await stage.attach(1)
        await stage.publish(1)
        [message] = await messages(stream)
        await stage.publish(1)
        await stage.deliveries.drain()
        goodbye = await stream.next()
        assert isinstance(goodbye, Goodbye)
        assert goodbye.reason is GoodbyeReason.DRAINING
        stream.ack([message.message_id])
        assert stage.done(1) == {1}
        with pytest.raises(Draining):
            await stage.attach(2)


async def test_nothing_to_attach_to_is_refused(scene: Stage) -> None:
    async with scene() as stage:
        with pytest.raises(InvalidRequest, match="at least one name"):
            await stage.attach()
        with pytest.raises(InvalidRequest, match="is pushed"):
            await stage.deliveries.attach("default", [subscription(1, push=Webhook("https://example.com"))])


def leftovers(stage: Scene) -> int:
    return len(stage.deliveries._environment.timers) + len(stage.deliveries._consumers)


async def test_nothing_is_left_of_a_closed_stream(scene: Stage) -> None:
    async with scene() as stage:
        stream = await stage.attach(1, 2)
        for _ in range(3):
            await stage.publish(1, 2)
        found = await messages(stream)
        stream.nack([found[0].message_id])
        await stream.close()
        assert leftovers(stage) == 0
        assert not stage.deliveries.is_attached(subscription(1))


async def test_what_comes_again_is_not_overtaken_for_ever_by_smaller_documents(scene: Stage) -> None:
    async with scene() as stage:
        stream = await stage.attach(1, credit=Credit(100, 1200))
        await stage.publish(1, xml=b"x" * 1000)
        [large] = await messages(stream)
        await stage.publish(1)
        assert await ids(stream) == ["d2"]
        stream.nack([large.message_id], delay=0)
        await stage.pass_time(0.1)
        await stage.publish(1)
        assert await ids(stream) == []
        stream.grant(0, 1000)
        assert await ids(stream) == ["d1", "d3"]


async def test_nobody_is_missed_who_comes_while_all_are_listed(scene: Stage) -> None:
    async with scene() as stage:

        async def list_all() -> list[Subscription]:
            stage.deliveries.subscription_created(subscription(3))
            stage.deliveries.subscription_created(subscription(4, tenant="other"))
            stage.deliveries.subscription_deleted(subscription(2))
            return [subscription(1), subscription(2)]

        stream = await stage.deliveries.attach_all("default", list_all, credit=PLENTY)
        stage.deliveries.subscription_created(subscription(5))
        assert await stream.next() == SlotsJoined(
            [0, 1, 2], ["subscriptions/s1", "subscriptions/s3", "subscriptions/s5"]
        )


async def test_a_long_list_of_slots_comes_in_parts_before_any_message(scene: Stage) -> None:
    async with scene() as stage:
        wanted = [subscription(number) for number in range(1, 4001)]
        stream = await stage.deliveries.attach("default", wanted, credit=PLENTY)
        stream.join([(slot, "again") for slot in range(7000)])
        await stage.publish(1)
        parts = [await stream.next() for _ in range(3)]
        assert [len(part.slots) for part in parts[:2] if isinstance(part, SlotsJoined)] == [10_000, 1000]
        assert isinstance(parts[2], Messages)


async def test_what_many_subscriptions_want_is_heavy_though_the_document_is_small(scene: Stage) -> None:
    async with scene(DeliverySettings(max_batch_bytes=50_000, max_unacked_bytes=150_000)) as stage:
        stream = await stage.attach(*range(1, 2001))
        for _ in range(6):
            await stage.publish(*range(1, 2001))
        events = [await soon(stream) for _ in range(4)]
        assert [len(event.messages) for event in events if isinstance(event, Messages)] == [1, 1, 1]
        assert events[3] is None


async def test_nothing_is_remembered_of_a_deleted_subscription(scene: Stage) -> None:
    async with scene(DeliverySettings(max_attempts=1)) as stage:
        stream = await stage.attach(1, 2)
        await stage.publish(1)
        [message] = await messages(stream)
        stage.deliveries.subscription_deleted(subscription(1))
        stream.nack([message.message_id])
        await stage.settle()
        assert await stage.letters_of(1) == []
        assert stage.cursors.attempts(1, 1) == 0
