"""What is delivered: a document, and who wants it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Protocol

from pathsieve.documents import Document, from_document
from pathsieve.v1 import delivery_service_pb2, document_pb2

__all__ = ["DeadLetter", "Message", "Notification", "Origin", "Page", "Pulled", "Range"]


class Origin(Protocol):
    """The stream that a message came on: it knows names, and takes what is said about the message."""

    names: dict[int, str]

    def ack(self, message_id: int) -> None: ...
    def nack(self, message_id: int, delay: float | None) -> None: ...
    def extend(self, message_id: int, seconds: float) -> None: ...
    def took(self, n_bytes: int) -> None: ...


class Message:
    """One document and all subscriptions of the stream that want it. It is acknowledged as one.

    Every message is acknowledged, by `ack`, or returned, by `nack`; else it is delivered again after its deadline.
    `attempt` is 1 the first time. What one says about a message whose stream is gone is too late, and no error: the
    server delivers it again.
    """

    def __init__(self, message: delivery_service_pb2.Message, origin: Origin) -> None:
        self._message = message
        self.origin = origin

    def __repr__(self) -> str:
        wanted = f"{len(self._message.slots)} subscriptions" if len(self._message.slots) > 1 else self.subscription
        return f"<Message {self._message.document.id} for {wanted}, attempt {self.attempt}>"

    @cached_property
    def document(self) -> Document:
        return from_document(self._message.document)

    @property
    def xml(self) -> bytes:
        """The XML of the document, without looking at the rest of it."""
        return self._message.document.xml

    @property
    def attempt(self) -> int:
        return self._message.attempt

    @cached_property
    def matches(self) -> list[tuple[str, int]]:
        """Each subscription that wants it, and its sequence number there (0 for an ephemeral filter)."""
        slots, sequences = self._message.slots, self._message.sequences
        names = self.origin.names
        return [(names[slot], sequence) for slot, sequence in zip(slots, sequences or [0] * len(slots), strict=True)]

    @property
    def subscription(self) -> str:
        """The first subscription that wants it: the only one, where one is attached to only one."""
        return self.origin.names[self._message.slots[0]]

    @property
    def sequence(self) -> int:
        """Its number in the first subscription."""
        return self._message.sequences[0] if self._message.sequences else 0

    @property
    def n_matches(self) -> int:
        return len(self._message.slots)

    @property
    def size(self) -> int:
        """What it counts against a credit in bytes, reckoned as the server does."""
        return _size_of(self._message.document)

    @property
    def is_ephemeral(self) -> bool:
        """Whether it is kept nowhere, so that there is nothing to acknowledge."""
        return not self._message.message_id

    def ack(self) -> None:
        """It is dealt with: never deliver it again."""
        if self._message.message_id:
            self.origin.ack(self._message.message_id)

    def nack(self, delay: float | None = None) -> None:
        """Deliver it again, after `delay` seconds; None: when the subscription's backoff says so."""
        if self._message.message_id:
            self.origin.nack(self._message.message_id, delay)

    def extend(self, seconds: float) -> None:
        """It takes longer: its deadline is so many seconds from now."""
        if self._message.message_id:
            self.origin.extend(self._message.message_id, seconds)


class Notification:
    """One document that was read from the log, and the subscriptions that want it. There is nothing to acknowledge."""

    def __init__(self, message: delivery_service_pb2.Notification, names: Sequence[str]) -> None:
        self._message = message
        self._names = names

    def __repr__(self) -> str:
        return f"<Notification {self._message.document.id} at {self.position}>"

    @cached_property
    def document(self) -> Document:
        return from_document(self._message.document)

    @property
    def xml(self) -> bytes:
        """The XML of the document, without looking at the rest of it."""
        return self._message.document.xml

    @property
    def position(self) -> int:
        """Its place in the log, the same for all subscriptions."""
        return self._message.position

    @cached_property
    def matches(self) -> list[tuple[str, int]]:
        """Each subscription that wants it, of those that are read, and its sequence number there."""
        names = (self._names[slot] for slot in self._message.slots)
        return list(zip(names, self._message.sequences, strict=True))

    @property
    def subscription(self) -> str:
        """The first subscription that wants it: the only one, where one is read."""
        return self._names[self._message.slots[0]]

    @property
    def sequence(self) -> int:
        """Its number in the first subscription."""
        return self._message.sequences[0]


@dataclass(frozen=True, slots=True)
class Page:
    """Some notifications, up to where they go, and the newest that retention has dropped of them; 0 if none is."""

    notifications: Sequence[Notification]
    through: int
    dropped: int


@dataclass(frozen=True, slots=True)
class Range:
    """What there is to read: after `dropped`, up to `head`. Of one subscription in sequences, of all in positions."""

    subscription: str
    dropped: int
    head: int
    through: int


@dataclass(frozen=True, slots=True)
class Pulled:
    """A message that was asked for; `Client.acknowledge` it before its deadline."""

    subscription: str
    sequence: int
    document: Document
    attempt: int


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A message that was given up after `attempts`; `reason` is what the last one ended with."""

    subscription: str
    sequence: int
    document: Document
    attempts: int
    time: datetime
    reason: str


def _size_of(document: document_pb2.Document) -> int:
    size = len(document.xml) + len(document.id) + len(document.source)
    if document.headers:
        size += sum(len(name) + len(value) for name, value in document.headers.items())
    if document.attributes:
        values = document.attributes.items()
        size += sum(
            len(name) + (len(value.string_value) if value.HasField("string_value") else 8) for name, value in values
        )
    return max(size, 1)
