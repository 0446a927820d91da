"""PostgreSQL, by psycopg 3 (the extra `pathsieve[postgres]`).

    INTEGER → BIGINT    BLOB → BYTEA    REAL → DOUBLE PRECISION    TEXT → TEXT COLLATE "C"    ? → %s

Text is compared by code points, as everywhere else. Many rows go in by COPY. Every statement has its index, but right
after an import the planner does not know and reads whole tables (7,700 subscriptions a second came in, against 31,000);
so that is switched off.

Few rows go in by one statement, and the last statements go with the commit: each round trip holds up other replicas,
and costs a thread the GIL. With 13 of them a commit of one document took 0.6 to 0.9 ms, beside a busy thread 1.6 to
1.9; with 6 it takes 0.5 to 0.7, and 1.1 to 1.6.

A server that stands alone holds an advisory lock for as long as its connection lives, so that no other one writes.
Replicas share that lock, and take turns: each transaction begins with a lock of its own, so they never wait for each
other in a circle, and positions and revisions become visible in their order. A replica that stops in the middle of a
transaction (paused, cut off) is put out by the database after `IDLE_SECONDS`, so that the others go on. In the middle
of a COPY the database would wait for it for ever; then whoever waits for his turn puts it out.
"""

import functools
import logging
import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from server.errors import StoreError
from server.store.databases import Connection, Database, Row, Trouble, inserting

try:
    import psycopg
    from psycopg.conninfo import conninfo_to_dict
except ImportError as missing:
    raise StoreError(
        "postgresql://", "psycopg is not installed; install it with: pip install 'pathsieve[postgres]'"
    ) from missing

__all__ = ["PostgresConnection", "PostgresDatabase", "connected"]

logger = logging.getLogger("pathsieve.store")

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
CHANNEL = "pathsieve"
FEW_ROWS = 16
IDLE_SECONDS = 2
TURN_SECONDS = 2
CONNECT_SECONDS = 10
VIGILANCE = {"keepalives_idle": 5, "keepalives_interval": 2, "keepalives_count": 3, "tcp_user_timeout": 10_000}
"""A peer that has vanished is noticed within seconds; by itself TCP takes a quarter of an hour, or for ever."""
PUT_OUT = f"""SELECT pg_terminate_backend(pid) FROM pg_locks JOIN pg_stat_activity USING (pid)
    WHERE locktype = 'advisory' AND classid = {LOCK} AND objid = 1 AND granted AND datname = current_database()
    AND wait_event = 'ClientRead' AND query_start < clock_timestamp() - interval '{2 * TURN_SECONDS} s'"""
NOT_NOW = ("40", "53", "55", "57014", "25006")
"""Classes of SQLSTATE: deadlocks, too little disk or memory, locks; and cancelled, read-only."""
PUT_OUT_STATES = ("25P03", "25P04")
"""SQLSTATE of one who was put out because his transaction took too long."""


@functools.cache
def respelled(sql: str) -> bytes:
    """The same statement as PostgreSQL wants it.

    >>> respelled("UPDATE logs SET position = ? WHERE log = ?")
    b'UPDATE logs SET position = %s WHERE log = %s'
    """
    return RESPELLED.sub(lambda word: SPELLINGS[word[0]], sql).encode()


def connected(url: str, name: str) -> "psycopg.Connection[Row]":
    """A connection in autocommit that does not wait for a dead peer. What the URL says goes first."""
    chosen = {"connect_timeout": CONNECT_SECONDS, "application_name": name, **VIGILANCE, **conninfo_to_dict(url)}
    return psycopg.connect("", autocommit=True, **chosen)  # type: ignore[arg-type]


class PostgresConnection(Connection):
    """A connection in autocommit: transactions are ours to open."""

    def __init__(self, connection: "psycopg.Connection[Row]", shared: bool) -> None:
        self._connection = connection
        self._shared = shared
        self._topics: set[str] = set()

    def execute(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        with self._connection.cursor(binary=True) as cursor:
            cursor.execute(respelled(sql), values or None)
            return cursor.fetchall() if cursor.description else []

    def insert(self, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        if not rows:
            return
        if len(rows) <= FEW_ROWS:
            self.execute(inserting(table, columns, len(rows)), [value for row in rows for value in row])
            return
        with (
            self._connection.cursor() as cursor,
            cursor.copy(f"COPY {table} ({', '.join(columns)}) FROM STDIN".encode()) as copy,
        ):
            for row in rows:
                copy.write_row(row)

    def begin(self) -> None:
        while not self._begun():
            self._connection.execute("ROLLBACK")
            for _ in self._connection.execute(PUT_OUT):
                logger.warning("another replica has stopped in the middle of a transaction, and was put out")

    def _begun(self) -> bool:
        """Begin, and get a turn; False if somebody has had his for long."""
        self._topics.clear()
        try:
            self._connection.execute(f"BEGIN; SELECT pg_advisory_xact_lock({LOCK}, 1)" if self._shared else "BEGIN")
        except psycopg.errors.LockNotAvailable:
            return False
        return True

    def tell(self, topic: str) -> None:
        if self._shared:
            self._topics.add(topic)

    def begin_reading(self) -> None:
        self._connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")

    def commit(self, sql: str = "", values: Sequence[Any] = ()) -> None:
        told = [f"SELECT pg_notify('{CHANNEL}', '{topic}');".encode() for topic in sorted(self._topics)]
        with psycopg.ClientCursor(self._connection) as cursor:  # which may send several statements at once
            cursor.execute(b" ".join([*told, respelled(sql) + b";" if sql else b"", b"COMMIT"]), values or None)

    def rollback(self) -> None:
        self._connection.execute("ROLLBACK")

    def close(self) -> None:
        self._connection.close()


class PostgresDatabase(Database):
    """A database of a PostgreSQL server, PostgreSQL 13 or newer."""

    errors = (psycopg.Error,)

    def __init__(self, url: str, shared: bool = False) -> None:
        self.url = url
        self._shared = shared
        parts = urlsplit(url)
        self.place = f"{parts.scheme}://{parts.hostname or ''}{parts.path}"

    def connect(self) -> Connection:
        connection = connected(self.url, "pathsieve")
        connection.execute("SET enable_seqscan = off")
        return PostgresConnection(connection, self._shared)

    def claim(self, connection: Connection) -> None:
        kind = "_shared" if self._shared else ""
        (claimed,) = connection.execute(f"SELECT pg_try_advisory_lock{kind}(?::int, 0)", (LOCK,))[0]
        if not claimed:
            other = "a server that stands alone" if self._shared else "another server"
            raise StoreError(self.place, f"{other} writes to it; stop that one, or choose another database")
        if self._shared:
            connection.execute(f"SET idle_in_transaction_session_timeout = '{IDLE_SECONDS}s'")
            connection.execute(f"SET lock_timeout = '{TURN_SECONDS}s'")

    def release(self) -> None:
        """The lock goes with the connection."""

    def trouble(self, error: Exception) -> Trouble:
        state = getattr(error, "sqlstate", None) or ""
        if state.startswith(NOT_NOW):
            return Trouble.UNAVAILABLE
        is_gone = isinstance(error, psycopg.OperationalError | psycopg.InterfaceError) or state in PUT_OUT_STATES
        return Trouble.LOST if is_gone else Trouble.REFUSED
