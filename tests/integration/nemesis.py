"""What befalls a cluster, from one seed: it strikes, waits for something to be seen, and heals; sometimes two at once.

    replica      killed, paused, stopped, drained, killed while it starts
    ZooKeeper    one killed or paused, the leader killed or paused
    link         cut, or stalled in one direction or both: replica to replica, client to replica, replica to ZooKeeper
                 (one, or all), replica to PostgreSQL

    strike ──▶ until so many documents were accepted, or sent, or a token moved, or its patience ends ──▶ heal

Healing waits for nothing that another fault may hold up: what was killed is started, and no more.

Then comes a calm: all that was broken is whole, all has arrived, the shares are fair; and from then on nothing moves
while documents flow. And an outage: all of ZooKeeper is away while documents flow, and comes back.
"""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from pathsieve import AsyncClient
from pathsieve.errors import PathSieveError
from server.dev_cluster import Replica
from server.errors import CannotStart
from server.local_zookeeper import LocalZooKeeper
from server.subscriptions import N_TOKENS
from tests.integration.chronicle import Chronicle
from tests.integration.crowd import Crowd
from tests.integration.link import Link
from tests.integration.token_watch import TokenWatch
from tests.integration.wired_cluster import CLIENT, WiredCluster

__all__ = ["Nemesis"]

Fault = Callable[[], AbstractAsyncContextManager[None]]
LOOK = 0.1
LONGEST = 15.0
PATIENCE = 180.0
ATTEMPTS = 3
IN_A_CALM, IN_AN_OUTAGE = 60, 60


class Nemesis:
    """`session` is how long sessions with ZooKeeper last."""

    def __init__(
        self,
        wired: WiredCluster,
        crowd: Crowd,
        watch: TokenWatch,
        chronicle: Chronicle,
        chance: random.Random,
        session: float,
    ) -> None:
        self._wired = wired
        self._cluster = wired.cluster
        self._crowd = crowd
        self._watch = watch
        self._chronicle = chronicle
        self._chance = chance
        self._session = session
        self._hit: set[str] = set()

    async def rage(self, n_faults: int) -> None:
        """Strike so often, with all kinds of faults in turn, in an order that chance gives."""
        kinds: list[Fault] = []
        for _ in range(n_faults):
            if not kinds:
                kinds = [self._replica_fault, self._replica_fault, self._zookeeper_fault, self._link_fault] * 2
                self._chance.shuffle(kinds)
            async with kinds.pop()():
                if kinds and self._chance.random() < 0.3:
                    async with kinds.pop()():
                        await self._something()
                else:
                    await self._something()

    async def _something(self) -> None:
        """Wait for a state, and for less if it does not come."""
        what, n = self._chance.choice([("accepted", 60), ("publish begun", 60), ("moves", 1), ("delivered", 100)])
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._chance.uniform(1, LONGEST)):
                await self._chronicle.more(what, self._chance.randrange(n) + 1)

    @asynccontextmanager
    async def _striking(self, what: str, whom: str) -> AsyncIterator[None]:
        with self._chronicle.during("fault", fault=what, whom=whom):
            self._chronicle.judge.counts[what] += 1
            yield

    # -- replicas ----------------------------------------------------------------------------------

    @asynccontextmanager
    async def _replica_fault(self) -> AsyncIterator[None]:
        free = [replica for replica in self._cluster.replicas if replica.name not in self._hit]
        replica = self._chance.choice(free)
        fault = self._chance.choice(
            [
                self._killed,
                self._killed,
                self._killed_starting,
                self._paused,
                self._paused,
                self._stopped,
                self._drained,
            ]
        )
        self._hit.add(replica.name)
        if not replica.is_running:  # it gave up, because something that it needs was cut off
            await replica.start(wait=False)
        try:
            async with self._striking(f"replica {fault.__name__.strip('_')}", replica.name), fault(replica):
                yield
        finally:
            self._hit.discard(replica.name)

    @asynccontextmanager
    async def _killed(self, replica: Replica) -> AsyncIterator[None]:
        await replica.kill()
        yield
        await replica.start(wait=False)

    @asynccontextmanager
    async def _killed_starting(self, replica: Replica) -> AsyncIterator[None]:
        """It comes back under its name while its old session lasts, and goes again."""
        await replica.kill()
        await replica.start(wait=False)
        await asyncio.sleep(self._chance.uniform(0, 6))
        await replica.kill()
        yield
        await replica.start(wait=False)

    @asynccontextmanager
    async def _paused(self, replica: Replica) -> AsyncIterator[None]:
        replica.pause()
        yield
        replica.resume()

    @asynccontextmanager
    async def _stopped(self, replica: Replica) -> AsyncIterator[None]:
        """It hands over and ends. What else is broken may hold it up."""
        replica.terminate()
        yield
        await replica.ended()
        await replica.start(wait=False)

    @asynccontextmanager
    async def _drained(self, replica: Replica) -> AsyncIterator[None]:
        await self._drain(replica)
        yield
        await self._drain(replica, undo=True)

    async def _drain(self, replica: Replica, undo: bool = False) -> bool:
        """Whether it could be told, and the others by it."""
        async with AsyncClient(replica.address, timeout=5.0, patience=0) as operator:
            try:
                await operator.drain(undo=undo)
            except PathSieveError:
                return False
        return True

    # -- ZooKeeper ---------------------------------------------------------------------------------

    @asynccontextmanager
    async def _zookeeper_fault(self) -> AsyncIterator[None]:
        free = [one for one in self._cluster.zookeepers if one.hosts not in self._hit]
        modes = {await asyncio.to_thread(one.mode): one for one in free}
        victim = modes.get(self._chance.choice(["leader", "follower"])) or self._chance.choice(free)
        fault = self._chance.choice([self._crashed, self._hung])
        self._hit.add(victim.hosts)
        try:
            async with self._striking(f"ZooKeeper {fault.__name__.strip('_')}", victim.hosts), fault(victim):
                yield
        finally:
            self._hit.discard(victim.hosts)

    @asynccontextmanager
    async def _crashed(self, zookeeper: LocalZooKeeper) -> AsyncIterator[None]:
        zookeeper.kill()
        yield
        await asyncio.to_thread(zookeeper.launch)

    @asynccontextmanager
    async def _hung(self, zookeeper: LocalZooKeeper) -> AsyncIterator[None]:
        zookeeper.pause()
        yield
        zookeeper.resume()

    async def _start_zookeepers(self) -> None:
        """All of them; one that gave up, because the others were away for too long, is started again."""
        assert self._cluster.zookeeper is not None
        for attempt in range(ATTEMPTS):
            try:
                await asyncio.to_thread(self._cluster.zookeeper.start)
            except CannotStart:
                if attempt == ATTEMPTS - 1:
                    raise
            else:
                return

    # -- links -------------------------------------------------------------------------------------

    @asynccontextmanager
    async def _link_fault(self) -> AsyncIterator[None]:
        replica, peer = self._chance.sample(self._cluster.replicas, 2)
        name = replica.name
        title, links, who = self._chance.choice(
            [
                ("replica to replica", [self._wired.entrances[name]], peer.name),
                ("client to replica", [self._wired.entrances[name]], CLIENT),
                ("all to replica", [self._wired.entrances[name]], ""),
                ("replica to PostgreSQL", [self._wired.stores[name]], ""),
                ("replica to ZooKeeper", self._wired.zookeepers[name], ""),
                ("replica to one ZooKeeper", [self._chance.choice(self._wired.zookeepers[name])], ""),
            ]
        )
        way = self._chance.choice(list(WAYS))
        async with self._striking(f"link {way}: {title}", name):
            for link in links:
                WAYS[way](link, who)
            yield
            for link in links:
                link.heal()

    # -- calm --------------------------------------------------------------------------------------

    async def calm(self) -> None:
        """Everything is whole and settled; from then on nothing moves, while documents flow."""
        await self._made_whole()
        async with self._crowd.holding_still():
            await self._at_rest()
            with contextlib.suppress(TimeoutError):  # the judge says what is missing
                async with asyncio.timeout(PATIENCE):
                    await self._chronicle.until(lambda: not self._chronicle.judge.n_owed)
            self._chronicle.note("settled")
            await self._watch.refresh()
        with self._chronicle.during("calm"):
            await self._chronicle.more("accepted", IN_A_CALM)
            await self._watch.refresh()

    async def outage(self) -> None:
        """ZooKeeper is away for longer than a session lasts, and comes back. A calm comes before."""
        assert self._cluster.zookeeper is not None
        await self._watch.refresh()
        with self._chronicle.during("outage"):
            self._cluster.zookeeper.kill()
            await self._chronicle.more("accepted", IN_AN_OUTAGE)
            await asyncio.sleep(self._session)
            await self._chronicle.more("accepted", IN_AN_OUTAGE)
            await self._start_zookeepers()
            await self._at_rest()

    async def _made_whole(self) -> None:
        """Have everybody run and serve, and nobody drained."""
        await self._start_zookeepers()
        for replica in self._cluster.replicas:
            async with asyncio.timeout(PATIENCE):
                while not (await _is_ready(replica) and await self._drain(replica, undo=True)):
                    await asyncio.sleep(LOOK)

    async def _at_rest(self) -> None:
        """Wait until all replicas have fair shares, in ZooKeeper's words and in their own, and nothing else loaded."""
        names = [replica.name for replica in self._cluster.replicas]
        async with asyncio.timeout(PATIENCE):
            while not (
                self._watch.is_connected()
                and await self._watch.is_fair(names)
                and set((await self._wired.owned()).values()) == {N_TOKENS}
                and await self._wired.loaded() == N_TOKENS
                and await self._are_connected()
            ):
                await asyncio.sleep(LOOK)

    async def _are_connected(self) -> bool:
        sessions = []
        for replica in self._cluster.replicas:
            async with AsyncClient(replica.address) as client:
                sessions.append((await client.cluster()).session)
        return set(sessions) == {"connected"}


async def _is_ready(replica: Replica) -> bool:
    """Whether it serves; one that gave up is started again."""
    try:
        await replica.ready()
    except CannotStart:
        await replica.start(wait=False)
        return False
    if not replica.is_running:
        await replica.start(wait=False)
        return False
    return True


WAYS: dict[str, Callable[[Link, str], None]] = {
    "cut": lambda link, who: link.cut(who),
    "stalled": lambda link, who: link.stall(who),
    "stalled one way": lambda link, who: link.stall(who, back=False),
    "stalled the other way": lambda link, who: link.stall(who, there=False),
}
