"""Documents in on one stream, notifications out on another, both of one client.

    put ──▶ publish stream ──▶ server ──▶ attached stream ──▶ message
     ▲                                                           │
     └──────────── at most WINDOW documents in between ──────────┘

An ephemeral stream that falls behind is ended by the server, so the publisher does not run ahead of it. Documents that
nobody wants bring no message, and take no place in the window.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from itertools import cycle, islice
from time import perf_counter

import numpy as np

from benchmarks.answers import Checks
from benchmarks.measure import quiet
from benchmarks.server_workbench import Workload
from pathsieve import AsyncAttachment, AsyncClient, Message

__all__ = ["Flow", "in_turns"]

WINDOW = 128

Answer = Callable[[Message], np.ndarray]
"""The places of the expressions that a message is for."""


class Flow:
    """The documents of a workload, over and over, through one server."""

    def __init__(self, workload: Workload, client: AsyncClient, messages: AsyncAttachment, answer: Answer) -> None:
        self._workload = workload
        self._client = client
        self._messages = messages
        self._answer = answer

    async def seconds(self, n: int) -> float:
        """How long `n` documents take, from the first that is put to the last message."""
        start = perf_counter()
        messages = await self._run(n)
        spent = perf_counter() - start
        assert [message.n_matches for message in messages] == [len(answer) for answer in self._wanted(n)]
        return spent

    async def check(self, checks: Checks) -> None:
        """Have every document once, and compare who wants it with the engine's own answer."""
        n = len(self._workload.documents)
        for place, (message, expected) in enumerate(zip(await self._run(n), self._wanted(n), strict=True)):
            checks.equal(f"message {place} from the server, and the engine", self._answer(message), expected)

    async def latencies(self, n: int, interval: float) -> np.ndarray:
        """The seconds from when each of `n` documents was put, one every `interval`, to its message."""
        put: list[float] = []
        async with asyncio.TaskGroup() as tasks:
            reading = tasks.create_task(self._arrivals(n))
            tasks.create_task(self._publish(self._paced(n, interval, put)))
        wanted = [len(answer) > 0 for _, answer in self._work(n)]
        return np.array(reading.result()) - np.array(put)[wanted]

    def _work(self, n: int) -> Iterator[tuple[bytes, np.ndarray]]:
        """`n` documents, and who wants them."""
        return islice(cycle(zip(self._workload.documents, self._workload.answers, strict=True)), n)

    def _wanted(self, n: int) -> list[np.ndarray]:
        """The answers that a message is expected for."""
        return [answer for _, answer in self._work(n) if len(answer)]

    async def _run(self, n: int) -> list[Message]:
        room = asyncio.Semaphore(WINDOW)
        async with asyncio.TaskGroup() as tasks:
            reading = tasks.create_task(self._read(n, room))
            tasks.create_task(self._publish(self._in_window(n, room)))
        return reading.result()

    async def _publish(self, documents: AsyncIterator[bytes]) -> None:
        async for result in self._client.publish_many(documents):
            assert result.error is None, result.error

    async def _in_window(self, n: int, room: asyncio.Semaphore) -> AsyncIterator[bytes]:
        for document, answer in self._work(n):
            if len(answer):
                await room.acquire()
            yield document

    async def _read(self, n: int, room: asyncio.Semaphore) -> list[Message]:
        messages = []
        for _ in self._wanted(n):
            messages.append(await anext(self._messages))
            messages[-1].ack()
            room.release()
        return messages

    async def _paced(self, n: int, interval: float, put: list[float]) -> AsyncIterator[bytes]:
        """Documents when they are due; one that comes late does not hold back the next."""
        start = perf_counter()
        for place, (document, _) in enumerate(self._work(n)):
            await asyncio.sleep(start + place * interval - perf_counter())
            put.append(perf_counter())
            yield document

    async def _arrivals(self, n: int) -> list[float]:
        times = []
        for _ in self._wanted(n):
            message = await anext(self._messages)
            times.append(perf_counter())
            message.ack()
        return times


async def in_turns(sides: Mapping[str, Callable[[], Awaitable[float]]], n_rounds: int) -> dict[str, float]:
    """The median of what each side returns; the sides take turns, so that a busy minute hits all of them."""
    rounds: dict[str, list[float]] = {name: [] for name in sides}
    with quiet():
        for _ in range(n_rounds):
            for name, measure in sides.items():
                rounds[name].append(await measure())
    return {name: float(np.median(times)) for name, times in rounds.items()}
