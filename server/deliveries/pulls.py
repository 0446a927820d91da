"""Messages without a stream: leased by their sequence, and acknowledged by it.

    pull ──▶ a stream that lives for one answer ──▶ messages, out until acknowledged or their deadline ──▶ again

A pull is a short-lived stream of a consumer that it may share with other pulls; the table in `consumers` says with whom
else. Who pulls says when, so a schedule means nothing here.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from server.deliveries.attachment import Attachment
from server.deliveries.consumers import Consumers
from server.deliveries.environment import Environment
from server.deliveries.events import Credit, Message, Messages, SlotsJoined
from server.documents import Document
from server.errors import InvalidRequest
from server.subscriptions import Subscription

__all__ = ["PulledMessage", "Pulls"]

DEFAULT_MESSAGES = 100


@dataclass(frozen=True, slots=True)
class PulledMessage:
    """A document of one subscription."""

    sequence: int
    document: Document
    attempt: int


class Pulls:
    """Pull, acknowledge, extend."""

    def __init__(self, consumers: Consumers, environment: Environment) -> None:
        self._consumers = consumers
        self._environment = environment

    async def pull(self, subscription: Subscription, max_messages: int, wait: float) -> list[PulledMessage]:
        """Some messages; none if none came within `wait` seconds."""
        settings = self._environment.settings
        if max_messages < 0:
            raise InvalidRequest("max_messages", "expected 0 or more", found=max_messages)
        n_messages = min(max_messages or DEFAULT_MESSAGES, settings.max_pull_messages)
        stream = self._consumers.pull(subscription, Credit(n_messages, settings.max_pull_bytes), wait)
        try:
            await stream.consumer.feeding.settled()
            messages = stream.take() or (await self._first(stream) if wait > 0 else [])
            return [PulledMessage(int(message.sequences[0]), message.document, message.attempt) for message in messages]
        finally:
            stream.retract()
            stream.consumer.keep(stream)

    def acknowledge(self, subscription: Subscription, sequences: Sequence[int]) -> None:
        """These are done, whether they are out or not."""
        done = np.array(sequences, np.int64)
        self._environment.cursors.acknowledge(np.full(len(done), subscription.number, np.int64), done)
        consumer = self._consumers.of(subscription.number)
        if consumer is not None:
            consumer.acknowledge(consumer.take_pulled(sequences))
            consumer.end_if_idle()

    def extend(self, subscription: Subscription, sequences: Sequence[int], seconds: float) -> None:
        """Expect the acknowledgements so many seconds from now; zero returns the messages."""
        consumer = self._consumers.of(subscription.number)
        if consumer is None:
            return
        if seconds:
            deadline = self._environment.clock() + seconds
            for sequence in sequences:
                if sequence in consumer.pulled:
                    self._environment.timers.set(consumer.pulled[sequence], deadline)
            return
        for lease in consumer.take_pulled(sequences):
            consumer.redelivery.failed(lease, "returned by the consumer", 0.0)

    async def _first(self, stream: Attachment) -> list[Message]:
        """What comes within the time that the stream waits before it would send a heartbeat."""
        event = await stream.next()
        while isinstance(event, SlotsJoined):
            event = await stream.next()
        return event.messages if isinstance(event, Messages) else []
