"""Seek: deliver again from an earlier point, or go on at a later one."""

import pytest
from delivery_scene import START, Scene, Stage, ids, messages, subscription

from server.errors import InvalidRequest

ONE = subscription(1)


async def publish_every_minute(stage: Scene, n_documents: int, *numbers: int) -> None:
    for _ in range(n_documents):
        await stage.publish(*numbers)
        stage.now += 60


async def test_back_to_a_sequence(scene: Stage) -> None:
    async with scene() as stage:
        await publish_every_minute(stage, 4, 1)
        stream = await stage.attach(1)
        stream.ack([message.message_id for message in await messages(stream)])
        assert await stage.deliveries.seek(ONE, sequence=3) == 3
        assert await ids(stream) == ["d3", "d4"]
        await stage.publish(1)
        assert await ids(stream) == ["d5"]


SECONDS = {"exactly_then": (60, 2), "between": (61, 3), "before_all": (-1000, 1), "after_all": (1000, 4)}


@pytest.mark.parametrize("seconds, expected", SECONDS.values(), ids=SECONDS)
async def test_to_the_first_one_published_at_or_after_a_time(scene: Stage, seconds: float, expected: int) -> None:
    async with scene() as stage:
        await publish_every_minute(stage, 3, 1)
        assert await stage.deliveries.seek(ONE, time=START + seconds) == expected
        assert await ids(await stage.attach(1)) == [f"d{n}" for n in range(expected, 4)]


async def test_forward_leaves_out_what_waits(scene: Stage) -> None:
    async with scene() as stage:
        await publish_every_minute(stage, 3, 1)
        assert await stage.deliveries.seek(ONE, sequence=100) == 4
        stream = await stage.attach(1)
        await stage.publish(1)
        assert await ids(stream) == ["d4"]


async def test_an_ack_from_before_the_seek_means_nothing_after_it(scene: Stage) -> None:
    async with scene() as stage:
        stream = await stage.attach(1, 2)
        await stage.publish(1, 2)
        [before] = await messages(stream)
        await stage.deliveries.seek(ONE, sequence=1)
        stream.ack([before.message_id])
        assert (stage.done(1), stage.done(2)) == (set(), {1})
        [after] = await messages(stream)
        assert after.slots.tolist() == [0]
        stream.ack([after.message_id])
        assert (stage.done(1), stage.done(2)) == ({1}, {1})


async def test_one_subscription_goes_back_and_the_others_of_the_stream_go_on(scene: Stage) -> None:
    async with scene() as stage:
        stream = await stage.attach(1, 2)
        await publish_every_minute(stage, 2, 1, 2)
        stream.ack([message.message_id for message in await messages(stream)])
        await stage.deliveries.seek(ONE, sequence=1)
        assert [message.slots.tolist() for message in await messages(stream)] == [[0], [0]]
        await stage.publish(1, 2)
        assert [message.slots.tolist() for message in await messages(stream)] == [[0, 1]]


async def test_what_rests_or_waits_to_be_sent_is_forgotten(scene: Stage) -> None:
    async with scene() as stage:
        stream = await stage.attach(1)
        await publish_every_minute(stage, 2, 1)
        [first, _] = await messages(stream)
        stream.nack([first.message_id])
        await stage.publish(1)
        await stage.deliveries.seek(ONE, sequence=4)
        await stage.pass_time(100)
        assert await ids(stream) == []


@pytest.mark.parametrize("target", [{}, {"sequence": 0}])
async def test_a_target_that_is_none_is_refused(scene: Stage, target: dict[str, int]) -> None:
    async with scene() as stage:
        with pytest.raises(InvalidRequest):
            await stage.deliveries.seek(ONE, **target)
