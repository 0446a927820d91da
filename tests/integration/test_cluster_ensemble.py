"""Three ZooKeepers that are one: they crash, restart and hang, and no token moves as long as no session expires."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest

from server.cluster.zookeeper import Session, ZooKeeperUnavailable
from server.local_zookeeper import LocalEnsemble, LocalZooKeeper
from tests.token_scene import Replica, Stage, scene
from tests.zookeeper import running_ensemble

pytestmark = pytest.mark.slow

SESSION_TIMEOUT = 8.0
SECONDS = 60.0


@pytest.fixture(scope="module")
def ensemble() -> Iterator[LocalEnsemble]:
    with running_ensemble() as started:
        yield started


@asynccontextmanager
async def nothing_moves(ensemble: LocalEnsemble) -> AsyncIterator[list[Replica]]:
    """Three replicas share the tokens; what is done to the ensemble in the block makes no difference to that."""
    async with scene(ensemble.hosts, SESSION_TIMEOUT, SECONDS) as stage:
        replicas = [await stage.join(name) for name in "abc"]
        await stage.is_fair(*replicas)
        before, calls = await stage.stats(), [list(replica.holder.calls) for replica in replicas]
        states = [watched(replica) for replica in replicas]
        yield replicas
        await are_connected(replicas)
        assert await answered(stage) == before
        assert [replica.holder.calls for replica in replicas] == calls
        assert not any(Session.LOST in seen for seen in states)
        await replicas[0].stop()
        await stage.is_fair(*replicas[1:])


def watched(replica: Replica) -> list[Session]:
    """The states of its session from now on."""
    states: list[Session] = []
    replica.zookeeper.on_state.append(states.append)
    return states


async def are_connected(replicas: list[Replica]) -> None:
    while any(replica.zookeeper.state is not Session.CONNECTED for replica in replicas):
        await asyncio.sleep(0.05)


async def answered(stage: Stage) -> dict[str, object]:
    """All nodes, as soon as they can be read: the observer has breaks of its own."""
    while True:
        try:
            return dict(await stage.stats())
        except ZooKeeperUnavailable:
            await asyncio.sleep(0.05)


def others(ensemble: LocalEnsemble, server: LocalZooKeeper) -> list[LocalZooKeeper]:
    return [one for one in ensemble.servers if one is not server]


@pytest.mark.parametrize("which", ["leader", "follower"])
async def test_one_server_may_crash_and_come_back(ensemble: LocalEnsemble, which: str) -> None:
    async with nothing_moves(ensemble) as replicas:
        victim = next(server for server in ensemble.servers if server.mode() == which)
        victim.kill()
        for server in others(ensemble, victim):
            await asyncio.to_thread(server.wait)
        await are_connected(replicas)
        await asyncio.to_thread(ensemble.start)


async def test_all_servers_may_crash_and_come_back(ensemble: LocalEnsemble) -> None:
    async with nothing_moves(ensemble) as replicas:
        ensemble.kill()
        while any(replica.zookeeper.state is not Session.SUSPENDED for replica in replicas):
            await asyncio.sleep(0.05)
        await asyncio.to_thread(ensemble.start)


async def test_the_leader_may_hang_until_the_others_choose_another(ensemble: LocalEnsemble) -> None:
    async with nothing_moves(ensemble) as replicas:
        hung = ensemble.leader
        hung.pause()
        try:
            while not any(server.mode() == "leader" for server in others(ensemble, hung)):
                await asyncio.sleep(0.1)
            await are_connected(replicas)
        finally:
            hung.resume()
        await asyncio.to_thread(hung.wait)
