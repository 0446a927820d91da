"""A stage for tests of delivery: a clock that only moves when told, a log in memory, streams that are read at once."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np
from memory_log import MemoryCursors, MemoryDeadLetters, MemoryLog

from server.deliveries import (
    Attachment,
    AttachMode,
    Counters,
    Credit,
    DeadLetter,
    Deliveries,
    DeliverySettings,
    EphemeralAttachment,
    Event,
    Message,
    Messages,
    SlotsJoined,
)
from server.documents import Document
from server.log.cursors import Cursors
from server.log.match_log import MatchLog
from server.store import open_store
from server.subscriptions import Filter, Subscription

Stage = Callable[..., AbstractAsyncContextManager["Scene"]]
"""Makes a scene: `scene` over the log in memory, or `real_scene` in a folder."""

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

    async def publish(self, *numbers: int, xml: bytes = b"<a/>") -> Document:
        """A document that these subscriptions want."""
        self._n_documents += 1
        document = Document(f"d{self._n_documents}", xml=xml, publish_time=self.now)
        await self.log.append([("default", document, self.numbers(numbers))])
        return document

    def done(self, number: int) -> set[int]:
        """The sequences of a subscription that are done."""
        sequences = range(1, int(self.log.heads[number]) + 1)
        return {sequence for sequence in sequences if self.cursors.is_done(number, sequence)}

    async def letters_of(self, *numbers: int) -> list[DeadLetter]:
        """The dead letters of some subscriptions."""
        return [letter for number in numbers for letter in await self.letters.page(number, 0, 1000)]

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
    """A scene over the log in memory."""
    stage = Scene(settings, **parts)
    try:
        yield stage
    finally:
        await stage.deliveries.close()


@asynccontextmanager
async def real_scene(folder: Path, settings: DeliverySettings | None = None, **parts: Any) -> AsyncIterator[Scene]:
    """A scene over the real log, in a store in this folder."""
    store = await open_store(str(folder / "store.db"))
    log = await MatchLog.open(store)
    cursors = await Cursors.open(store, log)
    try:
        async with scene(settings, log=log, cursors=cursors, letters=store.dead_letters, **parts) as stage:
            yield stage
    finally:
        await cursors.close()
        await log.close()
        await store.close()


async def soon(stream: Attachment | EphemeralAttachment) -> Event | None:
    """What the stream says now; None if it says nothing."""
    task = asyncio.ensure_future(stream.next())
    for _ in range(5):
        await asyncio.sleep(0)
    while len(stream._environment.tasks) and not task.done():
        await asyncio.sleep(0)
    await asyncio.sleep(0)
    if task.done():
        return task.result()
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
