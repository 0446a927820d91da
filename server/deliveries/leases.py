"""A message on its way, from the moment it leaves the log until it is done.

                    a stream has credit
          READY ─────────────────────────▶ HELD ── ack ──▶ DONE
            ▲ ▲                             │ │
            │ └──── its stream closed ──────┘ │ nack, deadline
            │                                 ▼
            └──────── pause is over ─────── RESTING ── after max_attempts ──▶ BURIED ── durable ──▶ DONE

A lease made for a stream starts as HELD. Whoever has died meanwhile (a deleted subscription, a sequence that was
acknowledged by name) is taken out before a lease is delivered again, and a lease of nobody is DONE.

A HELD message that its stream has not yet asked for (`is_sent` is false) is not late: at its deadline it goes to
another stream, if there is one, and no attempt is counted.
"""

from enum import Enum
from typing import TYPE_CHECKING

import numpy as np

from server.deliveries.policies import Patience
from server.deliveries.timers import NOT_SET
from server.documents import Document

if TYPE_CHECKING:
    from server.deliveries.attachment import Attachment
    from server.deliveries.consumer import Consumer

__all__ = ["Lease", "LeaseState", "size_of"]


class LeaseState(Enum):
    """Where a message stands; the module's picture has the transitions."""

    READY = "ready"
    HELD = "held"
    RESTING = "resting"
    BURIED = "buried"
    DONE = "done"


class Lease:
    """One message of one consumer. `lead` is the place of the subscription whose policy decides."""

    __slots__ = (
        "attempt",
        "consumer",
        "document",
        "is_sent",
        "lead",
        "message_id",
        "numbers",
        "patience",
        "position",
        "sequences",
        "size",
        "slots",
        "state",
        "stream",
        "tick",
    )

    def __init__(
        self,
        consumer: "Consumer",
        position: int,
        document: Document,
        size: int,
        numbers: np.ndarray,
        sequences: np.ndarray,
        slots: np.ndarray,
        lead: int,
        patience: Patience,
        attempt: int,
    ) -> None:
        self.consumer = consumer
        self.position = position
        self.document = document
        self.size = size
        self.numbers = numbers
        self.sequences = sequences
        self.slots = slots
        self.lead = lead
        self.patience = patience
        self.attempt = attempt
        self.state = LeaseState.READY
        self.stream: Attachment | None = None
        self.message_id = 0
        self.is_sent = False
        self.tick = NOT_SET

    def narrow(self, keep: np.ndarray) -> None:
        """Leave out the subscriptions where `keep` is false; the next one leads if the lead goes."""
        self.lead = int(keep[: self.lead].sum()) if keep[self.lead] else 0
        self.numbers = self.numbers[keep]
        self.sequences = self.sequences[keep]
        self.slots = self.slots[keep]

    def fire(self) -> None:
        """The deadline has passed, or the pause is over."""
        if self.state is LeaseState.HELD:
            self.consumer.expired(self)
        elif self.state is LeaseState.RESTING:
            self.consumer.rested(self)


def size_of(document: Document) -> int:
    """What a document counts against a credit in bytes: its XML, and what is written beside it."""
    size = len(document.xml) + len(document.id) + len(document.source)
    if document.headers:
        size += sum(len(name) + len(value) for name, value in document.headers.items())
    if document.attributes:
        size += sum(len(name) + _value_size(value) for name, value in document.attributes.items())
    return max(size, 1)


def _value_size(value: object) -> int:
    return len(value) if isinstance(value, str) else 8
