"""Many subscriptions over one stream, answered in order.

    items ──▶ batches ──▶ (server) ──▶ results, one for each, in order; a refused one does not stop the others

The stream is not repeated when it breaks: which of the last ones were created is not known then, and `get` tells.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator

import grpc

from pathsieve.endpoints import Endpoint
from pathsieve.errors import InvalidExpression
from pathsieve.results import Imported
from pathsieve.statuses import error_of_call, error_of_problem, is_unexplained
from pathsieve.v1.subscription_service_pb2 import (
    ImportItem,
    ImportResult,
    ImportSubscriptionsRequest,
    ImportSubscriptionsResponse,
)
from pathsieve.wishes import Wish, id_of, wish_message

__all__ = ["ImportStream", "batches_of"]

BATCH_ITEMS, BATCH_BYTES = 1000, 1 << 20
WINDOW_ITEMS = 20_000
"""How many may wait for their results before more are sent."""


def batches_of(wishes: Iterable[Wish]) -> Iterator[list[ImportItem]]:
    """Wishes as they travel, cut into pieces."""
    batch: list[ImportItem] = []
    n_bytes = 0
    for wish in wishes:
        batch.append(ImportItem(subscription=wish_message(wish), subscription_id=id_of(wish)))
        n_bytes += batch[-1].ByteSize()
        if len(batch) == BATCH_ITEMS or n_bytes >= BATCH_BYTES:
            yield batch
            batch, n_bytes = [], 0
    if batch:
        yield batch


class ImportStream:
    """`send` batches, `finish`, and take `results` until there are none."""

    def __init__(self, endpoint: Endpoint, ask: Callable[[], Awaitable[object]]) -> None:
        """`ask` makes a harmless call, which is refused for the same reason if the stream was."""
        self._ask = ask
        self._address = endpoint.address
        self._call: grpc.aio.StreamStreamCall[ImportSubscriptionsRequest, ImportSubscriptionsResponse]
        self._call = endpoint.subscriptions.ImportSubscriptions(metadata=endpoint.metadata)
        self._ready: deque[Imported] = deque()
        self._n_unanswered = 0
        self._news = asyncio.Event()
        self._reading = asyncio.create_task(self._read())
        self._reading.add_done_callback(lambda _: self._news.set())

    async def send(self, batch: list[ImportItem]) -> list[Imported]:
        """Send some; what has been answered by now."""
        self._n_unanswered += len(batch)
        with contextlib.suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):  # `results` tells
            await self._call.write(ImportSubscriptionsRequest(items=batch))
        if self._n_unanswered > WINDOW_ITEMS or self._reading.done():
            return await self.results()
        return self._taken()

    async def finish(self) -> None:
        """There are no more."""
        with contextlib.suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):
            await self._call.done_writing()

    async def results(self) -> list[Imported]:
        """Wait for results; none means that all have been given out."""
        while not self._ready and not self._reading.done():
            self._news.clear()
            await self._news.wait()
        if not self._ready:
            await self._check()
        return self._taken()

    async def aclose(self) -> None:
        self._call.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)  # `results` has told

    def _taken(self) -> list[Imported]:
        ready = list(self._ready)
        self._ready.clear()
        return ready

    async def _check(self) -> None:
        try:
            await self._reading
        except grpc.aio.AioRpcError as failed:
            error = error_of_call(failed, self._address)
            if is_unexplained(error):
                await self._ask()
            error.facts["unanswered"] = str(self._n_unanswered)
            raise error from None

    async def _read(self) -> None:
        async for response in self._call:
            self._ready.extend(map(_imported, response.results))
            self._n_unanswered -= len(response.results)
            self._news.set()


def _imported(result: ImportResult) -> Imported:
    error = error_of_problem(result.problem, InvalidExpression) if result.HasField("problem") else None
    return Imported(result.index, result.name, error)
