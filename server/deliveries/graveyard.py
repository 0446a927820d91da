"""Messages that were given up: written durably, and only then done.

    bury ─▶ queue ─▶ one task, while there is something ─▶ dead letters (durable) ─▶ acknowledged

If the store cannot take them now they stay in the queue, and it is asked again when it says.
"""

import asyncio
import logging
from collections.abc import Callable

import numpy as np

from server.deliveries.ports import Counters, Cursors, DeadLetter, DeadLetters
from server.deliveries.tasks import Tasks
from server.errors import StoreUnavailable

__all__ = ["Graveyard"]

logger = logging.getLogger("pathsieve.deliveries")


class Graveyard:
    """Writes dead letters, many at once if many wait."""

    def __init__(self, dead_letters: DeadLetters, cursors: Cursors, counters: Counters, tasks: Tasks) -> None:
        self._dead_letters = dead_letters
        self._cursors = cursors
        self._counters = counters
        self._tasks = tasks
        self._queue: list[tuple[list[DeadLetter], Callable[[], None]]] = []
        self._task: asyncio.Task[None] | None = None

    def bury(self, letters: list[DeadLetter], then: Callable[[], None]) -> None:
        """Give up; `then` is called when that is durable and the sequences are done."""
        self._queue.append((letters, then))
        if self._task is None:
            self._task = self._tasks.start(self._write_all())

    async def finish(self) -> None:
        """Wait until all that was given up is durable."""
        if self._task is not None:
            await asyncio.wait({self._task})

    async def _write_all(self) -> None:
        try:
            while self._queue:
                await self._write_some()
        finally:
            self._task = None

    async def _write_some(self) -> None:
        taken = list(self._queue)
        letters = [letter for group, _ in taken for letter in group]
        try:
            await self._dead_letters.add(letters)
        except StoreUnavailable as error:
            logger.warning("%d dead letters wait for the store: %s", len(letters), error)
            await asyncio.sleep(error.retry_after)
            return
        del self._queue[: len(taken)]
        self._counters.dead_lettered(len(letters))
        self._acknowledge(letters)
        for _, then in taken:
            then()

    def _acknowledge(self, letters: list[DeadLetter]) -> None:
        numbers = np.array([letter.number for letter in letters], np.int64)
        sequences = np.array([letter.sequence for letter in letters], np.int64)
        self._cursors.acknowledge(numbers, sequences)
