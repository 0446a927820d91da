"""Pull, acknowledge, modify the deadline: messages without a stream, known by their sequence."""

import asyncio

import pytest
from delivery_scene import SHARED, Scene, Stage, ids, subscription

from server.deliveries import DeliverySettings
from server.errors import AlreadyAttached, InvalidRequest
from server.subscriptions import Schedule

ONE = subscription(1)


async def pull(stage: Scene, max_messages: int = 0, wait: float = 0.0) -> list[tuple[int, int]]:
    """Sequence and attempt of what a pull brings."""
    found = await stage.deliveries.pull(ONE, max_messages, wait)
    return [(message.sequence, message.attempt) for message in found]


async def test_a_pull_brings_what_waits_and_the_next_one_the_rest(scene: Stage) -> None:
    async with scene() as stage:
        for _ in range(5):
            await stage.publish(1)
        assert await pull(stage, 3) == [(1, 1), (2, 1), (3, 1)]
        assert await pull(stage, 3) == [(4, 1), (5, 1)]
        assert await pull(stage, 3) == []


async def test_what_is_acknowledged_is_durable_and_does_not_come_again(scene: Stage) -> None:
    async with scene() as stage:
        for _ in range(3):
            await stage.publish(1)
        await pull(stage)
        await stage.deliveries.acknowledge(ONE, [1, 3])
        await stage.pass_time(31)
        await stage.pass_time(1)
        assert await pull(stage) == [(2, 2)]


async def test_a_pull_waits_for_the_first_message(scene: Stage) -> None:
    async with scene() as stage:
        pulling = asyncio.ensure_future(pull(stage, wait=60))
        await stage.settle()
        await stage.publish(1)
        assert await pulling == [(1, 1)]


async def test_a_pull_waits_no_longer_than_it_was_told(scene: Stage) -> None:
    async with scene() as stage:
        pulling = asyncio.ensure_future(pull(stage, wait=2))
        await stage.settle()
        await stage.pass_time(2.1)
        assert await pulling == []
        await stage.publish(1)
        assert await pull(stage) == [(1, 1)]


async def test_a_pull_that_was_cancelled_holds_nothing_that_it_has_not_seen(scene: Stage) -> None:
    async with scene() as stage:
        pulling = asyncio.ensure_future(pull(stage, wait=60))
        await stage.settle()
        dispatch = stage.deliveries.dispatch
        stage.log.on_append = lambda records: (dispatch(records), pulling.cancel())
        await stage.publish(1)
        await asyncio.wait({pulling})
        assert await pull(stage) == [(1, 1)]


async def test_pulls_share_what_there_is(scene: Stage) -> None:
    async with scene() as stage:
        pulling = [asyncio.ensure_future(pull(stage, 1, wait=60)) for _ in range(3)]
        await stage.settle()
        for _ in range(3):
            await stage.publish(1)
        assert sorted(await asyncio.gather(*pulling)) == [[(1, 1)], [(2, 1)], [(3, 1)]]


async def test_a_later_deadline_keeps_a_message_out_longer(scene: Stage) -> None:
    async with scene() as stage:
        await stage.publish(1)
        await pull(stage)
        await stage.deliveries.modify_ack_deadline(ONE, [1], 100)
        await stage.pass_time(99)
        assert await pull(stage) == []
        await stage.pass_time(1.1)
        await stage.pass_time(1)
        assert await pull(stage) == [(1, 2)]


async def test_a_deadline_of_zero_returns_a_message(scene: Stage) -> None:
    async with scene() as stage:
        await stage.publish(1)
        await pull(stage)
        await stage.deliveries.modify_ack_deadline(ONE, [1], 0)
        await stage.pass_time(0.1)
        assert await pull(stage) == [(1, 2)]


async def test_who_pulls_says_when_whatever_the_schedule(scene: Stage) -> None:
    async with scene() as stage:
        await stage.publish(1)
        found = await stage.deliveries.pull(subscription(1, schedule=Schedule(every=3600)))
        assert [message.sequence for message in found] == [1]


async def test_there_is_no_pull_while_a_stream_has_the_subscription(scene: Stage) -> None:
    async with scene() as stage:
        stream = await stage.attach(1)
        with pytest.raises(AlreadyAttached):
            await pull(stage)
        await stream.close()
        assert await pull(stage) == []


async def test_a_pull_takes_part_in_shared_streams_of_the_one_subscription(scene: Stage) -> None:
    async with scene() as stage:
        stream = await stage.attach(1, mode=SHARED)
        pulling = asyncio.ensure_future(pull(stage, 1, wait=60))
        await stage.settle()
        await stage.publish(1)
        await stage.publish(1)
        assert await ids(stream) == ["d1"]
        assert await pulling == [(2, 1)]
        await stream.close()
        assert stage.deliveries.is_attached(ONE) is False
        await stage.deliveries.acknowledge(ONE, [2])
        await stage.pass_time(0.1)
        assert await pull(stage) == [(1, 2)]


async def test_a_stream_takes_over_from_pulls(scene: Stage) -> None:
    async with scene() as stage:
        await stage.publish(1)
        assert await pull(stage) == [(1, 1)]
        pulling = asyncio.ensure_future(pull(stage, wait=60))
        await stage.settle()
        stream = await stage.attach(1)
        assert await pulling == []
        assert await ids(stream) == ["d1"]
        await stage.deliveries.acknowledge(ONE, [1])
        assert stage.done(1) == {1}


async def test_nothing_is_left_of_a_subscription_that_was_pulled_empty(scene: Stage) -> None:
    async with scene(DeliverySettings(min_backoff=5)) as stage:
        await stage.publish(1)
        await stage.publish(1)
        await pull(stage)
        await stage.deliveries.acknowledge(ONE, [1])
        await stage.pass_time(31)
        assert await pull(stage) == []
        await stage.pass_time(6)
        assert len(stage.deliveries._consumers) == 0
        assert await pull(stage) == [(2, 2)]


@pytest.mark.parametrize("sequence", [0, -1, 3])
async def test_only_sequences_that_there_are_can_be_acknowledged(scene: Stage, sequence: int) -> None:
    async with scene() as stage:
        await stage.publish(1)
        await stage.publish(1)
        with pytest.raises(InvalidRequest, match="from 1 to 2"):
            await stage.deliveries.acknowledge(ONE, [1, sequence])
        assert stage.done(1) == set()
