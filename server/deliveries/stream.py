"""One end of a stream: what waits to be said, and who waits for it.

    put, fire, goodbye ──▶ wake ──▶ next() ──▶ SlotsJoined | Messages | Heartbeat | Goodbye

Nothing here blocks who has something to say. An idle stream is one future and one entry of the timer wheel.
"""

import asyncio
from abc import abstractmethod
from collections.abc import Sequence

from server.deliveries.environment import Environment
from server.deliveries.events import (
    Credit,
    Event,
    Goodbye,
    GoodbyeReason,
    Heartbeat,
    Message,
    Messages,
    SlotsJoined,
)
from server.deliveries.timers import NOT_SET

__all__ = ["Stream"]

MAX_SLOTS = 10_000
"""Of one event: as many names as fit well into a message of the wire."""


class Stream:
    """What durable and ephemeral attachments have in common. `next()` is for one caller at a time."""

    __slots__ = (
        "__weakref__",
        "_beat_due",
        "_environment",
        "_failure",
        "_goodbye",
        "_heartbeat",
        "_joined",
        "_waiter",
        "credit_bytes",
        "credit_messages",
        "tick",
    )

    def __init__(self, environment: Environment, credit: Credit, heartbeat: float) -> None:
        self._environment = environment
        self.credit_messages = credit.messages
        self.credit_bytes = credit.bytes
        self._heartbeat = heartbeat
        self._joined: list[tuple[int, str]] = []
        self._goodbye: Goodbye | None = None
        self._failure: BaseException | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._beat_due = False
        self.tick = NOT_SET

    async def next(self) -> Event:
        """What the stream is to be told next; after a goodbye the same goodbye again."""
        while (event := self._take()) is None:
            await self._wait()
        return event

    def join(self, slots: Sequence[tuple[int, str]]) -> None:
        """Tell which numbers stand for which names, before any message that uses them."""
        self._joined.extend(slots)
        self._wake()

    def goodbye(self, reason: GoodbyeReason, message: str = "") -> None:
        """Say nothing more but this. The first goodbye counts."""
        if self._goodbye is None:
            self._goodbye = Goodbye(reason, message or reason.value)
            self._wake()

    def fail(self, error: BaseException) -> None:
        """Let `next()` raise."""
        self._failure = error
        self._wake()

    @property
    def is_leaving(self) -> bool:
        return self._goodbye is not None or self._failure is not None

    def fire(self) -> None:
        """There was nothing to say for so long that a heartbeat is due."""
        self._beat_due = True
        self._wake()

    @abstractmethod
    def _take_messages(self) -> list[Message]:
        """What may leave now."""

    @abstractmethod
    def _beat(self) -> Heartbeat: ...

    def _take(self) -> Event | None:
        if self._failure is not None:
            raise self._failure
        if self._goodbye is not None:
            return self._goodbye
        if self._joined:
            return self._take_joined()
        messages = self._take_messages()
        if messages:
            self._beat_due = False
            return Messages(messages)
        return self._beat() if self._beat_due else None

    def _take_joined(self) -> SlotsJoined:
        joined, self._joined = self._joined[:MAX_SLOTS], self._joined[MAX_SLOTS:]
        return SlotsJoined([slot for slot, _ in joined], [name for _, name in joined])

    async def _wait(self) -> None:
        self._waiter = asyncio.get_running_loop().create_future()
        self._environment.timers.set(self, self._environment.clock() + self._heartbeat)
        try:
            await self._waiter
        finally:
            self._waiter = None
            self._environment.timers.cancel(self)

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
