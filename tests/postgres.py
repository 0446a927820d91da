"""A real PostgreSQL for tests: the machine's own binaries, in a temporary folder, a database for each test."""

import contextlib
import itertools
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from server.local_postgres import LocalPostgres, find_binaries

_numbers = itertools.count()


@contextlib.contextmanager
def running_postgres(durable: bool = False) -> Iterator[LocalPostgres]:
    """One that runs until the block ends; the test is skipped where there are no binaries."""
    if find_binaries() is None:
        pytest.skip("no PostgreSQL on this machine: initdb, pg_ctl and postgres are missing")
    folder = Path(tempfile.mkdtemp(prefix="pathsieve-"))
    folder.chmod(0o755)
    server = LocalPostgres(folder, durable=durable)
    try:
        server.create()
        server.start()
        yield server
        server.stop(at_once=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def new_database(server: LocalPostgres) -> str:
    """The URL of an empty database."""
    name = f"test_{next(_numbers)}"
    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE template0")
    return server.url(name)
