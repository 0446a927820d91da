"""A stage for tests of delivery: a clock that only moves when told, a log in memory, streams that are read at once."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

import numpy as np
from memory_log import MemoryCursors, MemoryDeadLetters, MemoryLog

from server.deliveries import (
    Attachment,
    AttachMode,
    Counters,
    Credit,
    Deliveries,
    DeliverySettings,
    EphemeralAttachment,
    Event,
    Message,
    Messages,
    SlotsJoined,
)
from server.documents import Document
from server.subscriptions import Filter, Subscription

PLENTY = Credit(1_000_000, 1 << 40)
START = 1_000_000.0


def subscription(number: int, **others: Any) -> Subscription:
    """Subscription `number` of the tenant "default"."""
    return Subscription(
        **{"tenant": "default", "id": f"s{number}", "filter": Filter("xpath", "//a"), "number": number} | others
    )


class Counts:
    """How often something was counted, by name."""

    def __init__(self) -> None:
        self.by_name: dict[str, int] = {}
        self.counters = Counters(**{name: self._counter(name) for name in Counters.__slots__})

    def __getitem__(self, name: str) -> int:
        return self.by_name.get(name, 0)

    def _counter(self, name: str) -> Any:
        def count(amount: int) -> None:
            self.by_name[name] = self[name] + amount

        return count


class Scene:
    """Deliveries over a log in memory, or another one."""

    def __init__(
        self,
        settings: DeliverySettings | None = None,
        log: Any = None,
        cursors: Any = None,
        letters: Any = None,
        **parts: Any,
    ) -> None:
        self.now = START
        self.log = log or MemoryLog()
        self.cursors = cursors or MemoryCursors(self.log)
        self.letters = letters or MemoryDeadLetters()
        self.counts = Counts()
        self.deliveries = Deliveries(
            self.log,
            self.cursors,
            self.letters,
            settings,
            clock=lambda: self.now,
            counters=self.counts.counters,
            **parts,
        )
        self.log.on_append = self.deliveries.dispatch
        self._n_documents = 0

    def publish(self, *numbers: int, xml: bytes = b"<a/>", **others: Any) -> Document:
        """A document that these subscriptions want."""
        self._n_documents += 1
        document = Document(**{"id": f"d{self._n_documents}", "xml": xml, "publish_time": self.now} | others)
        self.log.put(document, *numbers)
        return document

    def numbers(self, wanted: Iterable[int]) -> np.ndarray:
        return np.array(sorted(wanted), np.int64)

    async def attach(self, *numbers: int, credit: Credit = PLENTY, **others: Any) -> Attachment:
        """A stream for these subscriptions, past the announcement of its slots."""
        wanted = [subscription(number) for number in numbers]
        stream = await self.deliveries.attach("default", wanted, credit=credit, **others)
        if numbers:
            assert isinstance(await stream.next(), SlotsJoined)
        return stream

    async def settle(self) -> None:
        """Let all work be done that can be done at this moment."""
        for _ in range(3):
            await asyncio.sleep(0)
        while len(self.deliveries._environment.tasks):
            await asyncio.sleep(0)

    async def pass_time(self, seconds: float) -> None:
        """Let time pass, and happen what is due."""
        self.now += seconds
        self.deliveries.run_timers()
        await self.settle()


@asynccontextmanager
async def scene(settings: DeliverySettings | None = None, **parts: Any) -> AsyncIterator[Scene]:
    stage = Scene(settings, **parts)
    try:
        yield stage
    finally:
        await stage.deliveries.close()


async def soon(stream: Attachment | EphemeralAttachment) -> Event | None:
    """What the stream says now; None if it says nothing."""
    task = asyncio.ensure_future(stream.next())
    for _ in range(20):
        if task.done():
            return task.result()
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait({task})
    return None


async def messages(stream: Attachment | EphemeralAttachment) -> list[Message]:
    """All messages that the stream has now."""
    found: list[Message] = []
    while (event := await soon(stream)) is not None:
        assert isinstance(event, Messages), event
        found += event.messages
    return found


async def ids(stream: Attachment | EphemeralAttachment) -> list[str]:
    """The documents that the stream has now."""
    return [message.document.id for message in await messages(stream)]


SHARED = AttachMode.SHARED
EXCLUSIVE = AttachMode.EXCLUSIVE
