"""A store that is full, stalls, or goes away and returns: a clear error, nothing lost, and it goes on by itself."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import psycopg
import pytest

from server.documents import Document
from server.errors import StoreUnavailable
from server.local_postgres import LocalPostgres
from server.log.match_log import MatchLog
from server.store import open_store
from tests.postgres import new_database, running_postgres

REPOSITORY = Path(__file__).parent.parent.parent


def entry(name: str) -> tuple[str, Document, np.ndarray]:
    return "default", Document(name, xml=b"<a/>", publish_time=1.0), np.array([1])


async def ids(log: MatchLog) -> list[str]:
    log.tail.recent.clear()
    return [document.id for _, document in await log.read(1, 1, 1000, 1 << 30)]


@pytest.fixture
def own_postgres() -> Iterator[LocalPostgres]:
    """One to be stopped."""
    with running_postgres() as server:
        yield server


def backends(server: LocalPostgres) -> list[int]:
    """The processes that serve the store's connections."""
    sql = "SELECT pid FROM pg_stat_activity WHERE application_name = 'pathsieve'"
    with psycopg.connect(server.url()) as connection:
        return [pid for (pid,) in connection.execute(sql).fetchall()]


def test_a_full_disk_is_said_so_and_appending_goes_on_when_there_is_room_again(tmp_path: Path) -> None:
    command = [sys.executable, "tests/integration/fill_the_disk.py", str(tmp_path / "store.db")]
    said = subprocess.run(command, cwd=REPOSITORY, check=True, capture_output=True, text=True, timeout=60).stdout
    outcome = json.loads(said)
    assert outcome["appended"] > 0
    assert "the store is not available" in outcome["error"]
    assert outcome["heads"] == outcome["appended"] + 1
    assert outcome["ids"] == [*map(str, range(outcome["appended"])), "after"]


async def test_a_stalled_database_is_given_up_honestly_and_settled_when_it_moves_again(
    own_postgres: LocalPostgres,
) -> None:
    store = await open_store(new_database(own_postgres), deadline=0.5)
    log = await MatchLog.open(store)
    await log.append([entry("before")])
    stopped = backends(own_postgres)
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    running = asyncio.create_task(log.append([entry("taken")]))
    with pytest.raises(StoreUnavailable) as taken:
        await running
    with pytest.raises(StoreUnavailable) as waiting:
        await log.append([entry("waiting")])
    assert (taken.value.outcome_unknown, waiting.value.outcome_unknown) == (True, False)
    for pid in stopped:
        os.kill(pid, signal.SIGCONT)
    await store.settled()
    await log.append([entry("after")])
    assert await ids(log) == ["before", "taken", "after"]
    assert log.heads[1] == 3
    await log.close()
    await store.close()


async def test_a_database_that_was_started_again_is_found_again(own_postgres: LocalPostgres) -> None:
    store = await open_store(new_database(own_postgres))
    log = await MatchLog.open(store)
    await log.append([entry("before")])
    own_postgres.stop(at_once=True)
    waiting = [asyncio.create_task(log.append([entry(f"meanwhile {place}")])) for place in range(3)]
    await asyncio.to_thread(own_postgres.start)
    await asyncio.gather(*waiting)
    assert await ids(log) == ["before", "meanwhile 0", "meanwhile 1", "meanwhile 2"]
    await log.close()
    await store.close()


async def test_a_database_that_stays_away_is_a_clear_error(own_postgres: LocalPostgres) -> None:
    store = await open_store(new_database(own_postgres), deadline=0.3)
    log = await MatchLog.open(store)
    own_postgres.stop(at_once=True)
    with pytest.raises(StoreUnavailable, match=r"no answer within 0\.3 s") as appended:
        await log.append([entry("lost")])
    assert not appended.value.outcome_unknown
    with pytest.raises(StoreUnavailable):
        await store.subscriptions.count("default")
    await asyncio.to_thread(own_postgres.start)
    await store.settled()
    await log.append([entry("after")])
    assert await ids(log) == ["after"]
    await log.close()
    await store.close()


async def test_connections_cut_in_the_middle_of_commits_leave_no_doubt(own_postgres: LocalPostgres) -> None:
    """Backends are ended while appends are under way; each append lands once, whether or not its commit was heard."""
    store = await open_store(new_database(own_postgres))
    log = await MatchLog.open(store)

    async def cut() -> None:
        for _ in range(20):
            sql = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'pathsieve'"
            async with await psycopg.AsyncConnection.connect(own_postgres.url(), autocommit=True) as connection:
                await connection.execute(sql)
            await log.append([entry("cut")])

    async def append() -> int:
        n_appended = 0
        while not cutting.done():
            await log.append([entry("x")])
            n_appended += 1
        return n_appended

    cutting = asyncio.create_task(cut())
    counts = await asyncio.gather(*(append() for _ in range(5)))
    await cutting
    assert log.position == log.heads[1] == sum(counts) + 20
    rows = await store.read(lambda connection: connection.execute("SELECT count(*), max(position) FROM records"))
    assert rows == [(log.position, log.position)]
    await log.close()
    await store.close()
