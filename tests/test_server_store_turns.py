"""Replicas that write to one PostgreSQL take turns; one that stops in the middle of its turn loses it."""

import socket
import threading
from collections.abc import Iterator

import psycopg
import pytest

from server.local_postgres import LocalPostgres
from server.store.databases import Row
from server.store.postgres import FEW_ROWS, VIGILANCE, PostgresConnection, PostgresDatabase
from tests.postgres import new_database

SECONDS = 60.0


def opened(database: PostgresDatabase) -> PostgresConnection:
    connection = database.connect()
    assert isinstance(connection, PostgresConnection)
    database.claim(connection)
    return connection


class Stopping:
    """Rows of which the second comes when somebody says so."""

    def __init__(self, n_rows: int) -> None:
        self.n_rows = n_rows
        self.has_begun, self.goes_on = threading.Event(), threading.Event()

    def __len__(self) -> int:
        return self.n_rows

    def __getitem__(self, place: int) -> Row:
        if place == 1:
            self.has_begun.set()
            assert self.goes_on.wait(SECONDS)
        elif place >= self.n_rows:
            raise IndexError
        return (place,)

    def __iter__(self) -> Iterator[Row]:
        return (self[place] for place in range(self.n_rows))


@pytest.mark.parametrize("n_rows", [FEW_ROWS, FEW_ROWS + 1], ids=["a transaction", "a copy"])
def test_one_that_stops_in_the_middle_is_put_out(postgres: LocalPostgres, n_rows: int) -> None:
    database = PostgresDatabase(new_database(postgres), shared=True)
    stopped, other, rows = opened(database), opened(database), Stopping(n_rows)
    other.execute("CREATE TABLE numbers (number INTEGER)")
    failures: list[BaseException] = []

    def copy() -> None:
        stopped.begin()
        try:
            stopped.insert("numbers", ["number"], rows)  # type: ignore[arg-type]
        except psycopg.Error as error:
            failures.append(error)

    copying = threading.Thread(target=copy)
    copying.start()
    assert rows.has_begun.wait(SECONDS)
    other.begin()
    other.insert("numbers", ["number"], [(7,)])
    other.commit()
    rows.goes_on.set()
    copying.join(SECONDS)
    assert [database.trouble(error).value for error in failures if isinstance(error, Exception)] == ["lost"]
    assert other.execute("SELECT number FROM numbers") == [(7,)]
    stopped.close()
    other.close()


def test_one_who_only_takes_long_is_waited_for(postgres: LocalPostgres) -> None:
    database = PostgresDatabase(new_database(postgres), shared=True)
    slow, other = opened(database), opened(database)
    slow.begin()
    begun = threading.Thread(target=other.begin)
    begun.start()
    slow.execute("SELECT pg_sleep(6)")
    slow.commit()
    begun.join(SECONDS)
    assert not begun.is_alive()
    other.commit()
    slow.close()
    other.close()


def test_a_connection_notices_that_its_peer_has_vanished(postgres: LocalPostgres) -> None:
    watchful = PostgresDatabase(postgres.url(), shared=True).connect()
    assert isinstance(watchful, PostgresConnection)
    ours = socket.fromfd(watchful._connection.pgconn.socket, socket.AF_INET, socket.SOCK_STREAM)
    try:
        assert ours.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == VIGILANCE["tcp_user_timeout"]
        assert ours.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == VIGILANCE["keepalives_idle"]
    finally:
        ours.close()
        watchful.close()
