"""Subscriptions that the server itself delivers, to a webhook or by e-mail.

    record ──▶ QUEUED ── one of a few workers is free ──▶ SENDING ── taken, nothing more waits ──▶ forgotten
                 ▲  ▲                                      │  │
                 │  └────────── taken, more waits ─────────┘  │ failed
                 └──────────── pause is over ── RESTING ◀─────┘
    with a schedule:
    record ──▶ RESTING until due ──▶ QUEUED

A target has one request on its way at a time, so what it gets is in order. Nothing exists for a subscription that has
nothing to send, and a worker only while something is queued: 100,000 idle targets are as many entries of a dictionary.
What is sent is read from the log from where the cursor stands, so that nothing waits in memory.

A batch that failed is tried again as the same batch, under the same id, until it is taken or its attempts are used up.
Its messages are then tried once more one by one, so that one bad document does not take the others along to the dead
letters.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from server.deliveries.environment import Environment
from server.deliveries.policies import patience
from server.deliveries.ports import DeadLetter, Record
from server.deliveries.push_target import PushTarget
from server.deliveries.schedules import next_due
from server.deliveries.transports import Notification, PushError, Transport
from server.documents import Document
from server.errors import StoreUnavailable
from server.subscriptions import Subscription

__all__ = ["Pushes"]

logger = logging.getLogger("pathsieve.deliveries")


class Pushes:
    """All pushed subscriptions, and the workers that serve them."""

    def __init__(self, environment: Environment, transports: Mapping[type, Transport]) -> None:
        self._environment = environment
        self._transports = transports
        self._subscriptions: dict[int, Subscription] = {}
        self._targets: dict[int, PushTarget] = {}
        self._queue: deque[PushTarget] = deque()
        self._workers: set[asyncio.Task[None]] = set()
        self._feed_id = environment.routes.add(self)
        self._is_draining = False

    @property
    def n_active(self) -> int:
        """Targets that have something to send, or rest."""
        return len(self._targets)

    def set(self, subscription: Subscription) -> None:
        """Push this one from now on, and what waits for it; one without a transport waits until there is one."""
        number = subscription.number
        self._subscriptions[number] = subscription
        if type(subscription.push) not in self._transports:
            return
        self._environment.routes.ensure(number)
        self._environment.routes.feed_of[number] = self._feed_id
        self.restart(number)

    def remove(self, number: int) -> None:
        """Push this one no more."""
        if self._subscriptions.pop(number, None) is not None:
            self._environment.routes.unroute(number, self._feed_id)
            self._forget(number)

    def hand_over(self, goes: Callable[[np.ndarray], np.ndarray]) -> None:
        """Push those no more that a mask of numbers tells."""
        numbers = np.fromiter(self._subscriptions, np.int64, len(self._subscriptions))
        for number in numbers[goes(numbers)].tolist():
            self.remove(number)

    def restart(self, number: int) -> None:
        """Its cursor or its policy was changed: start from where it stands."""
        self._forget(number)
        if number in self._subscriptions and self._has_backlog(number):
            self._enqueue(self._target(number))

    def arrived(self, record: Record, numbers: np.ndarray, sequences: np.ndarray) -> None:
        """A record has become durable: whoever is idle gets to work."""
        for number in numbers.tolist():
            if number not in self._targets:
                self._start(self._target(number))

    def failed(self, error: Exception) -> None:
        """What was not started is started by the next record of its subscription, or by the next start."""

    async def drain(self) -> None:
        """Start no more requests, and wait for those on their way."""
        self._is_draining = True
        if self._workers:
            await asyncio.wait(self._workers)

    async def close(self) -> None:
        """Close what connections there are."""
        for transport in self._transports.values():
            await transport.close()

    def rested(self, target: PushTarget) -> None:
        """A pause is over, or a digest is due."""
        self._enqueue(target)

    def _target(self, number: int) -> PushTarget:
        target = self._targets[number] = PushTarget(self, self._subscriptions[number])
        return target

    def _start(self, target: PushTarget) -> None:
        if target.subscription.schedule.is_immediate:
            self._enqueue(target)
        else:
            self._rest_until_due(target, self._environment.clock())

    def _forget(self, number: int) -> None:
        target = self._targets.pop(number, None)
        if target is not None:
            target.is_gone = True
            self._environment.timers.cancel(target)

    def _has_backlog(self, number: int) -> bool:
        return bool(self._environment.cursors.has_backlog(np.array([number])).any())

    def _enqueue(self, target: PushTarget) -> None:
        self._queue.append(target)
        if len(self._workers) < self._environment.settings.push_concurrency and not self._is_draining:
            worker = self._environment.tasks.start(self._work())
            self._workers.add(worker)
            worker.add_done_callback(self._workers.discard)

    async def _work(self) -> None:
        while self._queue and not self._is_draining:
            target = self._queue.popleft()
            try:
                await self._serve(target)
            except StoreUnavailable as error:
                self._rest(target, error.retry_after)

    async def _serve(self, target: PushTarget) -> None:
        """Send one batch, if there is one and it is due."""
        if target.is_gone:
            return
        now = self._environment.clock()
        if target.is_due(now) and not target.digest_end:
            target.digest_end = int(self._environment.log.heads[target.subscription.number])
        messages = await self._read(target)
        if target.is_gone:
            return
        if not messages:
            self._forget(target.subscription.number)
        elif not target.is_due(now):
            self._rest_until_due(target, messages[0][1].publish_time)
        else:
            await self._send(target, messages)

    async def _read(self, target: PushTarget) -> list[tuple[int, Document]]:
        """The first messages that are not done, as many as go in one batch."""
        number, settings = target.subscription.number, self._environment.settings
        first = int(self._environment.cursors.floors[number]) + 1
        n_messages = target.limit(first, settings.push_batch_messages)
        found = await self._environment.log.read(number, first, n_messages, settings.push_batch_bytes)
        sequences = np.array([sequence for sequence, _ in found], np.int64)
        undone = self._environment.cursors.undone(np.full(len(found), number), sequences)
        return [message for message, is_undone in zip(found, undone.tolist(), strict=True) if is_undone]

    async def _send(self, target: PushTarget, messages: Sequence[tuple[int, Document]]) -> None:
        """One request or mail; what it comes to decides how the target goes on."""
        attempt = self._environment.cursors.attempts(target.subscription.number, messages[0][0]) + 1
        batch = [Notification(sequence, attempt, document) for sequence, document in messages]
        failure = await self._try(target.subscription, batch)
        if target.is_gone:
            return
        if failure is None:
            self._taken(target, batch)
        else:
            self._failed(target, batch, failure)

    async def _try(self, subscription: Subscription, batch: Sequence[Notification]) -> PushError | None:
        """Send a batch; what went wrong, if something did."""
        try:
            await self._transports[type(subscription.push)].send(subscription, batch)
        except PushError as failure:
            logger.info("push of %s failed: %s", subscription.name, failure.reason)
            self._environment.counters.push_failed(1)
            return failure
        except Exception as error:
            logger.exception("push of %s failed in a way that nobody expected", subscription.name)
            self._environment.counters.push_failed(1)
            return PushError(f"the server failed: {type(error).__name__}")
        self._environment.counters.pushed(len(batch))
        return None

    def _taken(self, target: PushTarget, batch: Sequence[Notification]) -> None:
        """The target has the batch: it is done, and the next one may go."""
        number = target.subscription.number
        sequences = np.array([notification.sequence for notification in batch], np.int64)
        self._environment.cursors.acknowledge(np.full(len(batch), number), sequences)
        if not target.subscription.schedule.is_immediate:
            self._environment.cursors.set_digest_time(number, target.left_at(self._environment.clock()))
        target.failures = target.batch_end = 0
        self._go_on(target, pause=0.0)

    def _failed(self, target: PushTarget, batch: Sequence[Notification], failure: PushError) -> None:
        """Try the batch again after a pause, or its messages one by one, or give up."""
        first, last = batch[0], batch[-1]
        policy = patience(target.subscription.delivery, self._environment.settings)
        self._environment.cursors.count_attempt(target.subscription.number, first.sequence)
        target.failures += 1
        pause = max(policy.pause(max(target.failures, first.attempt)), failure.retry_after)
        is_alone = first.sequence <= target.alone_until
        if failure.is_final or is_alone or (first is last and first.attempt >= policy.max_attempts):
            self._give_up(target, batch, failure.reason, pause)
            return
        if first.attempt >= policy.max_attempts:
            target.alone_until = last.sequence
        target.batch_end = last.sequence
        self._rest(target, pause)

    def _give_up(self, target: PushTarget, batch: Sequence[Notification], reason: str, pause: float) -> None:
        number, now = target.subscription.number, self._environment.clock()
        letters = [
            DeadLetter(number, notification.sequence, notification.document, notification.attempt, now, reason)
            for notification in batch
        ]
        self._environment.graveyard.bury(letters, partial(self._go_on, target, pause))

    def _go_on(self, target: PushTarget, pause: float) -> None:
        """A batch is done. With nothing more to send the target is forgotten."""
        number = target.subscription.number
        if target.is_gone:
            return
        if not self._has_backlog(number):
            self._forget(number)
            return
        if self._environment.cursors.floors[number] >= target.digest_end:
            target.digest_end, target.due_at = 0, 0.0
        if pause:
            self._rest(target, pause)
        else:
            self._enqueue(target)

    def _rest(self, target: PushTarget, pause: float) -> None:
        if not target.is_gone:
            self._environment.timers.set(target, self._environment.clock() + pause)

    def _rest_until_due(self, target: PushTarget, came_in: float) -> None:
        """The digest leaves at the first due time after its oldest document came in."""
        subscription = target.subscription
        last = self._environment.cursors.digest_time(subscription.number)
        target.due_at = next_due(subscription.schedule, came_in, subscription.create_time, last)
        self._environment.timers.set(target, target.due_at)
