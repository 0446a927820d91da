"""What a consumer that has stopped reading costs the others, and the publisher.

    server A    99 consumers read, one does not ─┐
                                                 ├─ the same documents, in turns
    server B    100 consumers read ──────────────┘

Every document is for one of the 99, in turn, and for the hundredth.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from time import perf_counter

import numpy as np

from benchmarks.floors import bound
from benchmarks.report import Row
from benchmarks.server_flow import in_turns
from benchmarks.server_workbench import ServerWorkbench, serving
from benchmarks.workbench import progress
from pathsieve import AsyncAttachment, AsyncClient

__all__ = ["stalled"]

N_CONSUMERS = 100
PADDING = "x" * 4_000


class Crowd:
    """A publisher and its consumers; `n_read` counts what each of these has had."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client
        self._news = asyncio.Event()
        self.n_read = np.zeros(N_CONSUMERS - 1, np.int64)

    async def read(self, place: int, messages: AsyncAttachment) -> None:
        """Acknowledge what comes; sequences have no gaps."""
        async for message in messages:
            self.n_read[place] += 1
            assert message.sequence == self.n_read[place]
            message.ack()
            self._news.set()

    async def read_all(self, messages: AsyncAttachment) -> None:
        """The consumer of every document."""
        async for message in messages:
            message.ack()

    async def seconds(self, n: int) -> float:
        """How long `n` documents take, until the 99 have had theirs."""
        start, goal = perf_counter(), int(self.n_read.sum()) + n
        documents = (f"<a to='{place % (N_CONSUMERS - 1)}'>{PADDING}</a>" for place in range(n))
        async for result in self._client.publish_many(documents):
            assert result.matches == 2
        while self.n_read.sum() < goal:
            self._news.clear()
            await self._news.wait()
        return perf_counter() - start


def stalled(bench: ServerWorkbench) -> list[Row]:
    """Both servers in turns; everybody who reads gets everything, in order."""
    return asyncio.run(_stalled(bench))


async def _stalled(bench: ServerWorkbench) -> list[Row]:
    n = bench.sizes.n_stalled
    progress(f"{N_CONSUMERS} consumers, with and without one that stops, {n} documents")
    async with _crowd(True) as one_stopped, _crowd(False) as all_read:
        sides = {"stopped": lambda: one_stopped.seconds(n), "reading": lambda: all_read.seconds(n)}
        spent = await in_turns(sides, bench.sizes.n_rounds)
        bench.checks.equal("messages with a stopped consumer and without", one_stopped.n_read, all_read.n_read)
    what = "speed of the others beside a stopped consumer"
    return [
        Row("server-stalled", "all read", N_CONSUMERS, n / spent["reading"], "documents/s"),
        Row("server-stalled", "one of them stopped", N_CONSUMERS, n / spent["stopped"], "documents/s"),
        Row("server-stalled", what, N_CONSUMERS, spent["reading"] / spent["stopped"], "×", bound(what, N_CONSUMERS)),
    ]


@asynccontextmanager
async def _crowd(has_stopped: bool) -> AsyncIterator[Crowd]:
    async with serving() as (_, client), AsyncExitStack() as stack:
        crowd, reading = Crowd(client), []
        for place in range(N_CONSUMERS - 1):
            await client.subscribe(id=f"to{place}", xpath=f"/a[@to={place}]")
            messages = await stack.enter_async_context(client.attach(f"to{place}"))
            reading.append(asyncio.create_task(crowd.read(place, messages)))
        await client.subscribe(id="all", xpath="/a")
        every = await stack.enter_async_context(client.attach("all"))
        if not has_stopped:
            reading.append(asyncio.create_task(crowd.read_all(every)))
        yield crowd
        for task in reading:
            task.cancel()
        await asyncio.gather(*reading, return_exceptions=True)
