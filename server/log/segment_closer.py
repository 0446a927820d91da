"""SEALED → CLOSED: a part gets its index, built in a thread, and is written together with the heads at its end.

    part ──▶ index ──▶ chunks ─────┐
               └──▶ heads, pages ──┴──▶ one transaction ──▶ the part leaves memory

Appends go on meanwhile. If the store cannot take it, the part stays in memory and is tried again. A crash in between
costs nothing: what is not closed is read again at the start.

Of several replicas one is the keeper of the log, and closes for all; the others only seal. A keeper that has been
replaced and does not know it yet is refused by the store.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from server.errors import Fenced, StoreUnavailable
from server.log import rows as log_rows
from server.log.number_codes import pack
from server.log.parts import Part
from server.log.rows import PAGE, Closing, Segment
from server.log.segments import SegmentIndex
from server.log.tail import LogTail
from server.store import Store
from server.store.databases import Connection
from server.store.jobs import Operation

__all__ = ["SegmentCloser"]

logger = logging.getLogger("pathsieve.match_log")

AGAIN_AFTER = 1.0


class SegmentCloser:
    """Closes the parts of one log, one after the other. `heads` are those at the end of the last closed segment."""

    def __init__(self, store: Store, log: int, tail: LogTail) -> None:
        self.heads = tail.heads.copy()
        self.on_close: Callable[[Sequence[int]], None] | None = None
        self.is_keeper = True
        self.fence: Operation = lambda connection: None
        self._store = store
        self._log = log
        self._tail = tail
        self._task: asyncio.Task[None] | None = None

    def seal(self) -> None:
        """OPEN → SEALED, and soon CLOSED."""
        self._tail.seal()
        self.wake()

    def wake(self) -> None:
        """Close what is sealed, if that is for us to do."""
        if not self.is_keeper:
            return
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._close_sealed())

    async def until_closed(self) -> None:
        """Wait until all that is sealed is closed."""
        if self._task is not None:
            await asyncio.shield(self._task)

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _close_sealed(self) -> None:
        while self.is_keeper and len(self._tail.parts) > 1:
            closing = await asyncio.to_thread(self._closing, self._tail.parts[0])
            try:
                await self._store.write(partial(self._write, closing=closing))
            except Fenced:
                logger.info("another replica keeps the log now")
                self.is_keeper = False
                return
            except StoreUnavailable as error:
                logger.warning("a segment could not be closed yet: %s", error)
                await asyncio.sleep(AGAIN_AFTER)
                continue
            self._tail.close_first(closing.segment)
            if self.on_close is not None:
                self.on_close([page for page, _ in closing.head_pages])

    def _write(self, connection: Connection, closing: Closing) -> None:
        self.fence(connection)
        log_rows.close_segment(connection, self._log, closing)

    def _closing(self, part: Part) -> Closing:
        """In a thread: all that is to be written of a part. Can be repeated."""
        index = SegmentIndex.build(part)
        self._make_room(int(index.numbers.max(initial=0)))
        self.heads[index.numbers] = index.last_sequences
        pages = np.unique(index.numbers // PAGE).tolist()
        return Closing(
            _segment_of(part),
            [(chunk, entries.to_bytes()) for chunk, entries in index.chunks()],
            [(page, pack(self.heads[page * PAGE : (page + 1) * PAGE])) for page in pages],
        )

    def _make_room(self, number: int) -> None:
        if number >= len(self.heads):
            grown = np.zeros((number // PAGE + 1) * PAGE, np.int64)
            grown[: len(self.heads)] = self.heads
            self.heads = grown


def _segment_of(part: Part) -> Segment:
    oldest, newest = float(part.times.min()), float(part.times.max())
    return Segment(part.first_position, part.last_position, oldest, newest, part.n_matches, part.n_bytes)
