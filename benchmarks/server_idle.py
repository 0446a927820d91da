"""What streams cost that have nothing to say: memory of the server, and time of others' calls.

server A    5,000 streams attached, idle ─┐
                                          ├─ the same calls, in turns
server B    no streams ───────────────────┘
"""

import asyncio
from contextlib import AsyncExitStack
from time import perf_counter

import numpy as np

from benchmarks.floors import bound
from benchmarks.measure import quiet
from benchmarks.report import Row
from benchmarks.server_workbench import ServerWorkbench, serving
from benchmarks.workbench import progress
from pathsieve import AsyncClient

__all__ = ["idle"]

KB = 1000


def idle(bench: ServerWorkbench) -> list[Row]:
    """Thousands of streams, each with a subscription of its own; each of them is notified in the end."""
    return asyncio.run(_idle(bench))


async def _idle(bench: ServerWorkbench) -> list[Row]:
    n = bench.sizes.n_idle
    progress(f"{n:,} idle streams")
    async with serving() as (busy, client), serving() as (_, other), AsyncExitStack() as stack:
        for one in (client, other):
            await _subscribe(one, n)
        await _median_calls([client, other], bench.sizes.n_calls)
        before = busy.resident_bytes
        streams = [client.attach(f"s{place}", credit=1) for place in range(n)]
        for stream in streams:
            await stack.enter_async_context(stream)
        await _median_calls([client], 1)
        bytes_each = (busy.resident_bytes - before) / n
        beside, without = await _median_calls([client, other], bench.sizes.n_calls)
        await client.publish("<news/>")
        places = [int((await anext(stream)).subscription.removeprefix("subscriptions/s")) for stream in streams]
        bench.checks.equal("who was notified after being idle", np.array(places), np.arange(n))
    what = "median call beside idle streams, times that without"
    return [
        Row("server-idle", "KB of an idle stream", n, bytes_each / KB, "KB", at_most=bound("KB of an idle stream", n)),
        Row("server-idle", "median call beside idle streams", n, beside * 1e3, "ms"),
        Row("server-idle", what, n, beside / without, "×", at_most=bound(what, n)),
    ]


async def _subscribe(client: AsyncClient, n: int) -> None:
    async for imported in client.import_subscriptions({"id": f"s{place}", "xpath": "/news"} for place in range(n)):
        assert imported.error is None, imported.error


async def _median_calls(clients: list[AsyncClient], n_calls: int) -> list[float]:
    """The median seconds of a unary call for each client, in turns."""
    times: list[list[float]] = [[] for _ in clients]
    with quiet():
        for _ in range(n_calls):
            for client, own in zip(clients, times, strict=True):
                start = perf_counter()
                await client.get("s0")
                own.append(perf_counter() - start)
    return [float(np.median(own)) for own in times]
