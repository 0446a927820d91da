"""Feeds that go live, fall behind and catch up, over a log that can be made to misbehave."""

import numpy as np
import pytest
from delivery_scene import PLENTY, ids, messages, scene, subscription

from server.deliveries import DeliverySettings
from server.documents import Document
from server.errors import StoreUnavailable


async def test_what_waits_comes_first_then_what_happens() -> None:
    async with scene() as stage:
        for _ in range(5):
            await stage.publish(1)
        stage.cursors.acknowledge(np.array([1, 1]), np.array([1, 3]))
        stream = await stage.attach(1)
        assert await ids(stream) == ["d2", "d4", "d5"]
        n_reads = stage.log.n_reads
        await stage.publish(1)
        assert await ids(stream) == ["d6"]
        assert stage.log.n_reads == n_reads


async def test_nothing_is_read_for_a_stream_without_backlog() -> None:
    async with scene() as stage:
        await stage.attach(1)
        await stage.settle()
        assert stage.log.n_reads == 0


async def test_what_is_published_while_a_stream_catches_up_is_neither_missed_nor_doubled() -> None:
    async with scene(DeliverySettings(max_read_messages=2)) as stage:
        for _ in range(5):
            await stage.publish(1)
        meanwhile = iter([Document("d6"), Document("d7"), Document("d8")])
        stage.log.before_read = lambda: [stage.log.put(document, 1) for document in meanwhile][:0]
        stream = await stage.attach(1)
        await stage.settle()
        stage.log.put(Document("d9"), 1)
        assert await ids(stream) == [f"d{n}" for n in range(1, 10)]


async def test_a_dead_letter_waits_for_a_store_that_is_away() -> None:
    async with scene(DeliverySettings(max_attempts=1)) as stage:
        stage.letters.failures = [StoreUnavailable("away", retry_after=0.0)] * 2
        stream = await stage.attach(1)
        await stage.publish(1)
        [message] = await messages(stream)
        stream.nack([message.message_id])
        assert stage.done(1) == set()
        await stage.settle()
        assert stage.done(1) == {1}
        assert len(stage.letters.letters) == 1


async def test_a_log_that_cannot_be_read_for_a_moment_is_read_again() -> None:
    async with scene() as stage:
        await stage.publish(1)
        failures = iter([StoreUnavailable("away", retry_after=0.0)])

        def fail_once() -> None:
            for failure in failures:
                raise failure

        stage.log.before_read = fail_once
        assert await ids(await stage.attach(1)) == ["d1"]


async def test_a_log_that_is_broken_ends_the_stream_with_the_error(caplog: pytest.LogCaptureFixture) -> None:
    async with scene() as stage:
        await stage.publish(1)

        def fail() -> None:
            raise ValueError("broken")

        stage.log.before_read = fail
        stream = await stage.deliveries.attach("default", [subscription(1)], credit=PLENTY)
        await stage.settle()
        with pytest.raises(ValueError, match="broken"):
            await stream.next()
        assert "broken" in caplog.text


async def test_a_record_that_can_be_read_before_it_is_announced_comes_once() -> None:
    async with scene() as stage:
        await stage.publish(1)
        announce, stage.log.on_append = stage.log.on_append, lambda records: None
        await stage.publish(1)
        stream = await stage.attach(1)
        assert await ids(stream) == ["d1"]
        announce(stage.log.records[1:])
        assert await ids(stream) == ["d2"]
