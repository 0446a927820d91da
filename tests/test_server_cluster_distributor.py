"""Replicas share tokens through a real ZooKeeper: fairly, one owner at a time, with no more moves than needed."""

import asyncio
import json
import logging
from collections.abc import Callable, Sequence

import pytest

from server.cluster.membership import CONFIG
from server.cluster.settings import ReplicaSettings
from server.cluster.zookeeper import Session
from server.cluster.zookeeper_sharing import ZooKeeperSharing
from server.errors import CannotStart, ServerError
from server.local_zookeeper import LocalZooKeeper
from server.subscriptions import N_TOKENS
from tests.token_scene import Recorder, Stage, scene
from tests.zookeeper import expire, new_root

ALL = set(range(N_TOKENS))


class SlowRecorder(Recorder):
    """It takes its time until it may go on."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.may_go_on = asyncio.Event(), asyncio.Event()

    async def prepare(self, tokens: Sequence[int], is_urgent: bool = True) -> None:
        self._record("prepare", list(tokens))
        self.begun.set()
        await self.may_go_on.wait()


async def until(is_so: Callable[[], bool]) -> None:
    while not is_so():
        await asyncio.sleep(0.02)


class TestJoining:
    async def test_one_replica_takes_all(self, zookeeper: LocalZooKeeper) -> None:
        async with scene(zookeeper.hosts) as stage:
            a = await stage.join("a")
            await a.distributor.settled()
            assert await stage.counts() == {"a": N_TOKENS}
            assert set(a.distributor.mine) == set(a.holder.holds) == ALL
            assert {owned.owner for owned in a.distributor.owners} == {"a"}

    async def test_each_that_joins_gets_its_share_and_nothing_else_moves(self, zookeeper: LocalZooKeeper) -> None:
        async with scene(zookeeper.hosts) as stage:
            a = await stage.join("a")
            await stage.is_fair(a)
            b = await stage.join("b")
            await stage.is_fair(a, b)
            assert a.holder.tokens("lost") == set(b.holder.holds) == b.holder.tokens("taken")
            c = await stage.join("c")
            await stage.is_fair(a, b, c)
            moved = len(c.holder.tokens("taken"))
            assert moved in (85, 86)
            generations = sum(generation for _, generation in await stage.owners())
            assert generations == N_TOKENS + N_TOKENS // 2 + moved

    async def test_three_that_come_at_once_share_too(self, zookeeper: LocalZooKeeper) -> None:
        async with scene(zookeeper.hosts) as stage:
            await stage.is_fair(*await asyncio.gather(*(stage.join(name) for name in "abc")))
            counts = await stage.counts()
            assert max(counts.values()) - min(counts.values()) <= 1

    async def test_every_token_is_prepared_before_it_is_taken(self, zookeeper: LocalZooKeeper) -> None:
        async with scene(zookeeper.hosts) as stage:
            replicas = [await stage.join(name) for name in "ab"]
            await stage.is_fair(*replicas)
            for replica in replicas:
                prepared: set[int] = set()
                for name, what in replica.holder.calls:
                    if name == "prepare":
                        prepared = set(what)
                    assert name != "taken" or set(what) == prepared

    async def test_shares_are_in_proportion_to_weights(self, zookeeper: LocalZooKeeper) -> None:
        async with scene(zookeeper.hosts) as stage:
            await stage.is_fair(await stage.join("a"), await stage.join("b", weight=3.0))
            assert await stage.counts() == {"a": 64, "b": 192}

    async def test_nothing_is_written_at_rest(self, zookeeper: LocalZooKeeper) -> None:
        async with scene(zookeeper.hosts) as stage:
            await stage.is_fair(*[await stage.join(name) for name in "abc"])
            before = await stage.stats()
            await asyncio.sleep(1.0)
            assert await stage.stats() == before

    async def test_a_cluster_that_was_made_otherwise_is_refused(self, zookeeper: LocalZooKeeper) -> None:
        async with scene(zookeeper.hosts) as stage:
            await stage.observer.ensure(f"{stage.root}/config", json.dumps(CONFIG | {"tokens": 64}).encode())
            with pytest.raises(CannotStart, match=r"was made with .*'tokens': 64"):
                await stage.join("a")
            assert await stage.observer.children(f"{stage.root}/members") == []


class TestLeaving:
    async def test_a_drained_replica_hands_over_and_no_token_is_ever_free(self, zookeeper: LocalZooKeeper) -> None:
        async with scene(zookeeper.hosts) as stage:
            a, b, c = [await stage.join(name) for name in "abc"]
            await stage.is_fair(a, b, c)
            looking = asyncio.create_task(never_free(stage))
            await a.membership.set_draining("a", True)
            await a.distributor.hand_over(timeout=20.0)
            await stage.is_fair(b, c)
            looking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await looking
            assert a.distributor.mine == a.holder.holds == {}

    async def test_a_drain_can_be_undone(self, zookeeper: LocalZooKeeper) -> None:
        async with scene(zookeeper.hosts) as stage:
            a, b = [await stage.join(name) for name in "ab"]
            await b.membership.set_draining("a", True)
            await stage.is_fair(b)
            await a.membership.set_draining("a", False)
            await stage.is_fair(a, b)

    async def test_the_last_one_keeps_its_tokens_though_it_drains(self, zookeeper: LocalZooKeeper) -> None:
        async with scene(zookeeper.hosts) as stage:
            a = await stage.join("a")
            await stage.is_fair(a)
            await a.membership.set_draining("a", True)
            await a.distributor.hand_over(timeout=20.0)
            assert await stage.counts() == {"a": N_TOKENS}

    async def test_what_a_replica_has_is_free_when_it_stops(self, zookeeper: LocalZooKeeper) -> None:
        async with scene(zookeeper.hosts) as stage:
            a, b = [await stage.join(name) for name in "ab"]
            await stage.is_fair(a, b)
            await a.stop()
            assert a.holder.holds == {}
            await stage.is_fair(b)

    async def test_others_take_the_tokens_of_one_that_vanishes(self, zookeeper: LocalZooKeeper) -> None:
        async with scene(zookeeper.hosts) as stage:
            a, b, c = [await stage.join(name) for name in "abc"]
            await stage.is_fair(a, b, c)
            await a.vanish()
            await stage.is_fair(b, c)
            await until(lambda: a.holder.holds == {})

    async def test_a_lost_session_costs_all_and_the_next_one_gets_a_share(self, zookeeper: LocalZooKeeper) -> None:
        async with scene(zookeeper.hosts) as stage:
            a, b = [await stage.join(name) for name in "ab"]
            await stage.is_fair(a, b)
            had = set(a.holder.holds)
            await expire(a.zookeeper)
            await until(lambda: a.holder.tokens("lost") >= had)
            await stage.is_fair(a, b)

    async def test_a_lone_replica_takes_all_again_after_a_lost_session(self, zookeeper: LocalZooKeeper) -> None:
        async with scene(zookeeper.hosts) as stage:
            a = await stage.join("a")
            await stage.is_fair(a)
            await expire(a.zookeeper)
            await until(lambda: a.holder.tokens("lost") == ALL)
            await stage.is_fair(a)
            assert {generation for _, generation in await stage.owners()} == {2}


async def never_free(stage: Stage) -> None:
    """Look at the owners for ever: there is one for each token, all the time."""
    while True:
        assert len(await stage.observer.children(f"{stage.root}/owners")) == N_TOKENS
        await asyncio.sleep(0)


class TestFaults:
    @pytest.mark.parametrize("call", ["prepare", "taken"])
    @pytest.mark.parametrize("error", [ServerError("not now"), ValueError("not now")], ids=["expected", "unexpected"])
    async def test_a_holder_that_fails_is_asked_again(
        self, zookeeper: LocalZooKeeper, caplog: pytest.LogCaptureFixture, call: str, error: Exception
    ) -> None:
        caplog.set_level(logging.INFO, "pathsieve.cluster")
        async with scene(zookeeper.hosts) as stage:
            holder = Recorder()
            holder.failures[call] = error
            await stage.is_fair(await stage.join("a", holder=holder))
            assert "not now" in caplog.text

    async def test_who_has_prepared_what_another_one_takes_is_told(self, zookeeper: LocalZooKeeper) -> None:
        async with scene(zookeeper.hosts) as stage:
            slow = SlowRecorder()
            b = await stage.join("b", holder=slow)
            await slow.begun.wait()  # alone, it prepares the first of all tokens
            a = await stage.join("a")
            await until(lambda: len(a.holder.holds) == N_TOKENS // 2)
            slow.may_go_on.set()
            await stage.is_fair(a, b)
            prepared_first = set(slow.calls[0][1])
            assert prepared_first == b.holder.tokens("not_taken")
            assert prepared_first <= set(a.holder.holds)

    async def test_a_newer_start_of_the_same_name_takes_over(self, zookeeper: LocalZooKeeper) -> None:
        async with scene(zookeeper.hosts) as stage:
            older, b = [await stage.join(name) for name in "ab"]
            await stage.is_fair(older, b)
            newer = await stage.join("a")
            await stage.is_fair(newer, b)
            await until(lambda: older.holder.holds == {})
            assert b.membership.members["a"].incarnation == newer.membership.me.incarnation

    async def test_the_older_one_of_a_name_keeps_still_until_the_newer_is_gone(self, zookeeper: LocalZooKeeper) -> None:
        async with scene(zookeeper.hosts) as stage:
            older, newer = [await stage.join("a") for _ in range(2)]
            await stage.is_fair(newer)
            before = await stage.stats()
            await asyncio.sleep(1.0)
            assert await stage.stats() == before
            assert (older.membership.is_member, newer.membership.is_member) == (False, True)
            await newer.stop()
            await stage.is_fair(older)

    async def test_a_token_whose_transaction_got_no_answer_is_taken_again(self, zookeeper: LocalZooKeeper) -> None:
        async with scene(zookeeper.hosts) as stage:
            a = await stage.join("a")
            await stage.is_fair(a)
            del a.distributor.mine[7], a.holder.holds[7]
            b = await stage.join("b")
            await stage.is_fair(a, b)
            assert a.holder.holds.keys() | b.holder.holds.keys() == ALL


async def test_one_that_is_unwell_gives_all_away_and_takes_nothing_in_its_next_session(
    zookeeper: LocalZooKeeper,
) -> None:
    async with scene(zookeeper.hosts) as stage:
        a, b = [await stage.join(name) for name in "ab"]
        await stage.is_fair(a, b)
        await a.membership.set_unwell(True)
        await stage.is_fair(b)
        await until(lambda: a.holder.holds == {})
        older = a.zookeeper._client.client_id
        await expire(a.zookeeper)
        await until(lambda: a.zookeeper._client.client_id not in (None, older) and a.membership.is_member)
        await until(lambda: b.membership.members["a"].unwell)
        await stage.is_fair(b)
        await a.membership.set_unwell(False)
        await stage.is_fair(a, b)


async def test_who_has_lost_the_session_takes_no_part_until_it_has_its_share_again(zookeeper: LocalZooKeeper) -> None:
    settings = ReplicaSettings("a", "a:1", zookeeper.hosts, new_root(), session_timeout=2.0)
    sharing = ZooKeeperSharing(settings, Recorder(), Recorder())
    assert not sharing.takes_part
    await sharing.start()
    try:
        await sharing.matching.settled()
        await sharing.notifying.settled()
        assert sharing.takes_part
        seen: list[tuple[Session, bool]] = []
        sharing._zookeeper.on_state.append(lambda state: seen.append((state, sharing.takes_part)))
        await expire(sharing._zookeeper)
        await until(lambda: sharing.takes_part)
        assert seen == [(Session.SUSPENDED, True), (Session.LOST, False), (Session.CONNECTED, False)]
        assert len(sharing.matching.mine) == len(sharing.notifying.mine) == N_TOKENS
    finally:
        await sharing.stop()
