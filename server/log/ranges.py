"""Reading a range of the log without taking anything: of one subscription by sequences, of a tenant by positions.

    position       41    42    43    44    45          the tenant's documents are 41, 43 and 45
    tenant         desk  risk  desk  risk  desk
    sequence of a  7           8                       read(a, 6, 8)                 ─▶ 41, 43
    sequence of b              1           2           read_tenant(desk, 41, 45)     ─▶ 43 (a: 8, b: 1), 45 (b: 2)

What lies between two positions never changes, whoever subscribes or leaves meanwhile; so a range that is read again is
the same, until retention drops some of it, and then the page says so. A position is one number for any number of
subscriptions, and it is exact: those of all tenants are in one order.
"""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from server.log import rows as log_rows
from server.log.parts import Part
from server.log.reader import LogReader
from server.log.recent_records import Record
from server.log.tail import LogTail
from server.store import Store

__all__ = ["LogPage", "RangeReader"]

POSITIONS_AT_ONCE = 1024
MOST_POSITIONS = 64 * 1024
"""A page ends there, even if others have written all of it: so a call takes a bounded time."""


@dataclass(frozen=True, slots=True)
class LogPage:
    """Records in order, up to where they go, and the newest that retention has dropped; 0 if none is missing."""

    records: Sequence[Record]
    through: int
    dropped: int = 0


@dataclass(frozen=True, slots=True)
class Stretch:
    """Positions in a row of one part, those of one tenant among them, and the newest that is missing."""

    part: Part
    positions: list[int]
    last: int
    dropped: int


NOTHING = Part(1)


class RangeReader:
    """Reads one log. Called on the event loop; positions and sequences asked for must be in the tail."""

    def __init__(self, store: Store, log: int, tail: LogTail, reader: LogReader) -> None:
        self._store = store
        self._log = log
        self._tail = tail
        self._reader = reader

    @property
    def dropped(self) -> int:
        """All up to this position has been dropped."""
        segments = self._tail.segments
        return segments[0].first_position - 1 if segments else self._tail.closed

    async def dropped_of(self, number: int) -> int:
        """All of a subscription up to this sequence has been dropped."""
        if not self.dropped:
            return 0
        found = await self._reader.places(number, 1, 1)
        return found[0][0] - 1 if found else self._tail.head(number)

    async def read(self, number: int, after: int, through: int, max_records: int, max_bytes: int) -> LogPage:
        """Of one subscription, after one sequence and through another."""
        if after >= through:
            return LogPage([], after)
        places = await self._reader.places(number, after + 1, min(max_records, through - after))
        places = [(sequence, position) for sequence, position in places if sequence <= through]
        if not places:
            return LogPage([], through, dropped=through)
        documents, n_seen = await self._reader.documents([position for _, position in places], max_bytes)
        end = places[n_seen - 1][0]
        self._reader.set_bookmark(number, *places[n_seen - 1])
        records = [
            Record(position, documents[position], np.array([number]), np.array([sequence]))
            for sequence, position in places[:n_seen]
            if position in documents
        ]
        found = {int(record.sequences[0]) for record in records}
        missing = (sequence for sequence in range(end, after, -1) if sequence not in found)
        return LogPage(records, end, next(missing, 0))

    async def read_tenant(self, tenant: str, after: int, through: int, max_records: int, max_bytes: int) -> LogPage:
        """Of all subscriptions of a tenant, after one position and through another."""
        records: list[Record] = []
        dropped, end = 0, after
        async for stretch in self._stretches(tenant, after, min(through, after + MOST_POSITIONS)):
            dropped = max(dropped, stretch.dropped)
            positions = stretch.positions[: max_records - len(records)]
            documents, n_seen = await self._reader.documents(positions, max_bytes)
            for position in positions[:n_seen]:
                if position in documents:
                    records.append(Record(position, documents[position], *stretch.part.of(position)))
                else:
                    dropped = max(dropped, position)  # since its tenant was looked up
            if n_seen < len(stretch.positions):
                end = positions[n_seen - 1] if n_seen else end
                break
            end = stretch.last
            max_bytes -= sum(len(document.xml) for document in documents.values())
            if end < through and (max_bytes <= 0 or len(records) >= max_records):
                break
        return LogPage(records, end, min(dropped, end))

    async def tenant_end(self, tenant: str, after: int, n_documents: int) -> int:
        """Where a tenant's next so many documents after a position end; `after` if there is none."""
        last, limit = self._tail.position, n_documents or 1 << 62
        return await self._store.read(
            partial(log_rows.tenant_end, log=self._log, tenant=tenant, after=after, last=last, n_documents=limit)
        )

    async def last_sequences(self, tenant: str, after: int, through: int) -> tuple[np.ndarray, np.ndarray]:
        """The subscriptions of a tenant that have a document in a range, and the last sequence of each there."""
        last = np.zeros(len(self._tail.heads), np.int64)
        async for stretch in self._stretches(tenant, after, through):
            numbers, sequences = stretch.part.of_all(stretch.positions)
            np.maximum.at(last, numbers, sequences)
        numbers = np.flatnonzero(last)
        return numbers, last[numbers]

    async def _stretches(self, tenant: str, after: int, through: int) -> AsyncIterator[Stretch]:
        while after < through:
            part = await self._reader.part_after(after)
            if part is None or part.first_position > through:
                yield Stretch(NOTHING, [], through, dropped=through)
                break
            first = max(after + 1, part.first_position)
            last = min(part.last_position, through, first + POSITIONS_AT_ONCE - 1)
            read = partial(log_rows.read_tenants, log=self._log, first=first, last=last)
            tenants: dict[int, str] = dict(await self._store.read(read))
            missing = (position for position in range(last, first - 1, -1) if position not in tenants)
            gap = first - 1 if first > after + 1 else 0
            ours = [position for position, owner in tenants.items() if owner == tenant]
            yield Stretch(part, ours, last, next(missing, gap))
            after = last
