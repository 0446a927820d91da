"""SQLite: one file, written ahead (WAL), synced at each commit.

A statement hands the GIL to other threads and has to get it back afterwards. While the event loop is busy that takes
up to five milliseconds, each time. So rows go in by the hundred in one statement: with a busy thread beside it, groups
of 128 documents went in at 1,200/s row by row and at 14,700/s in one statement for each table.

Pages are 16 KB: documents of 4 KB leave half of an 8 KB page empty, and hang over the edge of one of 4 KB (68,000
documents/s, against 85,000).
"""

import fcntl
import os
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from server.errors import StoreError
from server.store.databases import Connection, Database, Row, Trouble, inserting

__all__ = ["SqliteConnection", "SqliteDatabase"]

MAX_VALUES = 4096
STEP = 64
BUSY_SECONDS = 5.0
CHECKPOINT_PAGES = 1000
SETTINGS = (
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",
    f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}",
    "PRAGMA journal_size_limit = 67108864",
    "PRAGMA cache_size = -65536",
    "PRAGMA temp_store = MEMORY",
)
NOT_NOW = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_NOMEM}
GONE = {
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_NOTADB,
    sqlite3.SQLITE_PROTOCOL,
}


class SqliteConnection(Connection):
    """A connection in autocommit: transactions are ours to open."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(
            path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False, cached_statements=256
        )
        try:
            self._connection.execute("PRAGMA page_size = 16384")
            self.execute_script(SETTINGS)
        except sqlite3.Error:
            self._connection.close()
            raise

    def execute(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        return self._connection.execute(sql, values).fetchall()

    def insert(self, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        for block in blocks(rows, MAX_VALUES // len(columns)):
            self.execute(inserting(table, columns, len(block)), [value for row in block for value in row])

    def begin(self) -> None:
        self._connection.execute("BEGIN IMMEDIATE")

    def begin_reading(self) -> None:
        self._connection.execute("BEGIN DEFERRED")

    def commit(self, sql: str = "", values: Sequence[Any] = ()) -> None:
        if sql:
            self.execute(sql, values)
        self._connection.execute("COMMIT")

    def rollback(self) -> None:
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    def close(self) -> None:
        self._connection.close()


def blocks(rows: Sequence[Row], largest: int) -> Iterator[Sequence[Row]]:
    """The rows in few blocks and of few sizes, so that the same prepared statements serve again and again.

    >>> [len(block) for block in blocks([()] * 700, 512)]
    [512, 128, 60]
    """
    start = 0
    while start < len(rows):
        n_left = min(len(rows) - start, largest)
        size = n_left - n_left % STEP if n_left >= STEP else n_left
        yield rows[start : start + size]
        start += size


class SqliteDatabase(Database):
    """A file, and beside it `<file>-lock`, locked by the process that has it open."""

    errors = (sqlite3.Error,)

    def __init__(self, path: str) -> None:
        if not path or path == ":memory:":
            raise StoreError(repr(path), "expected the path of a file")
        self.path = Path(path)
        self.place = str(self.path)
        self._lock: IO[bytes] | None = None

    def connect(self) -> Connection:
        try:
            os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))
            return SqliteConnection(self.path)
        except OSError as error:
            raise StoreError(self.place, f"{error.strerror}; choose a path that can be written") from error

    def claim(self, connection: Connection) -> None:
        if self._lock is not None:
            return
        lock = open(f"{self.path}-lock", "ab")  # noqa: SIM115  held until release
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            raise StoreError(self.place, "another server has it open; stop that one, or choose another path") from None
        self._lock = lock

    def release(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def trouble(self, error: Exception) -> Trouble:
        code = getattr(error, "sqlite_errorcode", None)
        if not isinstance(error, sqlite3.Error) or code is None:
            return Trouble.REFUSED
        if code & 0xFF in NOT_NOW:
            return Trouble.UNAVAILABLE
        return Trouble.LOST if code & 0xFF in GONE else Trouble.REFUSED
