"""Pushed subscriptions: in order, in batches, again after failures, and nothing at all while nothing is to be sent."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager

import pytest
from delivery_scene import Scene, scene, subscription

from server.deliveries import DeliverySettings
from server.deliveries.transports import Notification, PushError
from server.errors import StoreUnavailable
from server.subscriptions import DeliveryPolicy, Email, Schedule, Subscription, Webhook

TARGET = Webhook("https://example.com/hook")


class Recorder:
    """A transport that writes down what it is given, and fails when told."""

    def __init__(self) -> None:
        self.sent: list[tuple[int, list[int], int]] = []
        self.fails: Callable[[Sequence[Notification]], Exception | None] = lambda batch: None
        self.hold = asyncio.Event()
        self.hold.set()
        self.n_open = self.most_open = 0

    async def send(self, subscription: Subscription, notifications: Sequence[Notification]) -> None:
        sequences = [notification.sequence for notification in notifications]
        self.sent.append((subscription.number, sequences, notifications[0].attempt))
        self.n_open += 1
        self.most_open = max(self.most_open, self.n_open)
        await self.hold.wait()
        self.n_open -= 1
        failure = self.fails(notifications)
        if failure is not None:
            raise failure

    async def close(self) -> None:
        """Nothing to close."""

    def sequences(self) -> list[list[int]]:
        taken, self.sent = self.sent, []
        return [sequences for _, sequences, _ in taken]


def staged(recorder: Recorder, settings: DeliverySettings | None = None) -> AbstractAsyncContextManager[Scene]:
    return scene(settings, transports={Webhook: recorder})


def create(stage: Scene, *numbers: int, **others: object) -> None:
    for number in numbers:
        stage.deliveries.subscription_created(subscription(number, push=TARGET, **others))


async def test_what_is_published_is_sent_and_done() -> None:
    recorder = Recorder()
    async with staged(recorder) as stage:
        create(stage, 1)
        await stage.publish(1)
        await stage.settle()
        await stage.publish(1)
        await stage.settle()
        assert recorder.sent == [(1, [1], 1), (1, [2], 1)]
        assert stage.cursors.done[1] == {1, 2}
        assert stage.counts["pushed"] == 2
        assert stage.deliveries._pushes.n_active == 0


async def test_what_waited_is_sent_when_the_server_starts() -> None:
    recorder = Recorder()
    async with staged(recorder) as stage:
        await stage.publish(1)
        create(stage, 1, 2)
        await stage.settle()
        assert recorder.sent == [(1, [1], 1)]


async def test_a_target_has_one_request_at_a_time_and_the_rest_goes_together() -> None:
    recorder = Recorder()
    async with staged(recorder, DeliverySettings(push_batch_messages=3)) as stage:
        create(stage, 1)
        recorder.hold.clear()
        for _ in range(6):
            await stage.publish(1)
            await asyncio.sleep(0)
        recorder.hold.set()
        await stage.settle()
        assert recorder.sequences() in ([[1], [2, 3, 4], [5, 6]], [[1, 2], [3, 4, 5], [6]])
        assert recorder.most_open == 1


async def test_only_so_many_requests_are_on_their_way_at_once() -> None:
    recorder = Recorder()
    async with staged(recorder, DeliverySettings(push_concurrency=3)) as stage:
        create(stage, *range(1, 11))
        recorder.hold.clear()
        await stage.publish(*range(1, 11))
        for _ in range(10):
            await asyncio.sleep(0)
        assert recorder.n_open == 3
        recorder.hold.set()
        await stage.settle()
        assert sorted(number for number, _, _ in recorder.sent) == list(range(1, 11))
        assert len(stage.deliveries._environment.tasks) == 0


async def test_a_failed_batch_is_tried_again_as_it_is_with_growing_pauses() -> None:
    recorder = Recorder()
    recorder.fails = lambda batch: PushError("no") if batch[0].sequence == 1 and batch[0].attempt < 3 else None
    async with staged(recorder, DeliverySettings(min_backoff=1)) as stage:
        create(stage, 1)
        await stage.publish(1)
        await stage.settle()
        await stage.publish(1)
        await stage.pass_time(0.9)
        assert recorder.sent == [(1, [1], 1)]
        await stage.pass_time(0.2)
        await stage.pass_time(1.9)
        assert recorder.sent[1:] == [(1, [1], 2)]
        await stage.pass_time(0.2)
        assert recorder.sent[2:] == [(1, [1], 3), (1, [2], 1)]
        assert stage.cursors.done[1] == {1, 2}
        assert stage.counts["push_failed"] == 2


async def test_a_target_that_asks_to_be_left_alone_is_left_alone() -> None:
    recorder = Recorder()
    recorder.fails = lambda batch: PushError("busy", retry_after=60)
    async with staged(recorder) as stage:
        create(stage, 1)
        await stage.publish(1)
        await stage.settle()
        await stage.pass_time(59)
        assert len(recorder.sent) == 1
        await stage.pass_time(1.1)
        assert len(recorder.sent) == 2


async def test_one_bad_document_does_not_take_the_others_along() -> None:
    recorder = Recorder()
    recorder.fails = lambda batch: PushError("bad") if any(one.sequence == 2 for one in batch) else None
    policy = DeliveryPolicy(max_attempts=2, min_backoff=1, max_backoff=1)
    async with staged(recorder) as stage:
        for _ in range(3):
            await stage.publish(1)
        create(stage, 1, delivery=policy)
        await stage.settle()
        for _ in range(5):
            await stage.pass_time(1.1)
        assert recorder.sequences() == [[1, 2, 3], [1, 2, 3], [1], [2], [3]]
        assert [(letter.sequence, letter.reason) for letter in stage.letters.letters] == [(2, "bad")]
        assert stage.cursors.done[1] == {1, 2, 3}


async def test_a_target_that_is_gone_for_good_gets_no_second_request() -> None:
    recorder = Recorder()
    recorder.fails = lambda batch: PushError("gone", is_final=True)
    async with staged(recorder) as stage:
        await stage.publish(1)
        await stage.publish(1)
        create(stage, 1)
        await stage.settle()
        assert recorder.sequences() == [[1, 2]]
        assert [letter.sequence for letter in stage.letters.letters] == [1, 2]


async def test_a_digest_is_one_request_at_its_time() -> None:
    recorder = Recorder()
    async with staged(recorder) as stage:
        create(stage, 1, schedule=Schedule(every=60), create_time=stage.now)
        await stage.publish(1)
        await stage.pass_time(30)
        await stage.publish(1)
        assert recorder.sequences() == []
        await stage.pass_time(30.1)
        assert recorder.sequences() == [[1, 2]]
        await stage.publish(1)
        await stage.pass_time(59)
        assert recorder.sequences() == []
        await stage.pass_time(1)
        assert recorder.sequences() == [[3]]


async def test_a_digest_that_is_large_is_several_requests_and_what_comes_meanwhile_waits() -> None:
    recorder = Recorder()
    async with staged(recorder, DeliverySettings(push_batch_messages=2)) as stage:
        create(stage, 1, schedule=Schedule(every=60), create_time=stage.now)
        for _ in range(5):
            await stage.publish(1)
        recorder.hold.clear()
        stage.now += 60.1
        stage.deliveries.run_timers()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        await stage.publish(1)
        recorder.hold.set()
        await stage.settle()
        assert recorder.sequences() == [[1, 2], [3, 4], [5]]
        await stage.pass_time(60)
        assert recorder.sequences() == [[6]]


async def test_a_digest_is_due_after_a_restart_when_it_would_have_been() -> None:
    recorder = Recorder()
    async with staged(recorder) as stage:
        created = stage.now
        await stage.publish(1)
        stage.now += 30
        create(stage, 1, schedule=Schedule(every=60), create_time=created)
        await stage.settle()
        await stage.pass_time(29)
        assert recorder.sequences() == []
        await stage.pass_time(1.1)
        assert recorder.sequences() == [[1]]


async def test_a_subscription_that_is_deleted_while_it_is_sent_is_forgotten() -> None:
    recorder = Recorder()
    recorder.fails = lambda batch: PushError("no")
    async with staged(recorder) as stage:
        create(stage, 1)
        await stage.publish(1)
        await stage.settle()
        stage.deliveries.subscription_deleted(subscription(1))
        await stage.publish(1)
        await stage.pass_time(100)
        assert len(recorder.sent) == 1
        assert stage.deliveries._pushes.n_active == 0


async def test_a_new_target_gets_what_the_old_one_has_not_taken() -> None:
    recorder = Recorder()
    recorder.fails = lambda batch: PushError("no") if batch[0].attempt == 1 else None
    async with staged(recorder) as stage:
        create(stage, 1)
        await stage.publish(1)
        await stage.settle()
        stage.deliveries.subscription_updated(subscription(1, push=Webhook("https://example.com/new")))
        await stage.settle()
        assert recorder.sent == [(1, [1], 1), (1, [1], 2)]


async def test_a_subscription_can_become_pushed_and_attached_again() -> None:
    recorder = Recorder()
    async with staged(recorder) as stage:
        stream = await stage.attach(1, 2)
        stage.deliveries.subscription_updated(subscription(1, push=TARGET))
        await stage.publish(1, 2)
        await stage.settle()
        assert recorder.sequences() == [[1]]
        stage.deliveries.subscription_updated(subscription(1))
        await stage.publish(1)
        await stage.settle()
        assert recorder.sequences() == []
        await stream.close()
        again = await stage.attach(1)
        await stage.settle()
        assert [lease.sequences.tolist() for lease in again.held.values()] == [[2]]


async def test_a_seek_sends_again() -> None:
    recorder = Recorder()
    async with staged(recorder) as stage:
        create(stage, 1)
        await stage.publish(1)
        await stage.settle()
        assert await stage.deliveries.seek(subscription(1, push=TARGET), sequence=1) == 1
        await stage.settle()
        assert recorder.sequences() == [[1], [1]]


async def test_what_cannot_be_sent_by_this_server_waits() -> None:
    async with staged(Recorder()) as stage:
        stage.deliveries.subscription_created(subscription(1, push=Email(("a@example.com",))))
        await stage.publish(1)
        await stage.settle()
        assert stage.cursors.backlog(stage.log.records[0].numbers) == 1


async def test_a_failure_that_nobody_expected_is_logged_and_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    recorder = Recorder()
    recorder.fails = lambda batch: ValueError("a mistake") if batch[0].attempt == 1 else None
    async with staged(recorder) as stage:
        create(stage, 1)
        await stage.publish(1)
        await stage.settle()
        assert "a mistake" in caplog.text
        await stage.pass_time(1)
        assert stage.cursors.done[1] == {1}


async def test_a_store_that_is_away_is_asked_again() -> None:
    recorder = Recorder()
    async with staged(recorder) as stage:
        failures = [StoreUnavailable("away", retry_after=1.0)]
        read = stage.log.read

        async def read_or_fail(*arguments: int) -> object:
            if failures:
                raise failures.pop()
            return await read(*arguments)

        stage.log.read = read_or_fail
        create(stage, 1)
        await stage.publish(1)
        await stage.settle()
        assert recorder.sent == []
        await stage.pass_time(1.1)
        assert recorder.sequences() == [[1]]


async def test_draining_finishes_the_request_on_its_way_and_starts_no_other() -> None:
    recorder = Recorder()
    async with staged(recorder, DeliverySettings(push_concurrency=1)) as stage:
        create(stage, 1, 2)
        recorder.hold.clear()
        await stage.publish(1, 2)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        draining = asyncio.ensure_future(stage.deliveries.drain())
        await asyncio.sleep(0)
        recorder.hold.set()
        await draining
        assert [number for number, _, _ in recorder.sent] == [1]
        assert (stage.cursors.done[1], stage.cursors.done[2]) == ({1}, set())


async def test_a_digest_that_left_late_has_its_pause_before_the_next_one() -> None:
    recorder = Recorder()
    async with staged(recorder) as stage:
        create(stage, 1, schedule=Schedule(every=60), create_time=stage.now)
        await stage.publish(1)
        await stage.pass_time(90)
        assert recorder.sequences() == [[1]]
        await stage.publish(1)
        await stage.pass_time(59)
        assert recorder.sequences() == []
        await stage.pass_time(1.1)
        assert recorder.sequences() == [[2]]
