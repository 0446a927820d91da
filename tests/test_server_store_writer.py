"""Group commit: shared transactions, failures that stay alone, deadlines that tell the truth. On both databases."""

import asyncio
import threading
from collections.abc import Callable

import pytest

from server.errors import AlreadyExists, StoreUnavailable
from server.store import Commit, Store, open_store
from server.store.databases import Connection


def note(name: str, value: int = 0) -> Callable[[Connection], str]:
    """An operation that leaves a trace."""

    def write(connection: Connection) -> str:
        connection.execute("INSERT INTO counters (name, value) VALUES (?, ?)", (name, value))
        return name

    return write


def refuse(connection: Connection) -> None:
    connection.execute("INSERT INTO counters (name, value) VALUES ('half', 0)")
    raise AlreadyExists("it")


async def noted(store: Store) -> list[str]:
    sql = "SELECT name FROM counters WHERE name NOT IN ('number', 'revision') ORDER BY name"
    return [name for (name,) in await store.read(lambda connection: connection.execute(sql))]


class Stall:
    """An operation that holds the writer's thread until it is let go."""

    def __init__(self) -> None:
        self.entered, self.leave = threading.Event(), threading.Event()

    def __call__(self, connection: Connection) -> str:
        self.entered.set()
        self.leave.wait()
        return note("stalled")(connection)

    async def until_entered(self) -> None:
        await asyncio.to_thread(self.entered.wait)


async def test_operations_that_wait_share_a_commit(store_url: str) -> None:
    commits: list[Commit] = []
    store = await open_store(store_url, on_commit=commits.append)
    stall = Stall()
    first = asyncio.create_task(store.write(stall))
    await stall.until_entered()
    others = [asyncio.create_task(store.write(note(f"n{i}"))) for i in range(10)]
    await asyncio.sleep(0)
    stall.leave.set()
    assert await asyncio.gather(first, *others) == ["stalled", *(f"n{i}" for i in range(10))]
    assert [commit.operations for commit in commits] == [1, 10]
    await store.close()


async def test_a_failing_operation_fails_alone_and_leaves_nothing(store: Store) -> None:
    operations = [note("a"), refuse, note("b"), note("a"), note("c")]
    results = await asyncio.gather(*(store.write(each) for each in operations), return_exceptions=True)
    assert [isinstance(result, Exception) for result in results] == [False, True, False, True, False]
    assert isinstance(results[1], AlreadyExists)
    assert await noted(store) == ["a", "b", "c"]


async def test_the_time_is_up_for_one_that_waits_and_it_is_certain(store_url: str) -> None:
    store = await open_store(store_url, deadline=0.2)
    stall = Stall()
    running = asyncio.create_task(store.write(stall))
    await stall.until_entered()
    with pytest.raises(StoreUnavailable) as waiting:
        await store.write(note("never"))
    with pytest.raises(StoreUnavailable, match="not known whether this was written") as ran:
        await running
    assert (waiting.value.outcome_unknown, ran.value.outcome_unknown) == (False, True)
    stall.leave.set()
    await store.settled()
    assert await noted(store) == ["stalled"]
    await store.close()


async def test_too_many_that_wait_are_refused_at_once(store_url: str) -> None:
    store = await open_store(store_url, max_waiting=2)
    stall = Stall()
    tasks = [asyncio.create_task(store.write(stall))]
    await stall.until_entered()
    tasks += [asyncio.create_task(store.write(note(f"n{i}"))) for i in range(2)]
    await asyncio.sleep(0)
    with pytest.raises(StoreUnavailable, match="2 operations wait already"):
        await store.write(note("one too many"))
    stall.leave.set()
    await asyncio.gather(*tasks)
    assert await noted(store) == ["n0", "n1", "stalled"]
    await store.close()


async def test_closing_finishes_what_waits_and_takes_no_more(store_url: str) -> None:
    store = await open_store(store_url)
    tasks = [asyncio.create_task(store.write(note(f"n{i}"))) for i in range(5)]
    await asyncio.sleep(0)
    await store.close()
    assert await asyncio.gather(*tasks) == [f"n{i}" for i in range(5)]
    with pytest.raises(StoreUnavailable, match="being closed"):
        await store.write(note("late"))
    with pytest.raises(StoreUnavailable, match="being closed"):
        await noted(store)


async def test_what_follows_from_a_commit_follows_though_its_caller_has_gone(store: Store) -> None:
    landed: list[str] = []
    stall = Stall()
    running = asyncio.create_task(
        store.writer.run_together(lambda connection, jobs: [job(connection) for job in jobs], stall, landed.append)
    )
    await stall.until_entered()
    running.cancel()
    stall.leave.set()
    await store.settled()
    assert landed == ["stalled"]


async def test_a_mistake_in_what_follows_reaches_its_caller_and_nobody_else(store: Store) -> None:
    def handler(connection: Connection, names: list[str]) -> list[str]:
        return [note(name)(connection) for name in names]

    def fail(name: str) -> None:
        raise RuntimeError(name)

    results = await asyncio.gather(
        store.writer.run_together(handler, "a", fail), store.writer.run_together(handler, "b"), return_exceptions=True
    )
    assert (str(results[0]), results[1]) == ("a", "b")
    assert await noted(store) == ["a", "b"]


async def test_reads_go_on_while_a_write_is_stalled(store: Store) -> None:
    stall = Stall()
    running = asyncio.create_task(store.write(stall))
    await stall.until_entered()
    assert await noted(store) == []
    stall.leave.set()
    await running
    assert await noted(store) == ["stalled"]


async def test_a_read_sees_one_state_of_the_store(store: Store) -> None:
    looked, written = threading.Event(), threading.Event()

    def look_twice(connection: Connection) -> bool:
        before = connection.execute("SELECT name FROM counters")
        looked.set()
        written.wait()
        return connection.execute("SELECT name FROM counters") == before

    reading = asyncio.create_task(store.read(look_twice))
    await asyncio.to_thread(looked.wait)
    await store.write(note("meanwhile"))
    written.set()
    assert await reading


async def test_a_read_that_fails_says_why_and_the_next_one_works(store: Store) -> None:
    with pytest.raises(Exception, match="nowhere"):
        await store.read(lambda connection: connection.execute("SELECT * FROM nowhere"))
    assert await noted(store) == []
