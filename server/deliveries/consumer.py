"""One or several streams that have the same subscriptions, and the messages on their way to them.

    feeds ── offer ──▶ a stream that has credit ── ack ──▶ cursors
                          │            ▲
                     nack, deadline    │ ready again
                          ▼            │
                         leases that rest ── after max_attempts ──▶ graveyard

A consumer exists while it has a stream, or while messages that were pulled are out. Never more is kept for it than its
streams have credit for, and never more than `max_unacked_…`: what it cannot take now it reads from the log later.

When a stream closes, what it holds goes at once to the other streams, or to whoever attaches next. That counts as an
attempt for the oldest of them only, the first that the consumer could have been working on: a message that kills its
consumer is found out, and a bad connection does not carry a whole window of messages to the dead letters.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np

from server.deliveries.attachment import Attachment
from server.deliveries.environment import Environment
from server.deliveries.events import AttachMode, GoodbyeReason, Heartbeat
from server.deliveries.feeding import Feeding
from server.deliveries.leases import Lease, LeaseState, in_calls, size_of, weight_of
from server.deliveries.members import Members
from server.deliveries.ports import Record
from server.deliveries.redelivery import Redelivery
from server.subscriptions import Subscription

__all__ = ["Consumer"]


class Consumer:
    """`follows`: it has all subscriptions of the tenant, those to come too. `pulls`: there are only pulls."""

    __slots__ = (
        "_environment",
        "_leases",
        "_on_end",
        "_unacked_bytes",
        "feeding",
        "follows",
        "members",
        "mode",
        "pulled",
        "pulls",
        "redelivery",
        "streams",
        "tenant",
    )

    def __init__(
        self,
        environment: Environment,
        tenant: str,
        mode: AttachMode,
        follows: bool,
        pulls: bool,
        on_end: Callable[["Consumer"], None],
    ) -> None:
        self._environment = environment
        self._on_end = on_end
        self.tenant = tenant
        self.mode = mode
        self.follows = follows
        self.members = Members(environment.routes, environment.settings)
        self.feeding = Feeding(self, environment)
        self.redelivery = Redelivery(self, environment)
        self.streams: list[Attachment] = []
        self.pulls = pulls
        self.pulled: dict[int, Lease] = {}
        self._leases: dict[Lease, None] = {}
        self._unacked_bytes = 0

    # Who belongs to it

    def join(self, subscriptions: Sequence[Subscription]) -> None:
        """Feed these too; the streams are told their slots first."""
        slots = self.members.add(subscriptions)
        for stream in self.streams:
            stream.join(slots)
        self.feeding.feed(subscriptions)
        self.wake()

    def leave(self, number: int, message: str) -> None:
        """One subscription is gone. The last one takes the streams with it."""
        self.members.remove(number)
        if not self.members.n_living and not self.follows:
            for stream in list(self.streams):
                stream.goodbye(GoodbyeReason.DELETED, message)

    def change(self, subscription: Subscription) -> None:
        """A subscription was updated. With another schedule it starts anew from where it stands."""
        before = self.members.at(subscription.number)
        if self.pulls and before is not None:
            subscription = replace(subscription, schedule=before.schedule)
        self.members.replace(subscription)
        if before is not None and before.schedule != subscription.schedule:
            self.restart(subscription.number)

    def restart(self, number: int) -> None:
        """Its cursor was moved: forget what is on its way, and read from where it stands now."""
        for lease in list(self._leases):
            self.narrow(lease, lease.numbers != number)
        subscription = self.members.at(number)
        if subscription is not None:
            self.feeding.feed([subscription])
        self.wake()

    def passed(self) -> None:
        """Cursors were moved forward: what is done by now is on its way no more."""
        for lease in list(self._leases):
            self.narrow(lease, self._environment.cursors.undone(lease.numbers, lease.sequences))
        self.wake()
        self.end_if_idle()

    # Streams

    def enter(self, stream: Attachment) -> None:
        """One more stream, which is told all slots first."""
        stream.join(self.members.slots())
        self.streams.append(stream)
        self.wake()

    def left(self, stream: Attachment) -> None:
        """The stream is closed. With the last one, and nothing out that was pulled, the consumer ends."""
        if stream not in self.streams:
            return
        self.streams.remove(stream)
        held, stream.held = list(stream.held.values()), {}
        oldest = next((lease for lease in held if lease.is_sent), None)
        if oldest is not None:
            self.redelivery.failed(oldest, "its stream closed", 0.0)
        self.redelivery.unsent(lease for lease in held if lease is not oldest)
        self.end_if_idle()

    def keep(self, stream: Attachment) -> None:
        """A pull is over: its messages stay out, known by their sequence, and the stream is gone."""
        if stream not in self.streams:
            return
        self.streams.remove(stream)
        self.pulled.update((int(lease.sequences[0]), lease) for lease in stream.held.values())
        self.end_if_idle()

    def take_pulled(self, sequences: Iterable[int]) -> list[Lease]:
        """Those of these sequences that are out, and then are no longer."""
        found = (self.pulled.pop(sequence, None) for sequence in sequences)
        return [lease for lease in found if lease is not None]

    def end_if_idle(self) -> None:
        """End if nobody is left who could acknowledge anything, and no pull is to find a pause respected."""
        if self.streams or self.pulled:
            self.pulls = self.pulls or not self.streams
            return
        if not (self.pulls and any(lease.state is LeaseState.RESTING for lease in self._leases)):
            self.end()

    def end(self) -> None:
        """Let go of the subscriptions and of all messages; the cursors know what is not done."""
        self.feeding.close()
        self.members.clear()
        self.pulled.clear()
        for lease in list(self._leases):
            self.finish(lease)
        self._on_end(self)

    def fail(self, error: BaseException) -> None:
        """The log cannot be read: the streams end with the error."""
        for stream in self.streams:
            stream.fail(error)

    # Messages

    def has_room(self, size: int, weight: int) -> bool:
        """Would `offer` find a stream for a message like this? Those that are to be delivered again come first."""
        return (
            not self.redelivery.is_waiting
            and self._may_hold(weight)
            and any(stream.can_take(size) for stream in self.streams)
        )

    def free_messages(self) -> int:
        """How many messages the streams have credit for."""
        return sum(stream.credit_messages for stream in self.streams)

    def offer(self, record: Record, numbers: np.ndarray, sequences: np.ndarray) -> bool:
        """Send a new message; False, and nothing has happened, if no stream can take it."""
        size = size_of(record.document)
        if self.redelivery.is_waiting or not self._may_hold(weight_of(size, len(numbers))):
            return False
        stream = self.stream_for(size)
        if stream is None:
            return False
        stream.put(self._lease(record, size, numbers, sequences))
        self._environment.counters.delivered(1)
        return True

    def acknowledge(self, leases: Sequence[Lease]) -> None:
        """These messages are done."""
        if not leases:
            return
        for done in in_calls(leases):
            numbers = np.concatenate([lease.numbers for lease in done])
            sequences = np.concatenate([lease.sequences for lease in done])
            positions = np.repeat([lease.position for lease in done], [len(lease.numbers) for lease in done])
            self._environment.cursors.acknowledge(numbers, sequences, positions)
        for lease in leases:
            self.finish(lease)
        self.wake()

    def wake(self) -> None:
        """Something has changed: credit, room, or what waits."""
        self.redelivery.deliver_ready()
        self.feeding.wake()

    def heartbeat(self) -> Heartbeat:
        """How much waits, and for how long the oldest has."""
        oldest = min((lease.document.publish_time for lease in self._leases), default=float("inf"))
        since = min(oldest, self.feeding.oldest)
        age = max(self._environment.clock() - since, 0.0) if since < float("inf") else 0.0
        return Heartbeat(self._environment.cursors.backlog(self.members.numbers), age)

    def stream_for(self, size: int) -> Attachment | None:
        """A stream that can take so much; several take turns."""
        for place, stream in enumerate(self.streams):
            if stream.can_take(size):
                self.streams.append(self.streams.pop(place))
                return stream
        return None

    def _may_hold(self, weight: int) -> bool:
        """Is there room for one more message that is not acknowledged? There always is for a first one."""
        settings = self._environment.settings
        n_leases = len(self._leases)
        fits = self._unacked_bytes + weight <= settings.max_unacked_bytes or not n_leases
        return fits and n_leases < settings.max_unacked_messages

    def _lease(self, record: Record, size: int, numbers: np.ndarray, sequences: np.ndarray) -> Lease:
        slots = self._environment.routes.slot_of[numbers]
        lead, patience = self.members.policies.lead(slots)
        attempts = self._environment.cursors.attempts(int(numbers[lead]), int(sequences[lead]))
        lease = Lease(
            self, record.position, record.document, size, numbers, sequences, slots, lead, patience, attempts + 1
        )
        self._leases[lease] = None
        self._unacked_bytes += lease.weight
        return lease

    def narrow(self, lease: Lease, keep: np.ndarray) -> None:
        """Leave the message to some of its subscriptions; it is done if there are none."""
        if not keep.any():
            self.drop(lease)
            self.finish(lease)
        elif not keep.all():
            lease.narrow(keep)

    def drop(self, lease: Lease) -> None:
        """Take a message out of the hands of who holds it."""
        if lease.stream is not None:
            lease.stream.held.pop(lease.message_id, None)
        sequence = int(lease.sequences[0])
        if self.pulled.get(sequence) is lease:
            del self.pulled[sequence]

    def finish(self, lease: Lease) -> None:
        """The message is no longer ours."""
        self._environment.timers.cancel(lease)
        lease.state = LeaseState.DONE
        if lease in self._leases:
            del self._leases[lease]
            self._unacked_bytes -= lease.weight
