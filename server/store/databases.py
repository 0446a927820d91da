"""What the store needs of a database, and no more: two dialects, one code path.

    Database ── connect ──▶ Connection ── execute, insert ──▶ rows
       │                        begin, commit, rollback
       └── trouble(error) ──▶ REFUSED       the operation's own fault; the connection is as good as before
                              UNAVAILABLE   not now: full, locked; nothing was written
                              LOST          the connection is gone; if it was lost in a commit, nobody knows

SQL is written once, with `?` for values and SQLite's names of types. PostgreSQL's side respells it.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Any

from server.errors import StoreError

__all__ = ["Connection", "Database", "Row", "Trouble", "database_at", "inserting", "placeholders"]

Row = tuple[Any, ...]
SQLITE_PREFIX = "sqlite:///"


class Trouble(Enum):
    """What an error of a database means for the one who asked."""

    REFUSED = "refused"
    UNAVAILABLE = "unavailable"
    LOST = "lost"


class Connection(ABC):
    """One session with a database, used by one thread at a time. Transactions are opened and ended in words."""

    @abstractmethod
    def execute(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        """Run one statement; the rows it returns, if it returns any."""

    @abstractmethod
    def insert(self, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        """Insert many rows, as fast as the database can."""

    @abstractmethod
    def begin(self) -> None:
        """Open a transaction that will write."""

    @abstractmethod
    def begin_reading(self) -> None:
        """Open a transaction that sees one state of the database and writes nothing."""

    @abstractmethod
    def commit(self, sql: str = "", values: Sequence[Any] = ()) -> None:
        """Run a last statement, if there is one, and commit. When this returns, the transaction is on disk."""

    @abstractmethod
    def rollback(self) -> None:
        """Undo the open transaction, if there is still one."""

    @abstractmethod
    def close(self) -> None: ...

    def tell(self, topic: str) -> None:  # noqa: B027  who stands alone has nobody to tell
        """Say to other replicas, once this is committed, that something of a topic has changed."""

    def execute_script(self, statements: Iterable[str]) -> None:
        for statement in statements:
            self.execute(statement)


class Database(ABC):
    """Where the store is. `place` is for people, and holds no password; `errors` are all that its driver raises."""

    place: str
    errors: tuple[type[Exception], ...]

    @abstractmethod
    def connect(self) -> Connection: ...

    @abstractmethod
    def claim(self, connection: Connection) -> None:
        """Make this process the only one that writes, or raise `StoreError`."""

    @abstractmethod
    def release(self) -> None:
        """Let another process write."""

    @abstractmethod
    def trouble(self, error: Exception) -> Trouble: ...


def placeholders(n_values: int) -> str:
    """`?` so many times, for `IN (...)`.

    >>> placeholders(3)
    '?, ?, ?'
    """
    return ", ".join("?" * n_values)


def inserting(table: str, columns: Sequence[str], n_rows: int) -> str:
    """One statement that inserts so many rows, whose values follow each other.

    >>> inserting("published", ["key", "time"], 2)
    'INSERT INTO published (key, time) VALUES (?, ?), (?, ?)'
    """
    rows = ", ".join([f"({placeholders(len(columns))})"] * n_rows)
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES {rows}"


def database_at(url: str, shared: bool = False) -> Database:
    """The database of a URL: sqlite:///path, a plain path, or postgresql://...; `shared` if replicas share it."""
    scheme, separator, _ = url.partition("://")
    if separator and scheme in ("postgresql", "postgres"):
        from server.store.postgres import PostgresDatabase

        return PostgresDatabase(url, shared)
    if shared:
        raise StoreError(url, "replicas share a PostgreSQL; set store.url to postgresql://user@host/database")
    if separator and not url.startswith(SQLITE_PREFIX):
        raise StoreError(f"{scheme}://", "expected sqlite:///path, a path, or postgresql://user@host/database")
    from server.store.sqlite import SqliteDatabase

    return SqliteDatabase(url.removeprefix(SQLITE_PREFIX))
