"""Notifications out, at least once, in the order of their sequences: the one class that the broker talks to.

    dispatch ──▶ routes ──▶ feeds ──▶ consumers ──▶ attachments ──▶ servicer
                       └──▶ pushes ──▶ webhook, e-mail
    ack, nack, pull, seek ──▶ consumers, cursors

All of it belongs to the event loop; nothing here blocks it.
"""

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence

import numpy as np

from server.deliveries.attachment import Attachment
from server.deliveries.consumers import Consumers
from server.deliveries.email import EmailTransport
from server.deliveries.environment import Environment
from server.deliveries.ephemeral import EphemeralAttachment, EphemeralRoutes
from server.deliveries.events import AttachMode, Credit, GoodbyeReason
from server.deliveries.graveyard import Graveyard
from server.deliveries.newcomers import Newcomers
from server.deliveries.ports import Counters, Cursors, DeadLetter, DeadLetters, MatchLog, Record
from server.deliveries.pulls import PulledMessage, Pulls
from server.deliveries.pushes import Pushes
from server.deliveries.routes import Routes
from server.deliveries.settings import DeliverySettings
from server.deliveries.tasks import Tasks
from server.deliveries.timers import TimerWheel
from server.deliveries.transports import Transport
from server.deliveries.webhook import WebhookTransport
from server.documents import Document
from server.errors import Draining, InvalidRequest
from server.subscriptions import Email, Subscription, Webhook

__all__ = ["Deliveries"]

NO_CREDIT = Credit(0, 0)


def transports_of(settings: DeliverySettings, clock: Callable[[], float]) -> dict[type, Transport]:
    """What this server can push with: webhooks, and mail if it knows an SMTP server."""
    transports: dict[type, Transport] = {Webhook: WebhookTransport(settings, clock)}
    if settings.smtp_host:
        transports[Email] = EmailTransport(settings)
    return transports


class Deliveries:
    """Made once; `dispatch` is then called with every record that becomes durable."""

    def __init__(
        self,
        log: MatchLog,
        cursors: Cursors,
        dead_letters: DeadLetters,
        settings: DeliverySettings | None = None,
        *,
        clock: Callable[[], float] = time.time,
        counters: Counters | None = None,
        transports: Mapping[type, Transport] | None = None,
    ) -> None:
        self._log = log
        self._cursors = cursors
        self._dead_letters = dead_letters
        self._settings = settings or DeliverySettings()
        counters, tasks = counters or Counters(), Tasks()
        self._graveyard = Graveyard(dead_letters, cursors, counters, tasks)
        self._environment = Environment(
            self._settings,
            clock,
            TimerWheel(clock, self._settings.timer_resolution),
            Routes(log.position),
            log,
            cursors,
            self._graveyard,
            counters,
            tasks,
        )
        self._consumers = Consumers(self._environment)
        self._pulls = Pulls(self._consumers, self._environment)
        self._ephemeral = EphemeralRoutes(self._environment)
        self._pushes = Pushes(
            self._environment, transports_of(self._settings, clock) if transports is None else transports
        )
        self._newcomers = Newcomers()
        self._is_draining = False

    # What was published

    def dispatch(self, records: Sequence[Record]) -> None:
        """Records have become durable, in the order of their positions."""
        for record in records:
            self._environment.routes.announce(record)

    def dispatch_ephemeral(self, document: Document, ephemeral_ids: np.ndarray) -> None:
        """A document matches ephemeral filters; their ids ascend."""
        self._ephemeral.dispatch(document, ephemeral_ids)

    # Streams

    async def attach(
        self,
        tenant: str,
        subscriptions: Sequence[Subscription],
        mode: AttachMode = AttachMode.EXCLUSIVE,
        consumer: str = "",
        credit: Credit = NO_CREDIT,
        follow_tenant: bool = False,
        heartbeat: float = 0.0,
    ) -> Attachment:
        """A stream for these subscriptions; with `follow_tenant` for those too that are created later."""
        self._check_open()
        wanted = _distinct(subscriptions)
        if follow_tenant:
            wanted = [subscription for subscription in wanted if subscription.push is None]
        elif not wanted:
            raise InvalidRequest("subscriptions", "expected at least one name, or subscriptions/- for all")
        for subscription in wanted:
            _check_not_pushed(subscription)
        return self._consumers.attach(tenant, wanted, mode, consumer, credit, follow_tenant, self._heartbeat(heartbeat))

    async def attach_all(
        self,
        tenant: str,
        list_all: Callable[[], Awaitable[Sequence[Subscription]]],
        mode: AttachMode = AttachMode.EXCLUSIVE,
        consumer: str = "",
        credit: Credit = NO_CREDIT,
        heartbeat: float = 0.0,
    ) -> Attachment:
        """A stream for all subscriptions of a tenant; none is missed that is created while they are being listed."""
        self._check_open()
        subscriptions = await self._newcomers.all_of(tenant, list_all)
        return await self.attach(tenant, subscriptions, mode, consumer, credit, True, heartbeat)

    def attach_ephemeral(
        self, tenant: str, ephemeral_ids: np.ndarray, credit: Credit, heartbeat: float = 0.0
    ) -> EphemeralAttachment:
        """A stream for filters that live as long as it does; their ids follow each other, from `EPHEMERAL` upward."""
        self._check_open()
        return self._ephemeral.attach(ephemeral_ids, credit, self._heartbeat(heartbeat))

    def is_attached(self, subscription: Subscription) -> bool:
        """Does a stream have it?"""
        consumer = self._consumers.of(subscription.number)
        return consumer is not None and not consumer.pulls

    # Without a stream

    async def pull(self, subscription: Subscription, max_messages: int = 0, wait: float = 0.0) -> list[PulledMessage]:
        """Some messages now, or the first ones within `wait` seconds; `AlreadyAttached` while a stream has them."""
        self._check_open()
        _check_not_pushed(subscription)
        return await self._pulls.pull(subscription, max_messages, wait)

    async def acknowledge(self, subscription: Subscription, sequences: Sequence[int]) -> None:
        """These are done, durably when it returns."""
        self._check_sequences(subscription, sequences)
        self._pulls.acknowledge(subscription, sequences)
        await self._cursors.flush()

    async def acknowledge_through(self, numbers: np.ndarray, sequences: np.ndarray) -> None:
        """All up to these sequences is done, durably when it returns; numbers come once."""
        self._cursors.acknowledge_through(numbers, sequences)
        self._consumers.passed(numbers)
        await self._cursors.flush()

    async def modify_ack_deadline(self, subscription: Subscription, sequences: Sequence[int], seconds: float) -> None:
        """A later deadline for messages that were pulled; zero returns them. Those that are not out are passed over."""
        if seconds < 0:
            raise InvalidRequest("deadline", "expected 0 s or more", found=seconds)
        self._check_sequences(subscription, sequences)
        self._pulls.extend(subscription, sequences, seconds)

    async def seek(self, subscription: Subscription, *, time: float | None = None, sequence: int | None = None) -> int:
        """Go on with the first message published at or after `time`, or with `sequence`; returns the next sequence."""
        number = subscription.number
        if sequence is None:
            if time is None:
                raise InvalidRequest("target", "expected a time or a sequence")
            sequence = await self._log.sequence_at(number, time)
        elif sequence < 1:
            raise InvalidRequest("sequence", "expected 1 or more", found=sequence)
        head = self._head(number)
        self._cursors.seek(number, min(sequence, head + 1))
        consumer = self._consumers.of(number)
        if consumer is not None:
            consumer.restart(number)
        self._pushes.restart(number)
        return int(self._cursors.floors[number]) + 1

    async def dead_letters(
        self, subscription: Subscription, after_sequence: int = 0, limit: int = 100
    ) -> Sequence[DeadLetter]:
        """What was given up, in the order of sequences."""
        return await self._dead_letters.page(subscription.number, after_sequence, limit)

    # Subscriptions come and go

    def subscription_created(self, subscription: Subscription) -> None:
        """There is a new subscription, or one that was loaded: it is pushed, or goes to who follows its tenant."""
        self._newcomers.changed(subscription)
        follower = self._consumers.follower(subscription.tenant)
        if subscription.push is not None:
            self._pushes.set(subscription)
        elif follower is not None:
            follower.join([subscription])

    def subscription_updated(self, subscription: Subscription) -> None:
        """It has changed: its policy holds from the next message on."""
        self._newcomers.changed(subscription)
        consumer = self._consumers.of(subscription.number)
        if consumer is not None and subscription.push is None:
            consumer.change(subscription)
            return
        if consumer is not None:
            consumer.leave(subscription.number, f"{subscription.name} is pushed from now on")
        self._pushes.remove(subscription.number)
        self.subscription_created(subscription)

    def subscription_deleted(self, subscription: Subscription) -> None:
        """It is gone; what waits for it is dropped."""
        self._newcomers.deleted(subscription)
        consumer = self._consumers.of(subscription.number)
        if consumer is not None:
            consumer.leave(subscription.number, f"{subscription.name} was deleted")
        self._cursors.forget(subscription.number)
        self._pushes.remove(subscription.number)

    def hand_over(self, goes: Callable[[np.ndarray], np.ndarray]) -> None:
        """Other replicas deliver some subscriptions from now on; a mask of numbers tells which."""
        self._consumers.hand_over(goes)
        self._pushes.hand_over(goes)

    def hears(self, numbers: np.ndarray) -> bool:
        """Does anybody here wait for any of `numbers`?"""
        return self._environment.routes.hears(numbers)

    # The end

    async def drain(self) -> None:
        """Say goodbye to all streams, let no new ones in, and finish what is being sent."""
        self._is_draining = True
        for stream in [*self._consumers.streams(), *self._ephemeral.streams]:
            stream.goodbye(GoodbyeReason.DRAINING)
        await self._pushes.drain()
        await self._graveyard.finish()

    async def close(self) -> None:
        """Stop all work."""
        self._environment.timers.stop()
        await self._environment.tasks.stop()
        await self._pushes.close()

    def run_timers(self) -> None:
        """Let happen what is due by the clock; the event loop does so by itself when the clock is its own."""
        self._environment.timers.run()

    def _check_open(self) -> None:
        if self._is_draining:
            raise Draining

    def _heartbeat(self, asked: float) -> float:
        return max(asked, self._settings.min_heartbeat) if asked else self._settings.heartbeat

    def _head(self, number: int) -> int:
        heads = self._log.heads
        return int(heads[number]) if number < len(heads) else 0

    def _check_sequences(self, subscription: Subscription, sequences: Sequence[int]) -> None:
        head = self._head(subscription.number)
        for sequence in sequences:
            if not 0 < sequence <= head:
                expected = f"expected sequences of {subscription.name}, from 1 to {head}, found {sequence}"
                raise InvalidRequest("sequences", expected, found=sequence)


def _distinct(subscriptions: Sequence[Subscription]) -> list[Subscription]:
    return list({subscription.number: subscription for subscription in subscriptions}.values())


def _check_not_pushed(subscription: Subscription) -> None:
    if subscription.push is not None:
        advice = f"{subscription.name} is pushed to its target; take the target away to read it from a stream"
        raise InvalidRequest("subscriptions", advice, name=subscription.name)
