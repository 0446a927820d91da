"""A server with a million subscriptions: how fast they come in, how soon a new one counts, how long a restart takes.

import ─▶ 1,000,000 ─▶ create one ─▶ publish ─▶ matched      again and again, and each found by `pull`
                   └─▶ stop ─▶ start ─▶ ready
"""

import asyncio
from time import perf_counter

import numpy as np

from benchmarks.floors import bound
from benchmarks.measure import quiet
from benchmarks.report import Row
from benchmarks.server_workbench import ServerWorkbench, serving
from benchmarks.workbench import progress
from pathsieve import AsyncClient

__all__ = ["million"]


def million(bench: ServerWorkbench) -> list[Row]:
    """Import, create and restart; documents must match as many as before, and the new ones."""
    return asyncio.run(_million(bench))


async def _million(bench: ServerWorkbench) -> list[Row]:
    texts, n = bench.million(), bench.sizes.million
    progress(f"{n:,} subscriptions imported through the client")
    async with serving() as (server, client):
        importing = await _import(client, texts)
        progress(f"{bench.sizes.n_created} subscriptions created on top, a document after each")
        creating = await _create(bench, client)
        before = await _matches(bench, client)
        progress("restart")
        await server.stop()
        start = perf_counter()
        await server.start()
        restarting = perf_counter() - start
        bench.checks.equal("matches after a restart", await _matches(bench, client), before)
    half, most = np.percentile(creating * 1e3, (50, 99))
    ceiling = bound("ms of 99% from create to match", n)
    return [
        Row("server-million", "import", n, n / importing, "subscriptions/s"),
        Row("server-million", "create to match, median", n, float(half), "ms"),
        Row("server-million", "create to match, 99th percentile", n, float(most), "ms", at_most=ceiling),
        Row("server-million", "restart until ready", n, restarting, "s", at_most=bound("seconds until ready", n)),
    ]


async def _import(client: AsyncClient, texts: list[str]) -> float:
    start = perf_counter()
    async for imported in client.import_subscriptions({"xpath": text} for text in texts):
        assert imported.error is None, imported.error
    return perf_counter() - start


async def _create(bench: ServerWorkbench, client: AsyncClient) -> np.ndarray:
    """The seconds from a wish to a document that it matched."""
    others = (await client.publish("<probe n='-1'/>")).matches
    times = np.empty(bench.sizes.n_created)
    with quiet():
        for place in range(len(times)):
            start = perf_counter()
            await client.subscribe(id=f"probe{place}", xpath=f"/probe[@n={place}]")
            published = await client.publish(f"<probe n='{place}'/>", id=f"probe{place}")
            times[place] = perf_counter() - start
            pulled = [message.document.id for message in await client.pull(f"probe{place}")]
            assert pulled == [published.id], f"expected {published.id} for probe{place}, found {pulled}"
            bench.checks.equal(f"matches of probe {place}", np.array(published.matches), np.array(others + 1))
    return times


async def _matches(bench: ServerWorkbench, client: AsyncClient) -> np.ndarray:
    """How many subscriptions want each document."""
    return np.array([result.matches async for result in client.publish_many(bench.documents)])
