"""The match log: one record a document, with everyone who wants it. No row a match.

    append ──▶ group commit ──▶ tail: heads, open part, recent records ──▶ on_append
                                  │ large enough
                                  ▼
                                sealed ──▶ index built in a thread ──▶ closed segment, heads checkpointed
    read, read_from, sequence_at ──▶ log_reader
    expire ──▶ whole segments are dropped, and cursors are moved past them

The SEQUENCE of a subscription's match is how many records, up to this one, hold its number. It is never written: heads
at the end of the last closed segment are, and the records since then are counted again at the start. So sequences have
no gaps by construction, and a crash at any moment leaves them exact.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from server import log_rows
from server.documents import Document
from server.errors import StoreUnavailable
from server.log_reader import LogReader
from server.log_rows import PAGE, Appending, Closing, LogState, Segment
from server.log_tail import LogTail, SegmentLimits
from server.number_codes import pack, pack_ascending, unpack_ascending
from server.parts import Part
from server.recent_records import Record
from server.segments import CHUNK_NUMBERS, SegmentIndex
from server.store import Store
from server.store.databases import Connection, Row
from server.store.document_codes import document_to_row
from server.store.jobs import Operation

__all__ = ["Expired", "MatchLog", "Record", "SegmentLimits"]

logger = logging.getLogger("pathsieve.match_log")

CLOSE_AGAIN_AFTER = 1.0

Entry = tuple[str, Document, np.ndarray]


@dataclass(frozen=True, slots=True)
class Expired:
    """What retention has dropped. `never_done` matches had not been acknowledged by anyone."""

    segments: int = 0
    documents: int = 0
    matches: int = 0
    bytes: int = 0
    never_done: int = 0


class MatchLog:
    """The log of one server. All methods are called on the event loop; `open` makes one."""

    def __init__(self, store: Store, log: int, tail: LogTail, cache_bytes: int) -> None:
        self.on_append: Callable[[Sequence[Record]], None] | None = None
        self.on_close: Callable[[Sequence[int]], None] | None = None
        self.on_expire: Callable[[np.ndarray, np.ndarray], Awaitable[int]] | None = None
        self.tail = tail
        self.reader = LogReader(store, log, tail, cache_bytes)
        self.read = self.reader.read
        self.read_from = self.reader.read_from
        self.sequence_at = self.reader.sequence_at
        self.closed_heads = tail.heads.copy()
        self._store = store
        self._log = log
        self._closer: asyncio.Task[None] | None = None

    @classmethod
    async def open(
        cls,
        store: Store,
        *,
        log: int = 0,
        limits: SegmentLimits = SegmentLimits(),  # noqa: B008  frozen
        recent_bytes: int = 64 << 20,
        cache_bytes: int = 64 << 20,
    ) -> "MatchLog":
        """The log as it was left: heads from their pages, then the records since then."""
        await store.write(partial(log_rows.create, log=log))
        state, pages, rows = await store.read(partial(_read_all, log=log))
        tail = LogTail(state, limits, recent_bytes)
        for page, heads in pages:
            tail.ensure(page * PAGE + PAGE - 1)
            tail.heads[page * PAGE : (page + 1) * PAGE] = heads
        opened = cls(store, log, tail, cache_bytes)
        for numbers, publish_time, n_bytes in rows:
            tail.replay(numbers, publish_time, n_bytes)
        opened._seal_if_full()
        return opened

    @property
    def heads(self) -> np.ndarray:
        """The newest sequence of each number; 0 if it has none."""
        return self.tail.heads

    @property
    def position(self) -> int:
        """The position of the newest record."""
        return self.tail.position

    def ensure(self, number: int) -> None:
        """Make room for a number in `heads`."""
        self.tail.ensure(number)

    async def append(self, entries: Sequence[Entry], extra: Sequence[Operation] = ()) -> list[Record]:
        """Append documents with the numbers, ascending, that want them; durable when this returns.

        Calls of many tasks share a commit. `on_append` has seen the records, in the order of their positions, before
        any caller goes on. The operations in `extra` run in the same transaction: all of it lands, or none.
        """
        rows = [
            ((tenant, *document_to_row(document)), pack_ascending(numbers)) for tenant, document, numbers in entries
        ]
        landed = partial(self._landed, entries)
        records: list[Record] = await self._store.writer.run_together(
            log_rows.append, Appending(self._log, rows, extra), landed
        )
        return records

    def head(self, number: int) -> int:
        """The newest sequence of a subscription."""
        return int(self.heads[number]) if number < len(self.heads) else 0

    def _landed(self, entries: Sequence[Entry], first_position: int) -> list[Record]:
        assert first_position == self.tail.position + 1 or not entries, "another process has appended to this log"
        records = [self.tail.add(document, numbers) for _, document, numbers in entries]
        self._seal_if_full()
        if self.on_append is not None and records:
            self.on_append(records)
        return records

    async def expire(self, before: float) -> Expired:
        """Drop the segments whose documents were all published before a time.

        Cursors are moved past them first, durably; so a crash in between drops nothing that is still owed.
        """
        part = self.tail.parts[-1]
        if part.n_records and part.times[0] < before:
            self._seal()
        await self.until_closed()
        expired = Expired()
        while self.tail.segments and self.tail.segments[0].newest < before:
            expired = _sum(expired, await self._expire_first())
        return expired

    async def close(self) -> None:
        """Stop closing segments; what is not closed is read again at the next start."""
        if self._closer is not None:
            self._closer.cancel()
            await asyncio.gather(self._closer, return_exceptions=True)

    async def _expire_first(self) -> Expired:
        segment = self.tail.segments[0]
        n_chunks = len(self.heads) // CHUNK_NUMBERS + 1
        chunks = await self._store.read(
            partial(log_rows.read_segment, log=self._log, chunks=range(n_chunks), first_position=segment.first_position)
        )
        never_done = 0
        if self.on_expire is not None and chunks:
            numbers = np.concatenate([chunk.numbers for chunk in chunks])
            last = np.concatenate([chunk.first_sequences + chunk.counts - 1 for chunk in chunks])
            never_done = await self.on_expire(numbers, last)
        await self._store.write(partial(log_rows.drop_segment, log=self._log, segment=segment, n_chunks=n_chunks))
        self.tail.expire_first()
        return Expired(1, segment.n_records, segment.n_matches, segment.n_bytes, never_done)

    def _seal_if_full(self) -> None:
        if self.tail.is_full:
            self._seal()

    def _seal(self) -> None:
        self.tail.seal()
        if self._closer is None or self._closer.done():
            self._closer = asyncio.create_task(self._close_sealed())

    async def until_closed(self) -> None:
        """Wait until all that is sealed is closed."""
        if self._closer is not None:
            await asyncio.shield(self._closer)

    async def _close_sealed(self) -> None:
        while len(self.tail.parts) > 1:
            closing = await asyncio.to_thread(self._closing, self.tail.parts[0])
            try:
                await self._store.write(partial(log_rows.close_segment, log=self._log, closing=closing))
            except StoreUnavailable as error:
                logger.warning("a segment could not be closed yet: %s", error)
                await asyncio.sleep(CLOSE_AGAIN_AFTER)
            else:
                self.tail.close_first(closing.segment)
                if self.on_close is not None:
                    self.on_close([page for page, _ in closing.head_pages])

    def _closing(self, part: Part) -> Closing:
        """In a thread: the index of a part, and the heads at its end. Can be repeated."""
        index = SegmentIndex.build(part)
        if len(index.numbers) and index.numbers[-1] >= len(self.closed_heads):
            grown = np.zeros((int(index.numbers[-1]) // PAGE + 1) * PAGE, np.int64)
            grown[: len(self.closed_heads)] = self.closed_heads
            self.closed_heads = grown
        self.closed_heads[index.numbers] = index.last_sequences
        pages = np.unique(index.numbers // PAGE).tolist()
        segment = Segment(
            part.first_position,
            part.last_position,
            float(part.times.min()),
            float(part.times.max()),
            part.n_matches,
            part.n_bytes,
        )
        return Closing(
            segment,
            [(chunk, entries.to_bytes()) for chunk, entries in index.chunks()],
            [(page, pack(self.closed_heads[page * PAGE : (page + 1) * PAGE])) for page in pages],
        )


def _read_all(
    connection: Connection, log: int
) -> tuple[LogState, list[tuple[int, np.ndarray]], list[tuple[np.ndarray, float, int]]]:
    state = log_rows.read_state(connection, log)
    rows: list[Row] = log_rows.read_open_records(connection, log, state.closed)
    return (
        state,
        log_rows.read_heads(connection, log),
        [(unpack_ascending(numbers), publish_time, n_bytes) for _, numbers, publish_time, n_bytes in rows],
    )


def _sum(one: Expired, other: Expired) -> Expired:
    return Expired(
        one.segments + other.segments,
        one.documents + other.documents,
        one.matches + other.matches,
        one.bytes + other.bytes,
        one.never_done + other.never_done,
    )
