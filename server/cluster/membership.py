"""Who takes part: one ephemeral node a replica, and the constants that all of them must share.

    /config               {tokens, hash, format}, written by the first, never changed
    /members/<replica>    {address, weight, draining, unwell, incarnation}

    absent ── a session ──▶ present ── draining is set, by itself or by an operator ──▶ draining
      ▲                        │
      └── the session is lost ─┘      and with the next session it is present again

A replica that comes back before its old session has expired finds a node of its own name: the newer one takes over.
The older one, should it still run, waits until the name is free again; until then it takes no part. One that cannot
reach the store says so, and wants no tokens until it can.
"""

import asyncio
import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from typing import Any

from server.cluster.sharing import Member
from server.cluster.zookeeper import Session, ZooKeeper, ZooKeeperUnavailable
from server.errors import CannotStart
from server.subscriptions import N_TOKENS

__all__ = ["Membership"]

logger = logging.getLogger("pathsieve.cluster")

CONFIG = {"tokens": N_TOKENS, "hash": "blake2b-16", "format": 1}
PAUSE = 0.2


class Membership:
    """The members, as last read. `on_change` is called on the loop when they have changed."""

    def __init__(self, zookeeper: ZooKeeper, root: str, me: Member) -> None:
        self.zookeeper = zookeeper
        self.root = root
        self.me = me
        self.members: Mapping[str, Member] = {}
        self.on_change: list[Callable[[], None]] = []
        self._path = f"{root}/members/{me.replica}"
        self._woken = asyncio.Event()
        self._is_registered = False
        self._task: asyncio.Task[None] | None = None

    @property
    def is_member(self) -> bool:
        """Whether the member of our name is this very replica, and no older or newer start of it."""
        member = self.members.get(self.me.replica)
        return member is not None and member.incarnation == self.me.incarnation

    async def start(self) -> None:
        """Check that all replicas mean the same by a token, and become a member."""
        await self._agree()
        self.zookeeper.on_state.append(self._session)
        await self._take_over()
        await self._read()
        self._task = asyncio.create_task(self._follow())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def set_draining(self, replica: str, draining: bool) -> None:
        """Have a member want no tokens, or want its share again."""
        path = f"{self.root}/members/{replica}"
        while found := await self.zookeeper.get(path):
            member = replace(_member(replica, found[0]), draining=draining)
            if await self.zookeeper.set(path, _to_json(member), found[1].version):
                return

    async def set_unwell(self, unwell: bool) -> None:
        """Want no tokens while this is so, whatever becomes of the session."""
        self.me = replace(self.me, unwell=unwell)
        while found := await self.zookeeper.get(self._path):
            member = _member(self.me.replica, found[0])
            is_ours = member.incarnation == self.me.incarnation
            if not is_ours or await self.zookeeper.set(
                self._path, _to_json(replace(member, unwell=unwell)), found[1].version
            ):
                return

    async def _agree(self) -> None:
        path = f"{self.root}/config"
        await self.zookeeper.ensure(f"{self.root}/members")
        await self.zookeeper.ensure(path, json.dumps(CONFIG).encode())
        found = await self.zookeeper.get(path)
        theirs = json.loads(found[0]) if found else None
        if theirs != CONFIG:
            raise CannotStart(
                f"the cluster at {self.zookeeper.hosts}{self.root} was made with {theirs}, and this version has "
                f"{CONFIG}: choose another cluster.root, or the version that made it"
            )

    def _session(self, state: Session) -> None:
        if state is Session.LOST:
            self._is_registered = False
            self.members = {name: member for name, member in self.members.items() if name != self.me.replica}
        self._woken.set()

    async def _take_over(self) -> None:
        """Become a member, whoever has the name: at the start this replica is the newest of it."""
        while not await self._register():
            logger.warning("an older %s is still a member; this one takes over", self.me.replica)
            await self.zookeeper.delete(self._path)

    async def _register(self) -> bool:
        """Become a member, if nobody else has the name."""
        self._is_registered = await self.zookeeper.create(self._path, _to_json(self.me))
        if not self._is_registered and (found := await self.zookeeper.get(self._path)):
            self._is_registered = _member(self.me.replica, found[0]).incarnation == self.me.incarnation
        return self._is_registered

    async def _follow(self) -> None:
        while True:
            await self._woken.wait()
            self._woken.clear()
            if self.zookeeper.state is not Session.CONNECTED:
                continue
            try:
                if not self._is_registered:
                    await self._register()
                await self._read()
            except ZooKeeperUnavailable as error:
                logger.info("members cannot be read just now: %s", error)
                await asyncio.sleep(PAUSE)
                self._woken.set()

    async def _read(self) -> None:
        names = await self.zookeeper.children(f"{self.root}/members", self._woken.set)
        paths = [f"{self.root}/members/{name}" for name in names]
        found = await asyncio.gather(*(self.zookeeper.get(path, self._woken.set) for path in paths))
        members = {name: _member(name, one[0]) for name, one in zip(names, found, strict=True) if one is not None}
        if members != self.members:
            self.members = members
            for listener in self.on_change:
                listener()
        self._check()

    def _check(self) -> None:
        """See whether the node is still ours."""
        if self._is_registered and not self.is_member:
            self._is_registered = False
            if self.me.replica in self.members:
                logger.error("a newer %s has taken over; this one takes no part until it goes", self.me.replica)
            else:
                self._woken.set()  # an older session of ours took the node along


def _to_json(member: Member) -> bytes:
    facts = asdict(member)
    del facts["replica"]
    return json.dumps(facts).encode()


def _member(name: str, data: bytes) -> Member:
    facts: dict[str, Any] = json.loads(data)
    return Member(name, **facts)
