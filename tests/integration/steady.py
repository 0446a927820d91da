"""Somebody who publishes at a steady pace, whatever happens, and notes how long each document took.

every `pace` seconds ── a document, at the next of the addresses ──▶ accepted: when, and after how many seconds
"""

import asyncio
import itertools
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from pathsieve import AsyncClient, Document

__all__ = ["Steady"]


class Steady:
    """Publishes as long as the `async with` block lasts; at its end everything has been accepted."""

    def __init__(self, addresses: Sequence[str], xml: str, pace: float = 0.02) -> None:
        self.accepted: list[tuple[float, float]] = []
        self.ids: list[str] = []
        self._clients = [AsyncClient([address, *addresses], patience=120.0) for address in addresses]
        self._xml = xml
        self._pace = pace
        self._stopping = asyncio.Event()
        self._running: asyncio.Task[None] | None = None

    def since(self, moment: float) -> list[float]:
        """How long documents took, in seconds, that were sent since a moment; the longest last."""
        return sorted(seconds for sent, seconds in self.accepted if sent >= moment)

    async def more(self, n: int) -> None:
        """Wait until so many more have been accepted."""
        wanted = len(self.accepted) + n
        while len(self.accepted) < wanted:
            await asyncio.sleep(self._pace)

    async def _run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            for number in itertools.count():
                if self._stopping.is_set():
                    return
                tasks.create_task(self._publish(number))
                await asyncio.sleep(self._pace)

    async def _publish(self, number: int) -> None:
        sent, document_id = time.monotonic(), f"steady-{id(self)}-{number}"
        client = self._clients[number % len(self._clients)]
        await client.publish(Document(self._xml, id=document_id, source="steady"))
        self.ids.append(document_id)
        self.accepted.append((sent, time.monotonic() - sent))

    async def __aenter__(self) -> Self:
        self._running = asyncio.create_task(self._run())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._running is not None
        self._stopping.set()
        if error is not None:
            self._running.cancel()
        try:
            await self._running
        finally:
            for client in self._clients:
                await client.close()
