"""ZooKeeper on an event loop: what calls answer, and what happens when nobody answers, against a real server."""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest

from server.cluster.zookeeper import Create, Delete, Session, SetData, ZooKeeper, ZooKeeperUnavailable
from server.errors import CannotStart
from server.local_zookeeper import LocalZooKeeper
from tests.zookeeper import expire, new_root, running_zookeeper

SESSION_TIMEOUT = 2.0
DEADLINE = 0.3
SECONDS = 20.0


@pytest.fixture(scope="module")
def fragile() -> Iterator[LocalZooKeeper]:
    """A server that tests of this module may pause; whoever does so resumes it."""
    with running_zookeeper() as server:
        yield server


@asynccontextmanager
async def session(server: LocalZooKeeper, timeout: float = SESSION_TIMEOUT) -> AsyncIterator[ZooKeeper]:
    opened = ZooKeeper(server.hosts, timeout)
    async with asyncio.timeout(SECONDS):
        await opened.start()
        try:
            yield opened
        finally:
            await opened.stop()


async def until_it_answers(opened: ZooKeeper, path: str) -> tuple[bytes, object] | None:
    while True:
        try:
            return await opened.get(path)
        except ZooKeeperUnavailable:
            await asyncio.sleep(0.05)


async def has_entered(opened: ZooKeeper, state: Session) -> None:
    while opened.state is not state:
        await asyncio.sleep(0.02)


class TestCalls:
    async def test_a_lasting_node_is_made_with_its_parents_and_then_left_as_it_is(
        self, zookeeper: LocalZooKeeper
    ) -> None:
        root = new_root()
        async with session(zookeeper) as opened:
            await opened.ensure(f"{root}/a/b", b"first")
            await opened.ensure(f"{root}/a/b", b"second")
            found = await opened.get(f"{root}/a/b")
            assert found is not None
            assert found[0] == b"first"
            assert await opened.children(f"{root}/a") == ["b"]

    async def test_a_node_that_is_not_there_reads_as_none_and_may_be_deleted(self, zookeeper: LocalZooKeeper) -> None:
        root = new_root()
        async with session(zookeeper) as opened:
            assert await opened.get(root) is None
            await opened.delete(root)
            with pytest.raises(ZooKeeperUnavailable, match="NoNode"):
                await opened.children(root)

    async def test_an_ephemeral_node_is_made_once_and_goes_with_its_session(self, zookeeper: LocalZooKeeper) -> None:
        root = new_root()
        async with session(zookeeper) as other:
            await other.ensure(root)
            async with session(zookeeper) as opened:
                assert await opened.create(f"{root}/a", b"mine")
                assert not await other.create(f"{root}/a", b"no, mine")
            assert await other.children(root) == []

    async def test_data_are_set_only_if_the_version_is_the_one_that_was_read(self, zookeeper: LocalZooKeeper) -> None:
        root = new_root()
        async with session(zookeeper) as opened:
            await opened.ensure(root, b"first")
            assert await opened.set(root, b"second", 0)
            assert not await opened.set(root, b"third", 0)
            assert not await opened.set(f"{root}/none", b"first", 0)
            found = await opened.get(root)
            assert found is not None
            assert (found[0], found[1].version) == (b"second", 1)

    async def test_a_deleted_node_is_gone(self, zookeeper: LocalZooKeeper) -> None:
        root = new_root()
        async with session(zookeeper) as opened:
            await opened.ensure(root)
            await opened.delete(root)
            assert await opened.get(root) is None


class TestTransactions:
    async def test_all_steps_are_done(self, zookeeper: LocalZooKeeper) -> None:
        root = new_root()
        async with session(zookeeper) as opened:
            await opened.ensure(root, b"first")
            await opened.create(f"{root}/old", b"")
            steps = [SetData(root, b"second", 0), Delete(f"{root}/old"), Create(f"{root}/new", b"")]
            assert await opened.multi(steps)
            found = await opened.get(root)
            assert found is not None
            assert (found[0], await opened.children(root)) == (b"second", ["new"])

    @pytest.mark.parametrize("wrong", ["version", "missing", "present"])
    async def test_one_step_that_cannot_be_done_undoes_them_all(self, zookeeper: LocalZooKeeper, wrong: str) -> None:
        root = new_root()
        steps = {
            "version": SetData(root, b"second", 7),
            "missing": Delete(f"{root}/none"),
            "present": Create(f"{root}/old", b""),
        }
        async with session(zookeeper) as opened:
            await opened.ensure(root, b"first")
            await opened.create(f"{root}/old", b"")
            before = [SetData(root, b"second", 0), Create(f"{root}/new", b"")]
            assert not await opened.multi([*before, steps[wrong]])
            found = await opened.get(root)
            assert found is not None
            assert (found[0], found[1].version, await opened.children(root)) == (b"first", 0, ["old"])


class TestWatches:
    async def test_a_change_reaches_the_loop_once_however_often_the_node_was_read(
        self, zookeeper: LocalZooKeeper
    ) -> None:
        root = new_root()
        changes: asyncio.Queue[asyncio.AbstractEventLoop] = asyncio.Queue()

        def changed() -> None:
            changes.put_nowait(asyncio.get_running_loop())

        async with session(zookeeper) as opened:
            await opened.ensure(root)
            for _ in range(3):
                await opened.get(root, changed)
            await opened.set(root, b"second", 0)
            await opened.set(root, b"third", 1)
            assert await changes.get() is asyncio.get_running_loop()
            await opened.get(root)
            assert changes.empty()

    async def test_children_that_come_and_go_are_told_to_those_who_looked(self, zookeeper: LocalZooKeeper) -> None:
        root = new_root()
        changed = asyncio.Event()
        async with session(zookeeper) as opened:
            await opened.ensure(root)
            async with session(zookeeper) as other:
                await opened.children(root, changed.set)
                await other.create(f"{root}/a", b"")
                await changed.wait()
                changed.clear()
                assert await opened.children(root, changed.set) == ["a"]
            await changed.wait()
            assert await opened.children(root) == []


class TestBreaks:
    async def test_a_pause_that_is_shorter_than_the_session_costs_nothing(self, fragile: LocalZooKeeper) -> None:
        root = new_root()
        states: list[Session] = []
        async with session(fragile, timeout=6.0) as opened:
            opened.on_state.append(states.append)
            await opened.ensure(root)
            await opened.create(f"{root}/a", b"mine")
            before = await opened.get(f"{root}/a")
            opened._deadline = DEADLINE
            fragile.pause()
            try:
                with pytest.raises(ZooKeeperUnavailable, match=r"within 0\.3 s"):
                    await opened.get(root)
                await has_entered(opened, Session.SUSPENDED)
            finally:
                fragile.resume()
            await has_entered(opened, Session.CONNECTED)
            assert await until_it_answers(opened, f"{root}/a") == before
            assert states == [Session.SUSPENDED, Session.CONNECTED]

    async def test_watches_are_called_when_the_connection_breaks(self, fragile: LocalZooKeeper) -> None:
        root = new_root()
        changed = asyncio.Event()
        async with session(fragile) as opened:
            await opened.ensure(root)
            await opened.get(root, changed.set)
            opened._client._connection._socket.shutdown(socket.SHUT_RDWR)
            await changed.wait()
            await has_entered(opened, Session.CONNECTED)

    async def test_a_thousand_calls_without_a_server_hold_up_nobody(self) -> None:
        """Each writes a byte into kazoo's pipe, which has room for a few hundred, and whoever finds it full waits."""
        with running_zookeeper() as server:
            async with session(server) as opened:
                opened._deadline = DEADLINE
                server.kill()
                await has_entered(opened, Session.SUSPENDED)
                for _ in range(3):
                    found = await asyncio.gather(*(opened.get("/") for _ in range(1000)), return_exceptions=True)
                    assert {type(one) for one in found} == {ZooKeeperUnavailable}
                await asyncio.to_thread(server.start)
                assert await until_it_answers(opened, "/") is not None

    async def test_an_expired_session_is_lost_and_another_takes_its_place(self, fragile: LocalZooKeeper) -> None:
        root = new_root()
        states: list[Session] = []
        async with session(fragile) as opened:
            opened.on_state.append(states.append)
            await opened.ensure(root)
            await opened.create(f"{root}/a", b"mine")
            await expire(opened)
            await has_entered(opened, Session.CONNECTED)
            assert await until_it_answers(opened, f"{root}/a") is None
            assert await opened.create(f"{root}/a", b"mine again")
            assert states == [Session.SUSPENDED, Session.LOST, Session.CONNECTED]


class TestStopping:
    async def test_it_stops_while_the_server_is_paused(self, fragile: LocalZooKeeper) -> None:
        async with session(fragile) as opened:
            fragile.pause()
            try:
                await opened.stop()
            finally:
                fragile.resume()

    async def test_it_stops_when_the_server_is_gone(self) -> None:
        with running_zookeeper() as server:
            async with session(server) as opened:
                server.kill()
                await has_entered(opened, Session.SUSPENDED)

    async def test_a_call_after_the_end_fails_in_time(self, zookeeper: LocalZooKeeper) -> None:
        async with session(zookeeper) as opened:
            await opened.stop()
            with pytest.raises(ZooKeeperUnavailable):
                await opened.get("/")

    async def test_a_start_without_a_server_says_where_it_looked(self) -> None:
        with socket.socket() as reserved:
            reserved.bind(("127.0.0.1", 0))
            hosts = f"127.0.0.1:{reserved.getsockname()[1]}"
            with pytest.raises(CannotStart, match=rf"no ZooKeeper answers at {hosts} within 0\.5 s"):
                await ZooKeeper(hosts, SESSION_TIMEOUT).start(seconds=0.5)

    async def test_a_start_with_a_paused_server_says_so_too(self, fragile: LocalZooKeeper) -> None:
        fragile.pause()
        try:
            with pytest.raises(CannotStart, match="no ZooKeeper answers"):
                await ZooKeeper(fragile.hosts, SESSION_TIMEOUT).start(seconds=0.5)
        finally:
            fragile.resume()
