"""Store: where everything durable goes, and comes back from.

    writer          the one thread that writes, in group commits
    read            any number of readers beside it
    subscriptions   who wants what
    dead_letters    what could not be delivered
    staging         batches on their way in
    published       ids of documents, to recognise one that comes again
    generations     of replicas: who owns a token, so that an old owner's write is refused

`server.log.match_log` and `server.log.cursors` stand on it.
"""

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

from server.errors import StoreError, StoreUnavailable
from server.store.committer import Committer
from server.store.databases import Connection, Database, database_at
from server.store.dead_letters import DeadLetterTable
from server.store.generations import GenerationTable
from server.store.published import PublishedIds
from server.store.readers import Readers
from server.store.schema import migrate
from server.store.staging import StagingTable
from server.store.subscriptions import SubscriptionTable
from server.store.writer import Commit, Writer

__all__ = ["Store", "open_store"]

Result = TypeVar("Result")


class Store:
    """An open store. It belongs to the event loop it was opened on."""

    def __init__(self, database: Database, writer: Writer, readers: Readers, clock: Callable[[], float]) -> None:
        self.database = database
        self.place = database.place
        self.writer = writer
        self._readers = readers
        self.subscriptions = SubscriptionTable(self, clock)
        self.dead_letters = DeadLetterTable(self)
        self.staging = StagingTable(self, clock)
        self.published = PublishedIds(self)
        self.generations = GenerationTable(self)

    async def read(self, operation: Callable[[Connection], Result]) -> Result:
        """What `operation` returns; it sees one state of the store, and is not blocked by writes."""
        return await self._readers.read(operation)

    async def write(self, operation: Callable[[Connection], Result]) -> Result:
        """What `operation` returns, once it is durable."""
        result: Result = await self.writer.run(operation)
        return result

    async def settled(self) -> None:
        """Wait until the store has taken a write again: then all before it have landed, or never will."""
        while True:
            try:
                await self.write(lambda connection: None)
            except StoreUnavailable as error:
                await asyncio.sleep(error.retry_after)
            else:
                return

    async def close(self) -> None:
        """Finish what is being written, and let go of the store."""
        await self.writer.close()
        await self._readers.close()


async def open_store(
    url: str,
    *,
    shared: bool = False,
    deadline: float = 30.0,
    max_waiting: int = 10_000,
    n_readers: int = 4,
    on_commit: Callable[[Commit], None] | None = None,
    clock: Callable[[], float] = time.time,
) -> Store:
    """Open the store at sqlite:///path, a plain path or postgresql://..., and bring it to this version.

    A caller gets `StoreUnavailable` when the store has not answered for `deadline` seconds, or when `max_waiting`
    operations wait already. A `shared` one is written to by other replicas too.
    """
    database = database_at(url, shared)
    committer = await asyncio.to_thread(_opened, database)
    writer = Writer(committer, deadline=deadline, max_waiting=max_waiting, on_commit=on_commit)
    return Store(database, writer, Readers(database, n_readers, deadline), clock)


def _opened(database: Database) -> Committer:
    try:
        connection = database.connect()
        try:
            migrate(database, connection)
        finally:
            connection.close()
        return Committer(database)
    except database.errors as error:
        raise StoreError(database.place, f"{error}".strip()) from error
