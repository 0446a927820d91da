"""Reading the match log back: one subscription's matches by sequence, or many subscriptions' records by position.

    read(number, sequence)      segments ─ its chunk of each index ─▶ positions ─┐
                                parts in memory ─────────────────▶ positions ─┴▶ documents: recent ones, else the store
    read_from(numbers, position)    a segment as a part, or a part in memory ──▶ records, narrowed to the numbers

Where to start: `start_of` gives a position up to which everything before a sequence is known to lie, and the end of
the last read of the same subscription is remembered. Both are lower bounds, so they cost or save time, never a match.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Generic, Protocol, TypeVar

import numpy as np

from server.documents import Document
from server.log import rows as log_rows
from server.log.parts import Part
from server.log.recent_records import Record
from server.log.rows import Segment
from server.log.segments import CHUNK_NUMBERS, SegmentChunk, part_of_chunks
from server.log.tail import LogTail
from server.store import Store
from server.store.databases import Connection

__all__ = ["LogReader"]

SEGMENTS_AT_ONCE = 32
DOCUMENTS_AT_ONCE = 64
MAX_BOOKMARKS = 65_536
OVERHEAD = 200


class Measured(Protocol):
    @property
    def memory(self) -> int: ...


Value = TypeVar("Value", bound=Measured)


class Cache(Generic[Value]):
    """The values used last, as many as fit into some bytes."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.n_bytes = 0
        self._values: OrderedDict[Hashable, Value] = OrderedDict()

    def get(self, key: Hashable) -> Value | None:
        if key in self._values:
            self._values.move_to_end(key)
        return self._values.get(key)

    def put(self, key: Hashable, value: Value) -> None:
        if key not in self._values:
            self._values[key] = value
            self.n_bytes += value.memory + OVERHEAD
        while self.n_bytes > self.max_bytes and len(self._values) > 1:
            self.n_bytes -= self._values.popitem(last=False)[1].memory + OVERHEAD


class LogReader:
    """Reads one log. Called on the event loop; what has to be fetched is fetched in the store's threads."""

    def __init__(self, store: Store, log: int, tail: LogTail, cache_bytes: int) -> None:
        self.start_of: Callable[[int, int], int] = lambda number, sequence: 0
        self._store = store
        self._log = log
        self._tail = tail
        self._chunks: Cache[SegmentChunk] = Cache(cache_bytes // 4)
        self._parts: Cache[Part] = Cache(cache_bytes - cache_bytes // 4)
        self._bookmarks: OrderedDict[int, tuple[int, int]] = OrderedDict()

    async def read(
        self, number: int, first_sequence: int, max_messages: int, max_bytes: int
    ) -> list[tuple[int, Document]]:
        """Sequences from `first_sequence` on with their documents: at least one if there is one."""
        places = await self.places(number, first_sequence, max_messages)
        found, n_seen = await self.documents([position for _, position in places], max_bytes)
        if n_seen:
            self.set_bookmark(number, *places[n_seen - 1])
        return [(sequence, found[position]) for sequence, position in places if position in found]

    async def places(self, number: int, first_sequence: int, limit: int) -> list[tuple[int, int]]:
        """(sequence, position) of a number's matches from a sequence on."""
        head = self._tail.head(number)
        if first_sequence > head:
            return []
        after = self._start(number, first_sequence)
        positions, sequences = self._tail.find(number, after)
        closed, oldest = self._tail.closed, int(sequences[0]) if len(sequences) else head + 1
        found: list[tuple[int, int]] = []
        if after < closed and first_sequence < oldest:
            found = await self._in_segments(number, first_sequence, oldest, after, limit)
        kept = sequences >= first_sequence
        found += zip(sequences[kept].tolist(), positions[kept].tolist(), strict=True)
        return found[:limit]

    async def _in_segments(
        self, number: int, first_sequence: int, end_sequence: int, after: int, limit: int
    ) -> list[tuple[int, int]]:
        found: list[tuple[int, int]] = []
        segments = list(self._tail.segments_after(after))
        for start in range(0, len(segments), SEGMENTS_AT_ONCE):
            some = segments[start : start + SEGMENTS_AT_ONCE]
            chunks = await self._chunks_of(number // CHUNK_NUMBERS, some)
            for segment in some:
                rows, sequence = chunks[segment.first_position].find(number)
                skipped = max(first_sequence - sequence, 0)
                found += enumerate((segment.first_position + rows[skipped:]).tolist(), sequence + skipped)
                if len(found) >= limit or (found and found[-1][0] + 1 >= end_sequence):
                    return found[:limit]
        return found

    async def _chunks_of(self, chunk: int, segments: Sequence[Segment]) -> dict[int, SegmentChunk]:
        """One chunk of some segments in a row, by their first positions."""
        found = {first: self._chunks.get((chunk, first)) for first in (each.first_position for each in segments)}
        if missing := [first for first, value in found.items() if value is None]:
            read = partial(log_rows.read_chunks, log=self._log, chunk=chunk, first=missing[0], last=missing[-1])
            loaded = await self._store.read(read)
            for first in missing:
                found[first] = loaded.get(first, NOTHING)
                self._chunks.put((chunk, first), found[first] or NOTHING)
        return {first: value or NOTHING for first, value in found.items()}

    async def read_from(
        self, numbers: np.ndarray, position: int, max_records: int, max_bytes: int
    ) -> tuple[list[Record], int]:
        """Records after a position that concern any of `numbers`, narrowed to them, and the position read up to."""
        part = await self.part_after(position)
        if part is None:
            return [], self._tail.position
        wanted = np.zeros(max(len(self._tail.heads), int(numbers.max(initial=0)) + 1), np.bool_)
        wanted[numbers] = True
        end = part.last_position
        positions = part.positions_of(wanted, position, max_records)
        found, n_seen = await self.documents(positions, max_bytes)
        records = [Record(each, found[each], *part.narrowed(each, wanted)) for each in positions if each in found]
        return records, end if n_seen == len(positions) < max_records else positions[n_seen - 1]

    async def sequence_at(self, number: int, time: float) -> int:
        """The first sequence of a number that was published at or after a time; head + 1 if there is none."""
        segments, parts = list(self._tail.segments), list(self._tail.parts)
        next_sequence = self._tail.head(number) + 1
        for segment in segments:
            if segment.newest >= time and (found := await self._first_since(segment, number, time)):
                return found
        for part in parts:
            positions, sequences = part.find(number)
            late = np.flatnonzero(part.times[positions - part.first_position] >= time)
            if len(late):
                return int(sequences[late[0]])
        return next_sequence

    async def _first_since(self, segment: Segment, number: int, time: float) -> int:
        """The first sequence of a number in a segment at or after a time; 0 if there is none."""
        chunks = await self._chunks_of(number // CHUNK_NUMBERS, [segment])
        rows, sequence = chunks[segment.first_position].find(number)
        positions = (segment.first_position + rows).tolist()
        times = await self._store.read(partial(log_rows.read_times, log=self._log, positions=positions))
        late = (rank for rank, position in enumerate(positions) if times.get(position, -1.0) >= time)
        return sequence + rank if (rank := next(late, -1)) >= 0 else 0

    async def part_after(self, position: int) -> Part | None:
        """The part that holds the record after a position, or the next that there is."""
        segments = self._tail.segments_after(position)
        if not segments:
            return self._tail.part_after(position)
        segment = segments[0]
        part = self._parts.get(segment.first_position)
        if part is None:
            n_chunks = len(self._tail.heads) // CHUNK_NUMBERS + 1
            part = await self._store.read(partial(_read_part, log=self._log, segment=segment, chunks=range(n_chunks)))
            self._parts.put(segment.first_position, part)
        return part

    async def documents(self, positions: Sequence[int], max_bytes: int) -> tuple[dict[int, Document], int]:
        """The documents at the first of some positions, as many as `max_bytes` hold and at least one, and how many
        positions that are. Those that retention has dropped meanwhile are missing."""
        found: dict[int, Document] = {}
        n_seen = n_bytes = 0
        for start in range(0, len(positions), DOCUMENTS_AT_ONCE):
            documents = await self._some_documents(positions[start : start + DOCUMENTS_AT_ONCE])
            for position, document in documents.items():
                n_bytes += len(document.xml) if document else 0
                if found and n_bytes > max_bytes:
                    return found, n_seen
                n_seen += 1
                if document:
                    found[position] = document
        return found, n_seen

    async def _some_documents(self, positions: Sequence[int]) -> dict[int, Document | None]:
        """The document at each position, in order; None where it has been dropped."""
        records = {position: self._tail.recent.get(position) for position in positions}
        missing = [position for position, record in records.items() if record is None]
        read: dict[int, Document] = {}
        if missing:
            read = await self._store.read(partial(log_rows.read_documents, log=self._log, positions=missing))
        return {position: record.document if record else read.get(position) for position, record in records.items()}

    def _start(self, number: int, first_sequence: int) -> int:
        bookmarked, position = self._bookmarks.get(number, (0, 0))
        told = self.start_of(number, first_sequence)
        return max(told, position) if bookmarked < first_sequence else told

    def set_bookmark(self, number: int, sequence: int, position: int) -> None:
        """Where a sequence is, so that who reads on from there finds the place."""
        self._bookmarks[number] = (sequence, position)
        self._bookmarks.move_to_end(number)
        if len(self._bookmarks) > MAX_BOOKMARKS:
            self._bookmarks.popitem(last=False)


NOTHING = SegmentChunk(*(np.empty(0, np.int64) for _ in range(4)))


def _read_part(connection: Connection, log: int, segment: Segment, chunks: Sequence[int]) -> Part:
    found = log_rows.read_segment(connection, log, chunks, segment.first_position)
    return part_of_chunks(segment.first_position, segment.n_records, found)
