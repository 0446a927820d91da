"""Messages that were delivered and not acknowledged: again after a pause, or given up.

    nack, deadline ──▶ failed ──▶ rest ──▶ ready ──▶ the next stream that has credit
                         └── after max_attempts ──▶ graveyard
    its stream closed, not sent at all ──▶ ready

What is ready goes before anything new, or a large document could wait for ever behind small ones.
"""

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

from server.deliveries.environment import Environment
from server.deliveries.leases import Lease, LeaseState
from server.deliveries.ports import DeadLetter

if TYPE_CHECKING:
    from server.deliveries.consumer import Consumer

__all__ = ["Redelivery"]


class Redelivery:
    """The part of a consumer that does not give up easily."""

    __slots__ = ("_consumer", "_environment", "_ready")

    def __init__(self, consumer: "Consumer", environment: Environment) -> None:
        self._consumer = consumer
        self._environment = environment
        self._ready: list[Lease] = []

    @property
    def is_waiting(self) -> bool:
        """Is there something that no stream could take yet?"""
        return bool(self._ready)

    def failed(self, lease: Lease, reason: str, delay: float | None = None) -> None:
        """An attempt came to nothing: try again after a pause, or give up; for those who still are there."""
        self._consumer.narrow(lease, self._consumer.members.living(lease.slots))
        if lease.state is LeaseState.DONE:
            return
        lead = lease.lead
        self._environment.cursors.count_attempt(int(lease.numbers[lead]), int(lease.sequences[lead]))
        if lease.attempt >= lease.patience.max_attempts:
            self._bury(lease, reason)
            return
        pause = lease.patience.pause(lease.attempt) if delay is None else delay
        lease.attempt += 1
        lease.state = LeaseState.RESTING
        self._environment.timers.set(lease, self._environment.clock() + pause)

    def expired(self, lease: Lease) -> None:
        """The deadline of a message has passed."""
        if not lease.is_sent and len(self._consumer.streams) == 1:
            self._environment.timers.set(lease, self._environment.clock() + lease.patience.ack_deadline)
            return
        self._consumer.drop(lease)
        if lease.is_sent:
            self._environment.counters.expired(1)
            self.failed(lease, "not acknowledged in time")
        else:
            self.unsent([lease])

    def rested(self, lease: Lease) -> None:
        """The pause of a message is over."""
        self.unsent([lease])
        self._consumer.end_if_idle()

    def unsent(self, leases: Iterable[Lease]) -> None:
        """Deliver these as soon as somebody can take them."""
        for lease in leases:
            self._environment.timers.cancel(lease)
            lease.state = LeaseState.READY
            self._ready.append(lease)
        self._consumer.wake()

    def deliver_ready(self) -> None:
        """Send what is ready, as far as there is credit."""
        n_gone = 0
        while n_gone < len(self._ready) and self._deliver_again(self._ready[n_gone]):
            n_gone += 1
        del self._ready[:n_gone]

    def _deliver_again(self, lease: Lease) -> bool:
        """Send a message that waits, to those who still want it; False if no stream can take it."""
        if lease.state is not LeaseState.READY:
            return True
        self._consumer.narrow(lease, self._consumer.members.living(lease.slots))
        if lease.state is LeaseState.READY:
            self._consumer.narrow(lease, self._environment.cursors.undone(lease.numbers, lease.sequences))
        if lease.state is not LeaseState.READY:
            return True
        stream = self._consumer.stream_for(lease.size)
        if stream is None:
            return False
        stream.put(lease)
        self._environment.counters.redelivered(1)
        return True

    def _bury(self, lease: Lease, reason: str) -> None:
        lease.state = LeaseState.BURIED
        self._environment.timers.cancel(lease)
        now = self._environment.clock()
        pairs = zip(lease.numbers.tolist(), lease.sequences.tolist(), strict=True)
        letters = [DeadLetter(*pair, lease.document, lease.attempt, now, reason) for pair in pairs]
        self._environment.graveyard.bury(letters, partial(self._buried, lease))

    def _buried(self, lease: Lease) -> None:
        self._consumer.finish(lease)
        self._consumer.wake()
