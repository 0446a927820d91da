"""Which documents were published lately: read at the start, to recognise one that is published again."""

from collections.abc import AsyncIterator
from functools import partial
from typing import NamedTuple

from server.store.databases import Connection
from server.store.tables import ReadsAndWrites

__all__ = ["Published", "PublishedIds"]

CHUNK = 20_000
LARGEST = (1 << 63) - 1


class Published(NamedTuple):
    """A document that matched something durable."""

    tenant: str
    source: str
    id: str
    publish_time: float


class PublishedIds:
    """The documents of all logs, newest first."""

    def __init__(self, store: ReadsAndWrites) -> None:
        self._store = store

    async def since(self, time: float) -> AsyncIterator[list[Published]]:
        """Those published at or after a time, in chunks. Ends at the first chunk that holds none.

        Documents lie in the order of their commits, which is nearly that of their publish times; so there is no
        index to keep up.
        """
        last = LARGEST
        while True:
            rows = await self._store.read(partial(_before, number=last))
            found = [
                Published(tenant, source.decode(), id_.decode(), at)
                for _, tenant, source, id_, at in rows
                if at >= time
            ]
            if not found:
                return
            yield found
            last = rows[-1][0]


def _before(connection: Connection, number: int) -> list[tuple[int, str, bytes, bytes, float]]:
    sql = """SELECT number, tenant, source, id, publish_time FROM documents
        WHERE number < ? ORDER BY number DESC LIMIT ?"""
    rows: list[tuple[int, str, bytes, bytes, float]] = connection.execute(sql, (number, CHUNK))
    return rows
