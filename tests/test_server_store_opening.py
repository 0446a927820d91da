"""Opening a store: new ones are made, old ones brought up to date, and what cannot be used is refused in words."""

import asyncio
import stat
import sys
from pathlib import Path

import pytest

from server.errors import StoreError
from server.local_postgres import LocalPostgres
from server.store import open_store, schema
from server.store.databases import database_at


async def test_a_newer_store_is_refused_in_words(store_url: str) -> None:
    store = await open_store(store_url)
    await store.write(lambda connection: connection.execute("UPDATE schema_version SET version = version + 1"))
    await store.close()
    with pytest.raises(StoreError, match=f"a newer PathSieve has written it .schema {schema.VERSION + 1}"):
        await open_store(store_url)


async def test_an_older_store_is_brought_up_to_date(store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    await (await open_store(store_url)).close()
    added = ("CREATE TABLE added (x INTEGER)", "INSERT INTO added (x) VALUES (7)")
    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, added))
    monkeypatch.setattr(schema, "VERSION", schema.VERSION + 1)
    for _ in range(2):
        store = await open_store(store_url)
        assert await store.read(lambda connection: connection.execute("SELECT x FROM added")) == [(7,)]
        await store.close()


async def test_a_migration_that_fails_leaves_the_store_as_it_was(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await (await open_store(store_url)).close()
    bad = ("CREATE TABLE added (x INTEGER)", "INSERT INTO nowhere (x) VALUES (7)")
    with monkeypatch.context() as patched:
        patched.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, bad))
        patched.setattr(schema, "VERSION", schema.VERSION + 1)
        with pytest.raises(StoreError, match="nowhere"):
            await open_store(store_url)
    store = await open_store(store_url)
    assert await store.subscriptions.count("default") == 0
    await store.close()


async def test_a_store_that_is_open_is_refused_to_a_second(store_url: str) -> None:
    store = await open_store(store_url)
    with pytest.raises(StoreError, match="another server"):
        await open_store(store_url)
    await store.close()
    await (await open_store(store_url)).close()


async def test_a_file_that_is_no_store_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    path.write_bytes(b"this is not a database, and long enough to be looked at" * 100)
    with pytest.raises(StoreError, match="file is not a database"):
        await open_store(str(path))


async def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="No such file or directory"):
        await open_store(str(tmp_path / "nowhere" / "store.db"))


async def test_a_new_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    await (await open_store(f"sqlite:///{path}")).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


BAD_URLS = {
    "another_database": ("mysql://host/db", "expected sqlite:///path, a path, or postgresql://"),
    "no_file": (":memory:", "expected the path of a file"),
    "nothing": ("", "expected the path of a file"),
}


@pytest.mark.parametrize("url, reason", BAD_URLS.values(), ids=BAD_URLS)
def test_a_url_of_another_kind_is_refused(url: str, reason: str) -> None:
    with pytest.raises(StoreError, match=reason):
        database_at(url)


async def test_a_server_that_is_not_there_is_refused_without_the_password() -> None:
    with pytest.raises(StoreError, match=r"postgresql://127\.0\.0\.1/nowhere") as refused:
        await open_store("postgresql://me:secret@127.0.0.1:1/nowhere")
    assert "secret" not in str(refused.value)


def test_without_psycopg_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "server.store.postgres", raising=False)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(StoreError, match=r"pip install 'pathsieve\[postgres\]'"):
        database_at("postgresql://host/db")


def test_a_postgres_that_runs_is_found_in_its_folder(postgres: LocalPostgres) -> None:
    again = LocalPostgres(postgres.folder, port=postgres.port)
    assert (again.pid, again.url("x")) == (postgres.pid, postgres.url("x"))


def test_a_postgres_that_cannot_be_started_says_why(postgres: LocalPostgres, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="pg_ctl failed"):
        LocalPostgres(tmp_path).start()


async def test_the_loop_turns_while_a_store_is_opened(store_url: str) -> None:
    opening = asyncio.create_task(open_store(store_url))
    turns = 0
    while not opening.done():
        await asyncio.sleep(0)
        turns += 1
    await opening.result().close()
    assert turns > 1
