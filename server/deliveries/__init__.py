"""Delivery: who gets which notification, when, and what happens if nobody takes it.

    match log ─ dispatch ─▶ Deliveries ─▶ Attachment.next() ─▶ a stream
                               │  ▲
                               │  └── ack, nack, extend, grant
                               ├─▶ webhook, e-mail
                               └─▶ cursors, dead letters

At least once, first deliveries in the order of sequences. A consumer that stalls holds back only itself: nothing is
queued for it beyond its credit, and what it cannot take now it reads from the log later.
"""

from server.deliveries.attachment import Attachment
from server.deliveries.deliveries import Deliveries
from server.deliveries.ephemeral import EPHEMERAL, EphemeralAttachment
from server.deliveries.events import (
    AttachMode,
    Credit,
    Event,
    Goodbye,
    GoodbyeReason,
    Heartbeat,
    Message,
    Messages,
    SlotsJoined,
)
from server.deliveries.ports import Counters, DeadLetter
from server.deliveries.pulls import PulledMessage
from server.deliveries.settings import DeliverySettings

__all__ = [
    "EPHEMERAL",
    "AttachMode",
    "Attachment",
    "Counters",
    "Credit",
    "DeadLetter",
    "Deliveries",
    "DeliverySettings",
    "EphemeralAttachment",
    "Event",
    "Goodbye",
    "GoodbyeReason",
    "Heartbeat",
    "Message",
    "Messages",
    "PulledMessage",
    "SlotsJoined",
]
