"""PostgreSQL, by psycopg 3 (the extra `pathsieve[postgres]`).

    INTEGER → BIGINT    BLOB → BYTEA    REAL → DOUBLE PRECISION    TEXT → TEXT COLLATE "C"    ? → %s

Text is compared by code points, as everywhere else. Many rows go in by COPY. Every statement has its index, but right
after an import the planner does not know and reads whole tables (7,700 subscriptions a second came in, against 31,000);
so that is switched off. One process writes to one log: it holds an advisory lock for as long as its connection lives.
"""

import functools
import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from server.errors import StoreError
from server.store.databases import Connection, Database, Row, Trouble

try:
    import psycopg
except ImportError as missing:
    raise StoreError(
        "postgresql://", "psycopg is not installed; install it with: pip install 'pathsieve[postgres]'"
    ) from missing

__all__ = ["PostgresConnection", "PostgresDatabase"]

SPELLINGS = {
    "TEXT": 'TEXT COLLATE "C"',
    "INTEGER": "BIGINT",
    "BLOB": "BYTEA",
    "REAL": "DOUBLE PRECISION",
    " WITHOUT ROWID": "",
    "?": "%s",
}
RESPELLED = re.compile(r"\bTEXT\b|\bINTEGER\b|\bBLOB\b|\bREAL\b| WITHOUT ROWID\b|\?")
LOCK = 0x7073
CONNECT_SECONDS = 10
NOT_NOW = ("40", "53", "55", "57014", "25006")
"""Classes of SQLSTATE: deadlocks, too little disk or memory, locks; and cancelled, read-only."""


@functools.cache
def respelled(sql: str) -> bytes:
    """The same statement as PostgreSQL wants it.

    >>> respelled("UPDATE logs SET position = ? WHERE log = ?")
    b'UPDATE logs SET position = %s WHERE log = %s'
    """
    return RESPELLED.sub(lambda word: SPELLINGS[word[0]], sql).encode()


class PostgresConnection(Connection):
    """A connection in autocommit: transactions are ours to open."""

    def __init__(self, connection: "psycopg.Connection[Row]") -> None:
        self._connection = connection

    def execute(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        with self._connection.cursor(binary=True) as cursor:
            cursor.execute(respelled(sql), values or None)
            return cursor.fetchall() if cursor.description else []

    def insert(self, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        if not rows:
            return
        with (
            self._connection.cursor() as cursor,
            cursor.copy(f"COPY {table} ({', '.join(columns)}) FROM STDIN".encode()) as copy,
        ):
            for row in rows:
                copy.write_row(row)

    def begin(self) -> None:
        self._connection.execute("BEGIN")

    def begin_reading(self) -> None:
        self._connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")

    def commit(self) -> None:
        self._connection.execute("COMMIT")

    def rollback(self) -> None:
        self._connection.execute("ROLLBACK")

    def close(self) -> None:
        self._connection.close()


class PostgresDatabase(Database):
    """A database of a PostgreSQL server, PostgreSQL 13 or newer."""

    errors = (psycopg.Error,)

    def __init__(self, url: str) -> None:
        self.url = url
        parts = urlsplit(url)
        self.place = f"{parts.scheme}://{parts.hostname or ''}{parts.path}"

    def connect(self) -> Connection:
        connection = psycopg.connect(
            self.url, autocommit=True, connect_timeout=CONNECT_SECONDS, application_name="pathsieve"
        )
        connection.execute("SET enable_seqscan = off")
        return PostgresConnection(connection)

    def claim(self, connection: Connection) -> None:
        (claimed,) = connection.execute("SELECT pg_try_advisory_lock(?::int, 0)", (LOCK,))[0]
        if not claimed:
            raise StoreError(self.place, "another server writes to it; stop that one, or choose another database")

    def release(self) -> None:
        """The lock goes with the connection."""

    def trouble(self, error: Exception) -> Trouble:
        if (getattr(error, "sqlstate", None) or "").startswith(NOT_NOW):
            return Trouble.UNAVAILABLE
        return Trouble.LOST if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError) else Trouble.REFUSED
