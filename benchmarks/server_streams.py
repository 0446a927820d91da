"""How fast documents go through a server, from one stream to another: against the engine alone, and kept against not.

    in-process   document ─▶ engine ─▶ ids                                  one thread
    ephemeral    document ─▶ gRPC ─▶ server ─▶ gRPC ─▶ message              filters of the stream
    durable      document ─▶ gRPC ─▶ server, store ─▶ gRPC ─▶ message ─▶ ack    subscriptions, one consumer of all

The three take turns. `latency` publishes at half the speed that was found, and looks at single documents.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager

import numpy as np

from benchmarks.floors import bound
from benchmarks.measure import item_seconds, quiet
from benchmarks.report import Row, ratio
from benchmarks.server_flow import Flow, in_turns
from benchmarks.server_workbench import ServerWorkbench, Workload, serving
from benchmarks.workbench import progress
from benchmarks.workload import SELECTIVE
from pathsieve import Filter, Message

__all__ = ["notified", "streamed"]

PREFIX = "subscriptions/s"


def streamed(bench: ServerWorkbench) -> list[Row]:
    """All three ways; every answer compared with the engine's."""
    broad = asyncio.run(_turns(bench, bench.workload(), "5,000"))
    return [*broad, *asyncio.run(_turns(bench, bench.workload(SELECTIVE), "50"))]


def notified(bench: ServerWorkbench) -> list[Row]:
    """How long single documents take at half load; every answer compared with the engine's."""
    return asyncio.run(_notified(bench, bench.workload()))


async def _turns(bench: ServerWorkbench, workload: Workload, about: str) -> list[Row]:
    n, n_documents = workload.n, bench.sizes.n_streamed
    progress(f"{n_documents} documents through servers, {workload.n_matches:,.0f} matches each")
    async with AsyncExitStack() as stack:
        sides: dict[str, Callable[[], Awaitable[float]]] = {"in-process": _in_process(workload)}
        for name, opened in (("ephemeral", _ephemeral), ("durable", _durable)):
            flow = await stack.enter_async_context(opened(workload))
            await flow.check(bench.checks)
            sides[name] = _cost(flow, n_documents)
        cost = await in_turns(sides, bench.sizes.n_rounds)
    what = f"{workload.n_matches:,.0f} matches"
    rows = [Row("server-stream", f"{name}, {what}", n, 1 / cost[name], "documents/s") for name in sides]
    if about == "5,000":
        whole = "end to end, of the engine's speed in-process"
        rows.append(ratio("server-stream", whole, n, cost["in-process"] / cost["ephemeral"]))
    kept = f"durable, of ephemeral speed, about {about} matches"
    return [*rows, ratio("server-stream", kept, n, cost["ephemeral"] / cost["durable"])]


async def _notified(bench: ServerWorkbench, workload: Workload) -> list[Row]:
    n, n_documents = workload.n, bench.sizes.n_streamed
    async with _ephemeral(workload) as flow:
        await flow.check(bench.checks)
        sides = {"in-process": _in_process(workload), "ephemeral": _cost(flow, n_documents)}
        cost = await in_turns(sides, bench.sizes.n_rounds)
        progress(f"{n_documents} documents, one every {2e3 * cost['ephemeral']:.2f} ms")
        with quiet():
            latencies = await flow.latencies(n_documents, 2 * cost["ephemeral"]) * 1e3
    half, most = np.percentile(latencies, (50, 99))
    what = "99% of notifications, in mean match times"
    return [
        Row("server-latency", "engine in-process", n, cost["in-process"] * 1e3, "ms"),
        Row("server-latency", "publish to notification, median", n, float(half), "ms"),
        Row("server-latency", "publish to notification, 99th percentile", n, float(most), "ms"),
        Row("server-latency", "publish to notification, slowest", n, float(latencies.max()), "ms"),
        Row("server-latency", what, n, float(most) / cost["in-process"] / 1e3, "×", at_most=bound(what, n)),
    ]


def _in_process(workload: Workload) -> Callable[[], Awaitable[float]]:
    async def cost() -> float:
        return float(np.mean(item_seconds(workload.load.index.match, workload.documents)))

    return cost


def _cost(flow: Flow, n_documents: int) -> Callable[[], Awaitable[float]]:
    async def cost() -> float:
        return await flow.seconds(n_documents) / n_documents

    return cost


@asynccontextmanager
async def _ephemeral(workload: Workload) -> AsyncIterator[Flow]:
    """One stream with all expressions as filters of its own."""
    places = {expression: place for place, expression in enumerate(workload.expressions)}

    def answer(message: Message) -> np.ndarray:
        return np.array([places[name] for name, _ in message.matches])

    async with serving() as (_, client):
        filters = [Filter(expression) for expression in workload.expressions]
        async with client.attach(ephemeral=filters) as messages:
            yield Flow(workload, client, messages, answer)


@asynccontextmanager
async def _durable(workload: Workload) -> AsyncIterator[Flow]:
    """One consumer of all expressions, which are subscriptions."""

    def answer(message: Message) -> np.ndarray:
        return np.sort([int(name.removeprefix(PREFIX)) for name, _ in message.matches])

    async with serving() as (_, client):
        wishes = ({"id": f"s{place}", "xpath": text} for place, text in enumerate(workload.expressions))
        async for imported in client.import_subscriptions(wishes):
            assert imported.error is None, imported.error
        async with client.attach("-") as messages:
            yield Flow(workload, client, messages, answer)
