"""What carries notifications to a target that the server calls by itself.

Notification ─▶ Transport.send ─▶ nothing: the target has taken them all
                               └▶ PushError: try again, or give up if `is_final`
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from server.documents import Document
from server.subscriptions import Subscription

__all__ = ["Notification", "PushError", "Transport"]


@dataclass(frozen=True, slots=True)
class Notification:
    """One document for the subscription that is pushed."""

    sequence: int
    attempt: int
    document: Document


class PushError(Exception):
    """The target has not taken them. `retry_after`: it said for how long to leave it alone."""

    def __init__(self, reason: str, retry_after: float = 0.0, is_final: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.retry_after = retry_after
        self.is_final = is_final


class Transport(Protocol):
    """Webhook or e-mail."""

    async def send(self, subscription: Subscription, notifications: Sequence[Notification]) -> None:
        """Return when the target has taken all of them; `PushError` if it has not."""

    async def close(self) -> None: ...
