"""What a stream is told: the answers of `Attachment.next()`, which a servicer only translates.

SlotsJoined ─▶ Messages, Heartbeat, SlotsJoined ... ─▶ Goodbye
"""

from dataclasses import dataclass
from enum import Enum

import numpy as np

from server.documents import Document

__all__ = [
    "AttachMode",
    "Credit",
    "Event",
    "Goodbye",
    "GoodbyeReason",
    "Heartbeat",
    "Message",
    "Messages",
    "SlotsJoined",
]


class AttachMode(Enum):
    """Whether several streams may have the same subscriptions."""

    EXCLUSIVE = "exclusive"
    SHARED = "shared"


class GoodbyeReason(Enum):
    """Why a stream ends; the names are those of the wire."""

    DRAINING = "the server stops; come back"
    REPLACED = "a newer stream of the same consumer has taken over"
    DELETED = "the last subscription of the stream is gone"
    TOO_SLOW = "the stream did not keep up, and ephemeral filters keep nothing"
    UNAUTHENTICATED = "the token is no longer valid"
    MOVED = "another replica delivers some of it from now on; attach again"


@dataclass(frozen=True, slots=True)
class Credit:
    """How much may be sent: messages, and bytes of documents."""

    messages: int
    bytes: int


@dataclass(frozen=True, slots=True)
class SlotsJoined:
    """Which number stands for which subscription on this stream."""

    slots: list[int]
    names: list[str]


@dataclass(frozen=True, slots=True)
class Message:
    """One document for all subscriptions of the stream that want it. `message_id` is 0 if there is nothing to ack."""

    message_id: int
    document: Document
    slots: np.ndarray
    sequences: np.ndarray
    attempt: int


@dataclass(frozen=True, slots=True)
class Messages:
    """Some messages, in order."""

    messages: list[Message]


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """Nothing has happened for a while. `backlog` counts what waits, in flight or not."""

    backlog: int
    oldest_age: float


@dataclass(frozen=True, slots=True)
class Goodbye:
    """The last event of a stream."""

    reason: GoodbyeReason
    message: str


Event = SlotsJoined | Messages | Heartbeat | Goodbye
