"""Subscriptions in bulk: what has come while the last lot was being stored is the next lot.

    requests ──▶ waiting, at most 64 messages ──▶ a lot: about 2,000 items ──▶ broker ──▶ results, in order

The engines compile many at once much faster than one by one, and the store commits once a lot. So the lots grow by
themselves when much comes, and a single item is not held up. Larger lots are no faster (100,000 items took 4.0 s with
lots of 20,000 and 3.9 s with lots of 2,000), and others would wait while one is being read.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any

from pathsieve.v1.subscription_service_pb2 import (
    ImportItem,
    ImportResult,
    ImportSubscriptionsRequest,
    ImportSubscriptionsResponse,
)
from server.broker import Broker
from server.errors import ServerError
from server.rpc.problems import problem_of
from server.rpc.translate_subscriptions import subscription_from
from server.subscriptions import Subscription

__all__ = ["ImportStream"]

MOST_WAITING = 64
LARGEST_LOT = 2_000
RESULTS_A_MESSAGE = 5_000


@dataclass(frozen=True, slots=True)
class End:
    """There will be no more, because of `error` if there is one."""

    error: Exception | None = None


class ImportStream:
    """One stream of subscriptions to create."""

    def __init__(
        self, broker: Broker, tenant: str, requests: AsyncIterator[ImportSubscriptionsRequest], context: Any
    ) -> None:
        self._broker = broker
        self._tenant = tenant
        self._requests = requests
        self._context = context
        self._waiting: asyncio.Queue[Sequence[ImportItem] | End] = asyncio.Queue(MOST_WAITING)
        self._end: End | None = None
        self._n_items = 0

    async def run(self) -> None:
        """Serve the stream to its end."""
        reader = asyncio.create_task(self._read())
        try:
            while lot := await self._next_lot():
                await self._answer(await self._import(lot))
        finally:
            reader.cancel()

    async def _read(self) -> None:
        """Have the requests wait for the next lot; then their end, and the error if that was one."""
        try:
            async for request in self._requests:
                await self._waiting.put(request.items)
            await self._waiting.put(End())
        except Exception as error:  # noqa: BLE001  raised again where the lots are made
            await self._waiting.put(End(error))

    async def _next_lot(self) -> list[ImportItem]:
        """Wait for something, and take what there is; nothing at the end."""
        lot: list[ImportItem] = []
        while self._end is None and len(lot) < LARGEST_LOT and (not lot or not self._waiting.empty()):
            items = await self._waiting.get()
            if isinstance(items, End):
                self._end = items
                break
            lot.extend(items)
        if not lot and self._end and self._end.error:
            raise self._end.error
        return lot

    async def _import(self, items: Sequence[ImportItem]) -> list[ImportResult]:
        read = [self._read_item(item) for item in items]
        good = [item for item in read if isinstance(item, Subscription)]
        outcomes = iter(await self._broker.import_many(self._tenant, good))
        settled = (next(outcomes) if isinstance(item, Subscription) else item for item in read)
        first, self._n_items = self._n_items, self._n_items + len(items)
        return [result_of(index, outcome) for index, outcome in enumerate(settled, first)]

    def _read_item(self, item: ImportItem) -> Subscription | ServerError:
        try:
            return subscription_from(item.subscription, self._tenant, item.subscription_id)
        except ServerError as error:
            return error

    async def _answer(self, results: Sequence[ImportResult]) -> None:
        for start in range(0, len(results), RESULTS_A_MESSAGE):
            part = results[start : start + RESULTS_A_MESSAGE]
            await self._context.write(ImportSubscriptionsResponse(results=part))


def result_of(index: int, outcome: Subscription | Exception) -> ImportResult:
    """What is told of one item."""
    if isinstance(outcome, Exception):
        return ImportResult(index=index, problem=problem_of(outcome, "import"))
    return ImportResult(index=index, name=outcome.name)
