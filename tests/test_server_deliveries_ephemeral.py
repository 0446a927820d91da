"""Ephemeral streams: filters that live as long as their stream, and keep nothing."""

import asyncio

import numpy as np
import pytest
from delivery_scene import PLENTY, Scene, ids, messages, scene, soon

from server.deliveries import (
    EPHEMERAL,
    Credit,
    DeliverySettings,
    EphemeralAttachment,
    Goodbye,
    GoodbyeReason,
    Heartbeat,
)
from server.documents import Document


def numbers(*places: int) -> np.ndarray:
    return np.array(places, np.int64) + EPHEMERAL


async def attach(stage: Scene, first: int, n_filters: int, credit: Credit = PLENTY) -> EphemeralAttachment:
    stream = stage.deliveries.attach_ephemeral("default", numbers(*range(first, first + n_filters)), credit)
    await stream.next()
    return stream


def publish(stage: Scene, document_id: str, *places: int, xml: bytes = b"<a/>") -> None:
    stage.deliveries.dispatch_ephemeral(Document(document_id, xml=xml, publish_time=stage.now), numbers(*places))


async def test_slots_are_places_in_the_list_of_filters() -> None:
    async with scene() as stage:
        one, two, three = await attach(stage, 0, 3), await attach(stage, 3, 1), await attach(stage, 10, 5)
        publish(stage, "a", 1, 2, 10, 14)
        publish(stage, "b", 3, 7, 99)
        found = [[(m.document.id, m.slots.tolist()) for m in await messages(stream)] for stream in (one, two, three)]
        assert found == [[("a", [1, 2])], [("b", [0])], [("a", [0, 4])]]


async def test_there_is_nothing_to_acknowledge() -> None:
    async with scene() as stage:
        stream = await attach(stage, 0, 1)
        publish(stage, "a", 0)
        [message] = await messages(stream)
        assert (message.message_id, message.sequences.tolist(), message.attempt) == (0, [], 1)
        stream.ack([0])
        stream.nack([0])
        stream.extend([0], 10)
        assert await ids(stream) == []


async def test_filters_of_a_closed_stream_match_nothing() -> None:
    async with scene() as stage:
        one, two = await attach(stage, 0, 2), await attach(stage, 2, 2)
        await one.close()
        publish(stage, "a", 0, 1, 3)
        assert await ids(two) == ["a"]
        await two.close()
        publish(stage, "b", 3)


async def test_no_more_comes_than_there_is_credit_for() -> None:
    async with scene() as stage:
        stream = await attach(stage, 0, 1, Credit(1, 1000))
        for name in "abc":
            publish(stage, name, 0, xml=b"x" * 600)
        assert await ids(stream) == ["a"]
        stream.grant(10, 0)
        assert await ids(stream) == ["b"]
        stream.grant(0, 1000)
        assert await ids(stream) == ["c"]


TOO_MUCH = {
    "messages": DeliverySettings(ephemeral_buffer_messages=2),
    "bytes": DeliverySettings(ephemeral_buffer_bytes=12),
}


@pytest.mark.parametrize("settings", TOO_MUCH.values(), ids=TOO_MUCH)
async def test_a_stream_that_does_not_keep_up_is_told_goodbye(settings: DeliverySettings) -> None:
    async with scene(settings) as stage:
        slow, other = await attach(stage, 0, 1, Credit(0, 0)), await attach(stage, 1, 1)
        for name in "abc":
            publish(stage, name, 0, 1)
            assert await ids(other) == [name]
        goodbye = await slow.next()
        assert isinstance(goodbye, Goodbye)
        assert goodbye.reason is GoodbyeReason.TOO_SLOW
        publish(stage, "d", 0)
        assert not slow._buffer


async def test_an_idle_stream_has_a_heartbeat() -> None:
    async with scene() as stage:
        stream = await attach(stage, 0, 1, Credit(0, 0))
        publish(stage, "a", 0)
        waiting = asyncio.ensure_future(stream.next())
        await stage.settle()
        await stage.pass_time(16)
        assert await waiting == Heartbeat(1, 16)
        assert await soon(stream) is None


async def test_ids_follow_each_other() -> None:
    async with scene() as stage:
        for wrong in (numbers(0, 2), np.array([5]), numbers()):
            with pytest.raises(ValueError, match="follow each other"):
                stage.deliveries.attach_ephemeral("default", wrong, PLENTY)
