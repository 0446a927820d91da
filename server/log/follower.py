"""A log that several replicas append to, followed by each: the same records in the same order everywhere.

    hint, or a look every `interval` ──▶ what is new in the store ──▶ tail ──▶ on_append
                                          └─ segments closed by the keeper ──▶ parts leave memory

So every replica counts the same sequences, and a subscription that moves to another replica goes on without a gap.
A document is read only where somebody listens for it; whoever attaches later reads it from the log.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial

import numpy as np

from server.documents import Document
from server.log import rows as log_rows
from server.log.match_log import MatchLog
from server.log.number_codes import unpack_ascending
from server.log.recent_records import Record
from server.log.rows import PAGE, News
from server.lookout import Lookout
from server.store import Store
from server.store.databases import Row

__all__ = ["LogFollower"]

logger = logging.getLogger("pathsieve.match_log")

RECORDS_AT_ONCE = 1024


async def _nobody(expired: int) -> None:
    """Nobody has cursors to move."""


class LogFollower:
    """Follows one log. `hears` tells whether somebody here listens for any of some numbers."""

    def __init__(self, store: Store, log: MatchLog, hears: Callable[[np.ndarray], bool], interval: float = 1.0) -> None:
        self.newest = log.position
        self.expired = 0
        self.on_expire: Callable[[int], Awaitable[object]] = _nobody
        self._store = store
        self._log = log
        self._hears = hears
        self._one_at_a_time = asyncio.Lock()
        lookout = Lookout(self.catch_up, interval, "the log", logger)
        self.wake, self.run = lookout.wake, lookout.run

    @property
    def lag(self) -> int:
        """How many records there are that have not been taken yet."""
        return self.newest - self._log.position

    async def catch_up(self) -> None:
        """Take all that there is."""
        async with self._one_at_a_time:
            while await self._take_some():
                pass

    async def _take_some(self) -> bool:
        """Take what is new, up to a bound; True if there is more."""
        tail = self._log.tail
        news = await self._store.read(
            partial(log_rows.follow, log=0, position=tail.position, closed=tail.closed, limit=RECORDS_AT_ONCE)
        )
        self.newest = news.position
        rows = [(position, unpack_ascending(numbers), time, size) for position, numbers, time, size in news.rows]
        documents = await self._documents([row[0] for row in rows if self._hears(row[1])])
        self._take(rows, documents)
        if news.closed > tail.closed and tail.position >= news.closed:
            self._close(news)
        await self._expire(news.expired)
        return tail.position < news.position

    async def _documents(self, positions: Sequence[int]) -> Mapping[int, Document]:
        if not positions:
            return {}
        return await self._store.read(partial(log_rows.read_documents, log=0, positions=positions))

    def _take(self, rows: Sequence[Row], documents: Mapping[int, Document]) -> None:
        """Put records into the tail, up to one that somebody listens for since its document was not asked for."""
        records: list[Record] = []
        for position, numbers, time, size in rows:
            if position in documents:
                records.append(self._log.tail.add(documents[position], numbers))
            elif self._hears(numbers):
                break
            else:
                records.append(self._log.tail.replay(numbers, time, size))
        self._log.announce(records)

    async def _expire(self, expired: int) -> None:
        """What the keeper has dropped is gone for us too."""
        if expired == self.expired:
            return
        tail = self._log.tail
        while not self._log.closer.is_keeper and tail.segments and tail.segments[0].last_position <= expired:
            tail.expire_first()
        self.expired = expired
        await self.on_expire(expired)

    def _close(self, news: News) -> None:
        if self._log.closer.is_keeper:
            return
        heads = np.zeros((max((page for page, _ in news.heads), default=0) + 1) * PAGE, np.int64)
        for page, values in news.heads:
            heads[page * PAGE : (page + 1) * PAGE] = values
        self._log.closer.heads = heads
        self._log.tail.closed_elsewhere(news.closed, news.segments)
