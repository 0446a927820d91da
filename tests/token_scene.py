"""Replicas without a server: a session, a membership and a distributor each, and a holder that writes down its calls.

async with scene(hosts) as stage:
    a, b = await stage.join("a"), await stage.join("b")
    await stage.is_fair()
    stage.check()             every token had one owner at a time, as far as its holders were told
"""

import asyncio
import json
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from server.cluster.distributor import Distributor
from server.cluster.membership import Membership
from server.cluster.rules import Party, is_fair
from server.cluster.sharing import Member
from server.cluster.zookeeper import ZooKeeper
from server.subscriptions import N_TOKENS
from tests.zookeeper import new_root

__all__ = ["Recorder", "Replica", "Stage", "scene"]

POLL = 0.03


class Recorder:
    """A holder that remembers. With something in `failures`, the next call of that name raises it."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Sequence[int] | Mapping[int, int]]] = []
        self.holds: dict[int, int] = {}
        self.failures: dict[str, Exception] = {}

    async def prepare(self, tokens: Sequence[int], is_urgent: bool = True) -> None:
        self._record("prepare", list(tokens))

    async def not_taken(self, tokens: Sequence[int]) -> None:
        self._record("not_taken", list(tokens))

    async def taken(self, generations: Mapping[int, int]) -> None:
        self._record("taken", dict(generations))
        self.holds.update(generations)

    async def lost(self, tokens: Sequence[int]) -> None:
        self._record("lost", list(tokens))
        for token in tokens:
            del self.holds[token]

    def _record(self, name: str, what: Sequence[int] | Mapping[int, int]) -> None:
        if name in self.failures:
            raise self.failures.pop(name)
        self.calls.append((name, what))

    def tokens(self, name: str) -> set[int]:
        """All that calls of this name were about."""
        return {token for called, what in self.calls if called == name for token in what}


@dataclass
class Replica:
    name: str
    zookeeper: ZooKeeper
    membership: Membership
    distributor: Distributor
    holder: Recorder = field(default_factory=Recorder)

    async def stop(self) -> None:
        await self.distributor.stop()
        await self.membership.stop()
        await self.zookeeper.stop()

    async def vanish(self) -> None:
        """Be gone for the others, without a word to the holder: the session ends, and this one does not come back."""
        await self.membership.stop()
        await self.zookeeper.stop()


class Stage:
    """Those who take part, and an observer with a session of its own."""

    def __init__(self, hosts: str, session_timeout: float, observer: ZooKeeper) -> None:
        self.root = new_root()
        self.observer = observer
        self.replicas: list[Replica] = []
        self._hosts = hosts
        self._session_timeout = session_timeout

    async def join(self, name: str, weight: float = 1.0, holder: Recorder | None = None) -> Replica:
        """Start a replica of this name; it takes its share from then on."""
        zookeeper = ZooKeeper(self._hosts, self._session_timeout)
        await zookeeper.start()
        membership = Membership(zookeeper, self.root, Member(name, f"{name}:1", weight, incarnation=uuid.uuid4().hex))
        holder = holder or Recorder()
        replica = Replica(name, zookeeper, membership, Distributor(membership, "matching", holder), holder)
        self.replicas.append(replica)
        await membership.start()
        await replica.distributor.start()
        return replica

    async def owners(self) -> list[tuple[str, int]]:
        """(owner, generation) of each token, as the ephemeral nodes have it; ("", 0) if nobody has it."""
        found = await asyncio.gather(
            *(self.observer.get(f"{self.root}/owners/{token:04}") for token in range(N_TOKENS))
        )
        facts = [json.loads(one[0]) if one else {"replica": "", "gen": 0} for one in found]
        return [(fact["replica"], fact["gen"]) for fact in facts]

    async def counts(self) -> Counter[str]:
        return Counter(owner for owner, _ in await self.owners())

    async def stats(self) -> dict[str, tuple[bytes, Any]]:
        """Data and stat of every node that is about tokens: equal if nothing was written, not even the same again."""
        paths = [f"{self.root}/{kind}/{token:04}" for kind in ("tokens", "owners") for token in range(N_TOKENS)]
        found = await asyncio.gather(*(self.observer.get(path) for path in paths))
        return {path: one for path, one in zip(paths, found, strict=True) if one is not None}

    async def is_fair(self, *present: Replica) -> None:
        """Return when exactly these share all tokens, and their holders know."""
        parties = [Party(one.name, one.membership.me.weight) for one in present]
        while True:
            owners = [owner for owner, _ in await self.owners()]
            told = sorted((token, one.name) for one in present for token in one.holder.holds)
            if is_fair(owners, parties) and told == list(enumerate(owners)):
                return
            await asyncio.sleep(POLL)

    def check(self) -> None:
        """No generation of a token was ever two holders', and each holder saw them grow."""
        seen: set[tuple[int, int]] = set()
        for replica in self.replicas:
            last: dict[int, int] = {}
            for name, what in replica.holder.calls:
                for token, generation in what.items() if name == "taken" and isinstance(what, Mapping) else ():
                    assert (token, generation) not in seen
                    assert generation > last.get(token, 0)
                    seen.add((token, generation))
                    last[token] = generation


@asynccontextmanager
async def scene(hosts: str, session_timeout: float = 2.0, seconds: float = 40.0) -> AsyncIterator[Stage]:
    """A stage of its own on this ZooKeeper, for so long."""
    async with asyncio.timeout(seconds):
        observer = ZooKeeper(hosts, session_timeout)
        await observer.start()
        stage = Stage(hosts, session_timeout, observer)
        try:
            yield stage
            stage.check()
        finally:
            await asyncio.gather(*(replica.stop() for replica in stage.replicas), observer.stop())
