"""One stream of a consumer: its credit, and the messages that it holds.

    credit   messages 3, bytes 10,000       a message is sent only while both are left
    outbox   lease 7                        put here, not yet asked for by next()
    held     lease 5, 6, 7                  by message id, until ack, nack, deadline or close

A document larger than all the bytes that are left is sent when the stream holds nothing, so that nothing is stuck for
ever.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from server.deliveries.environment import Environment
from server.deliveries.events import Credit, GoodbyeReason, Heartbeat, Message
from server.deliveries.leases import Lease, LeaseState
from server.deliveries.stream import Stream

if TYPE_CHECKING:
    from server.deliveries.consumer import Consumer

__all__ = ["Attachment"]


class Attachment(Stream):
    """A durable stream. `name` is the consumer's own, empty for nobody's."""

    __slots__ = ("_last_id", "_outbox", "consumer", "held", "name")

    def __init__(
        self, consumer: "Consumer", environment: Environment, name: str, credit: Credit, heartbeat: float
    ) -> None:
        super().__init__(environment, credit, heartbeat)
        self.consumer = consumer
        self.name = name
        self.held: dict[int, Lease] = {}
        self._outbox: list[Lease] = []
        self._last_id = 0

    @property
    def slots(self) -> list[tuple[int, str]]:
        """The slots of the stream and the names they stand for, as of now."""
        return self.consumer.members.slots()

    def ack(self, message_ids: Iterable[int]) -> None:
        """These are done. Ids that are not held (any more) are passed over."""
        self.consumer.acknowledge(self._release(message_ids))

    def nack(self, message_ids: Iterable[int], delay: float | None = None) -> None:
        """Deliver these again, after `delay` seconds or else the backoff of the subscription."""
        for lease in self._release(message_ids):
            self.consumer.redelivery.failed(lease, "refused by the consumer", delay)

    def extend(self, message_ids: Iterable[int], seconds: float) -> None:
        """Expect the acks of these within so many seconds from now."""
        deadline = self._environment.clock() + seconds
        for message_id in message_ids:
            if message_id in self.held:
                self._environment.timers.set(self.held[message_id], deadline)

    def grant(self, messages: int, size: int) -> None:
        """So many more messages, and so many more bytes of documents, may be sent."""
        self.credit_messages += messages
        self.credit_bytes += size
        self.consumer.wake()

    async def close(self) -> None:
        """The stream has ended; what it holds is delivered again."""
        self.consumer.left(self)

    def goodbye(self, reason: GoodbyeReason, message: str = "") -> None:
        """Say nothing more but this; acks still count until the stream is closed."""
        super().goodbye(reason, message)
        self.retract()

    def take(self) -> list[Message]:
        """All that waits to be sent, without waiting for more."""
        messages = []
        while self._outbox:
            messages += self._take_messages()
        return messages

    def retract(self) -> None:
        """Send nothing more: what was put here and has not left goes to somebody else."""
        self.credit_messages = 0
        unsent, self._outbox = self._outbox, []
        self.consumer.redelivery.unsent([self.held.pop(lease.message_id) for lease in unsent if self._holds(lease)])

    def can_take(self, size: int) -> bool:
        """May a document of this size be sent now?"""
        if self.credit_messages <= 0 or self.credit_bytes <= 0 or self.is_leaving:
            return False
        return size <= self.credit_bytes or not self.held

    def put(self, lease: Lease) -> None:
        """Send a message; there must be credit for it."""
        self._last_id += 1
        lease.message_id = self._last_id
        lease.stream = self
        lease.state = LeaseState.HELD
        lease.is_sent = False
        self.held[lease.message_id] = lease
        self._outbox.append(lease)
        self.credit_messages -= 1
        self.credit_bytes -= lease.size
        self._environment.timers.set(lease, self._environment.clock() + lease.patience.ack_deadline)
        self._wake()

    def _release(self, message_ids: Iterable[int]) -> list[Lease]:
        """Take these out of the hands of the stream."""
        found = (self.held.pop(message_id, None) for message_id in message_ids)
        return [lease for lease in found if lease is not None]

    def _holds(self, lease: Lease) -> bool:
        return self.held.get(lease.message_id) is lease

    def _take_messages(self) -> list[Message]:
        n_leases, settings = 0, self._environment.settings
        left = settings.max_batch_bytes
        for lease in self._outbox[: settings.max_batch_messages]:
            if n_leases and lease.weight > left:
                break
            n_leases += 1
            left -= lease.weight
        leaving = [lease for lease in self._outbox[:n_leases] if self._holds(lease)]
        del self._outbox[:n_leases]
        return [self._message(lease) for lease in leaving]

    def _message(self, lease: Lease) -> Message:
        """What is sent; the deadline counts from now, not from when it was put."""
        lease.is_sent = True
        self._environment.timers.set(lease, self._environment.clock() + lease.patience.ack_deadline)
        return Message(lease.message_id, lease.document, lease.slots, lease.sequences, lease.attempt)

    def _beat(self) -> Heartbeat:
        self._beat_due = False
        return self.consumer.heartbeat()
