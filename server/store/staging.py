"""Batches on their way in: parts are staged by attempts, then the winners are committed, once.

    (tenant, query, batch) ─┬─ part 0 ── attempt 0 ── documents
                            │        └── attempt 1 ── documents
                            └─ part 1 ── attempt 0 ── documents

    nothing ── stage ──▶ STAGED ── commit ──▶ COMMITTED     the result is kept; the same commit again returns it
                           └── abort ──▶ nothing

`committing` is an operation for the transaction that appends the matches, so that a batch is published and marked as
committed at one stroke.
"""

import json
import time
from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import NamedTuple

from server.documents import Document
from server.errors import InvalidRequest
from server.store.databases import Connection
from server.store.document_codes import DOCUMENT_COLUMNS, document_from_row, document_to_row
from server.store.jobs import Operation
from server.store.tables import ReadsAndWrites

__all__ = ["AlreadyCommitted", "Batch", "Part", "StagingTable"]

COLUMNS = ("tenant", "query", "batch", "part", "attempt", "place", "time", *DOCUMENT_COLUMNS)
OF_BATCH = "tenant = ? AND query = ? AND batch = ?"


class Batch(NamedTuple):
    """What is committed as one."""

    tenant: str
    query: str
    batch: int


class Part(NamedTuple):
    """What one attempt at one partition has to publish."""

    partition: int
    attempt: int


class AlreadyCommitted(Exception):  # noqa: N818  a fact, not a fault
    """Somebody else was faster; `result` is what they got."""

    def __init__(self, result: dict[str, int]) -> None:
        super().__init__("the batch has been committed before")
        self.result = result


class StagingTable:
    """Staged parts, and the results of committed batches."""

    def __init__(self, store: ReadsAndWrites, clock: Callable[[], float] = time.time) -> None:
        self._store = store
        self._clock = clock

    async def stage(self, batch: Batch, part: Part, documents: Sequence[Document], first_place: int = 0) -> None:
        """Keep documents of a part; `first_place` is 0 for the first of them, which drops an earlier try at it.

        A batch that is committed already takes no more: nothing is kept.
        """
        now = self._clock()
        await self._store.write(lambda connection: _stage(connection, batch, part, documents, first_place, now))

    async def staged(self, batch: Batch, parts: Sequence[Part], sizes: Sequence[int | None] = ()) -> list[Document]:
        """The documents of some parts, in order; `InvalidRequest` if one has not as many as `sizes` says."""
        return await self._store.read(lambda connection: _staged(connection, batch, parts, sizes))

    async def result(self, batch: Batch) -> dict[str, int] | None:
        """The result of a committed batch."""
        return await self._store.read(lambda connection: _result(connection, batch))

    def committing(self, batch: Batch, result: dict[str, int]) -> Operation:
        """The operation that marks a batch as committed and drops its parts; it raises `AlreadyCommitted`."""
        now = self._clock()
        return lambda connection: _commit(connection, batch, result, now)

    async def abort(self, batch: Batch) -> None:
        """Forget what was staged of a batch."""
        await self._store.write(lambda connection: _drop(connection, batch))

    async def forget(self, before: float) -> int:
        """Drop parts and results from before a time; how many rows there were."""
        return await self._store.write(lambda connection: _forget(connection, before))


def _stage(
    connection: Connection, batch: Batch, part: Part, documents: Sequence[Document], first_place: int, now: float
) -> None:
    if _result(connection, batch) is not None:
        return
    sql = f"DELETE FROM staged WHERE {OF_BATCH} AND part = ? AND attempt = ? AND place >= ?"
    connection.execute(sql, (*batch, *part, first_place))
    rows = [
        (*batch, *part, place, now, *document_to_row(document)) for place, document in enumerate(documents, first_place)
    ]
    connection.insert("staged", COLUMNS, rows)


def _staged(connection: Connection, batch: Batch, parts: Sequence[Part], sizes: Sequence[int | None]) -> list[Document]:
    sql = f"""SELECT {", ".join(DOCUMENT_COLUMNS)} FROM staged
        WHERE {OF_BATCH} AND part = ? AND attempt = ? ORDER BY place"""
    documents: list[Document] = []
    for part, size in zip_longest(parts, sizes):
        rows = connection.execute(sql, (*batch, *part))
        if size not in (None, len(rows)):
            found = f"expected {size:,} documents staged under {part}, found {len(rows):,}"
            raise InvalidRequest("parts", f"{found}; they were dropped by an abort or by age: stage them again")
        documents += map(document_from_row, rows)
    return documents


def _result(connection: Connection, batch: Batch) -> dict[str, int] | None:
    rows = connection.execute(f"SELECT result FROM commits WHERE {OF_BATCH}", batch)
    return json.loads(rows[0][0]) if rows else None


def _commit(connection: Connection, batch: Batch, result: dict[str, int], now: float) -> None:
    before = _result(connection, batch)
    if before is not None:
        raise AlreadyCommitted(before)
    connection.insert("commits", ("tenant", "query", "batch", "result", "time"), [(*batch, json.dumps(result), now)])
    _drop(connection, batch)


def _drop(connection: Connection, batch: Batch) -> None:
    connection.execute(f"DELETE FROM staged WHERE {OF_BATCH}", batch)


def _forget(connection: Connection, before: float) -> int:
    tables = ("staged", "commits")
    return sum(len(connection.execute(f"DELETE FROM {t} WHERE time < ? RETURNING batch", (before,))) for t in tables)
