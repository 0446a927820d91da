"""One target that has something to send, or rests: what it has to remember between two batches.

sequences   7  8  9 10 11 12 13
            └─ batch ─┘              failed: tried again as it is, `batch_end` is 10
            7 | 8 | 9 | 10           attempts used up: one by one, `alone_until` is 10
            └──── digest ─────┘      due: `digest_end` is 12, and 13 is for the next one
"""

from typing import TYPE_CHECKING

from server.deliveries.timers import NOT_SET
from server.subscriptions import Subscription

if TYPE_CHECKING:
    from server.deliveries.pushes import Pushes

__all__ = ["PushTarget"]

LATE = 5.0


class PushTarget:
    """A subscription with a push, while it is active. `failures` counts those since something was taken."""

    __slots__ = (
        "_pushes",
        "alone_until",
        "batch_end",
        "digest_end",
        "due_at",
        "failures",
        "is_gone",
        "subscription",
        "tick",
    )

    def __init__(self, pushes: "Pushes", subscription: Subscription) -> None:
        self._pushes = pushes
        self.subscription = subscription
        self.failures = 0
        self.batch_end = 0
        self.alone_until = 0
        self.digest_end = 0
        self.due_at = 0.0
        self.is_gone = False
        self.tick = NOT_SET

    def is_due(self, now: float) -> bool:
        """May something be sent now?"""
        return self.subscription.schedule.is_immediate or 0 < self.due_at <= now

    def left_at(self, now: float) -> float:
        """When the digest left that was just taken: when it was due, unless it was late."""
        return now if now - self.due_at > LATE else self.due_at

    def limit(self, first: int, most: int) -> int:
        """How many messages, from `first` on, go in the next batch."""
        if first <= self.alone_until:
            return 1
        if first <= self.batch_end:
            return self.batch_end - first + 1
        if first <= self.digest_end:
            return min(self.digest_end - first + 1, most)
        return most

    def fire(self) -> None:
        """A pause is over, or a digest is due."""
        self._pushes.rested(self)
