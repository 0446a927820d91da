"""CLOSED → EXPIRED: segments that are too old are dropped whole, with their documents.

    cursors are moved past it, durably ──▶ records and documents, some at a time ──▶ the segment itself

In this order a crash drops nothing that is still owed: it leaves a segment that nobody waits for, and the next turn
drops the rest of it. Rows go some at a time, because the writer does nothing else meanwhile: 8,192 documents of 4 KB
at once hold up all appends for a tenth of a second.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import astuple, dataclass
from functools import partial

import numpy as np

from server.log import rows as log_rows
from server.log.rows import Segment
from server.log.segment_closer import SegmentCloser
from server.log.segments import CHUNK_NUMBERS, SegmentChunk
from server.log.tail import LogTail
from server.store import Store
from server.store.databases import Connection
from server.store.jobs import Operation

__all__ = ["Expired", "Retention"]

RECORDS_AT_ONCE = 512


@dataclass(frozen=True, slots=True)
class Expired:
    """What retention has dropped. `never_done` of the matches had not been acknowledged."""

    segments: int = 0
    documents: int = 0
    matches: int = 0
    bytes: int = 0
    never_done: int = 0

    def __add__(self, other: "Expired") -> "Expired":
        return Expired(*(mine + its for mine, its in zip(astuple(self), astuple(other), strict=True)))


class Retention:
    """Drops old segments of one log. `on_expire` moves cursors: (numbers, last dropped sequences) → never done."""

    def __init__(self, store: Store, log: int, tail: LogTail, closer: SegmentCloser) -> None:
        self.on_expire: Callable[[np.ndarray, np.ndarray], Awaitable[int]] | None = None
        self._store = store
        self._log = log
        self._tail = tail
        self._closer = closer
        self._one_at_a_time = asyncio.Lock()

    async def expire(self, before: float) -> Expired:
        """Drop the segments whose documents were all published before a time.

        An open part that has begun before that time is sealed, so that it can go when its last document is old.
        """
        async with self._one_at_a_time:
            part = self._tail.parts[-1]
            if part.n_records and part.times[0] < before:
                self._closer.seal()
            await self._closer.until_closed()
            expired = Expired()
            while self._tail.segments and self._tail.segments[0].newest < before:
                expired += await self._drop(self._tail.segments[0])
                self._tail.expire_first()
            return expired

    async def _drop(self, segment: Segment) -> Expired:
        chunks = range(len(self._tail.heads) // CHUNK_NUMBERS + 1)
        read = partial(log_rows.read_segment, log=self._log, chunks=chunks, first_position=segment.first_position)
        never_done = await self._move_cursors(await self._store.read(read))
        for first in range(segment.first_position, segment.last_position + 1, RECORDS_AT_ONCE):
            last = min(first + RECORDS_AT_ONCE - 1, segment.last_position)
            await self._write(partial(log_rows.drop_records, log=self._log, first=first, last=last))
        await self._write(partial(log_rows.drop_segment, log=self._log, segment=segment, chunks=chunks))
        return Expired(1, segment.n_records, segment.n_matches, segment.n_bytes, never_done)

    async def _write(self, operation: Operation) -> None:
        """Unless another replica keeps the log meanwhile."""

        def fenced(connection: Connection) -> None:
            self._closer.fence(connection)
            operation(connection)

        await self._store.write(fenced)

    async def _move_cursors(self, chunks: Sequence[SegmentChunk]) -> int:
        if self.on_expire is None or not chunks:
            return 0
        numbers = np.concatenate([chunk.numbers for chunk in chunks])
        return await self.on_expire(numbers, np.concatenate([chunk.last_sequences for chunk in chunks]))
