"""The match log: one record a document, with everyone who wants it. No row a match.

    append ──▶ group commit ──▶ tail: heads, open part, recent records ──▶ on_append
                                  │ large enough
                                  ▼
                                segment_closer: index built in a thread ──▶ closed segment, heads checkpointed
    read, read_from, sequence_at ──▶ reader;  ranges, again and again the same ──▶ ranges
    expire ──▶ retention: whole segments are dropped, and cursors moved past them

The SEQUENCE of a subscription's match is how many records, up to this one, hold its number. It is never written: heads
at the end of the last closed segment are, and the records since then are counted again at the start. So sequences have
no gaps by construction, and a crash at any moment leaves them exact.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from server.documents import Document
from server.errors import StoreError
from server.log import rows as log_rows
from server.log.number_codes import pack_ascending, unpack_ascending
from server.log.ranges import RangeReader
from server.log.reader import LogReader
from server.log.recent_records import Record
from server.log.retention import Expired, Retention
from server.log.rows import PAGE, Appending, LogState, NewRecord
from server.log.segment_closer import SegmentCloser
from server.log.tail import LogTail, SegmentLimits
from server.store import Store
from server.store.databases import Connection, Row
from server.store.document_codes import document_to_row
from server.store.jobs import Operation

__all__ = ["Entry", "Expired", "MatchLog", "Record", "SegmentLimits"]

Entry = tuple[str, Document, np.ndarray]


class MatchLog:
    """The log of one server. All methods are called on the event loop; `open` makes one."""

    def __init__(self, store: Store, log: int, tail: LogTail, cache_bytes: int) -> None:
        self.on_append: Callable[[Sequence[Record]], None] | None = None
        self.tail = tail
        self.reader = LogReader(store, log, tail, cache_bytes)
        self.ranges = RangeReader(store, log, tail, self.reader)
        self.closer = SegmentCloser(store, log, tail)
        self.retention = Retention(store, log, tail, self.closer)
        self.read = self.reader.read
        self.read_from = self.reader.read_from
        self.sequence_at = self.reader.sequence_at
        self.expire = self.retention.expire
        self.until_closed = self.closer.until_closed
        self._store = store
        self._log = log

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
        if tail.position != state.position:
            raise StoreError(store.place, f"the log ends at {tail.position}, not at {state.position}; restore a backup")
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
        appending = self._appending(entries, [None] * len(entries), extra)
        records: list[Record] = await self._run(appending, partial(self._landed, entries))
        return records

    async def append_once(
        self, entries: Sequence[Entry], keys: Sequence[bytes | None], extra: Sequence[Operation] = ()
    ) -> list[int]:
        """Append to a log that others append to as well; the positions, 0 where the key of a document was known.

        The records themselves come back with those of the others, through `server.log.follower`.
        """
        positions: list[int] = await self._run(self._appending(entries, keys, extra), None)
        return positions

    def _appending(
        self, entries: Sequence[Entry], keys: Sequence[bytes | None], extra: Sequence[Operation]
    ) -> Appending:
        records = [
            NewRecord((tenant, *document_to_row(document)), pack_ascending(numbers), document.publish_time, key)
            for (tenant, document, numbers), key in zip(entries, keys, strict=True)
        ]
        return Appending(self._log, records, extra)

    async def _run(self, appending: Appending, landed: Callable[[Any], Any] | None) -> Any:
        return await self._store.writer.run_together(log_rows.append, appending, landed)

    def head(self, number: int) -> int:
        """The newest sequence of a subscription."""
        return int(self.heads[number]) if number < len(self.heads) else 0

    def _landed(self, entries: Sequence[Entry], positions: Sequence[int]) -> list[Record]:
        assert not entries or positions[0] == self.tail.position + 1, "another process has appended to this log"
        records = [self.tail.add(document, numbers) for _, document, numbers in entries]
        self.announce(records)
        return records

    def announce(self, records: Sequence[Record]) -> None:
        """These are in the tail now."""
        self._seal_if_full()
        if self.on_append is not None and records:
            self.on_append(records)

    async def close(self) -> None:
        """Stop closing segments; what is not closed is read again at the next start."""
        await self.closer.stop()

    def _seal_if_full(self) -> None:
        if self.tail.is_full:
            self.closer.seal()


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
