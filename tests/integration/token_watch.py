"""Who owns which token, as ZooKeeper and the store have it, seen by somebody who takes no part.

    ZooKeeper, a session of our own ── watches ──▶ ┐
    PostgreSQL: token_generations ── now and then ─▶┴─▶ chronicle: token, generation, owner, wherever that is new

A watch tells that something has changed, and then the newest is read; what came and went in between is not seen.
"""

import asyncio
import contextlib
import json
from collections.abc import Sequence
from functools import partial

import psycopg

from server.cluster.rules import Party, is_fair
from server.cluster.zookeeper import Session, ZooKeeper, ZooKeeperUnavailable
from server.subscriptions import N_TOKENS
from tests.integration.chronicle import Chronicle

__all__ = ["TokenWatch"]

FOLDERS = {"matching": "/pathsieve", "notifying": "/pathsieve/notifier"}
LOOK = 0.5
GENERATIONS = "SELECT kind, token, generation, replica FROM token_generations ORDER BY kind, token"
Key = tuple[str, int]


class TokenWatch:
    """Start it, cancel `run` in the end. It goes on whatever happens to ZooKeeper and the store."""

    def __init__(self, chronicle: Chronicle, hosts: str, store_url: str, session: float) -> None:
        self._chronicle = chronicle
        self._zookeeper = ZooKeeper(hosts, session)
        self._store_url = store_url
        # Equal watches are kept once (`server.cluster.zookeeper.Watch`), so each node has one callable for ever.
        self._changed = {
            (kind, token): partial(self._has_changed, (kind, token)) for kind in FOLDERS for token in range(N_TOKENS)
        }
        self._stale: set[Key] = set(self._changed)
        self._woken = asyncio.Event()
        self._owners: dict[Key, str] = {}
        self._seen: dict[tuple[str, Key], tuple[int, str]] = {}
        self._zookeeper.on_state.append(self._session)

    async def run(self) -> None:
        await self._zookeeper.start()
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._watch())
                tasks.create_task(self._look())
        finally:
            await self._zookeeper.stop()

    def is_connected(self) -> bool:
        return self._zookeeper.state is Session.CONNECTED

    async def refresh(self) -> None:
        """Read everything in ZooKeeper and in the store; return when that has been done."""
        await self._read(list(self._changed))
        async with await psycopg.AsyncConnection.connect(self._store_url, autocommit=True) as connection:
            await self._read_store(connection)

    async def is_fair(self, replicas: Sequence[str]) -> bool:
        """Whether these replicas, and no others, have all tokens in fair shares."""
        try:
            members = await self._zookeeper.children("/pathsieve/members")
            alive = {kind: await self._zookeeper.children(f"{folder}/owners") for kind, folder in FOLDERS.items()}
            await self._read(list(self._changed))
        except ZooKeeperUnavailable:
            return False
        owners = {kind: [self._owners[kind, token] for token in range(N_TOKENS)] for kind in FOLDERS}
        parties = [Party(name) for name in replicas]
        return sorted(members) == sorted(replicas) and all(
            len(alive[kind]) == N_TOKENS and is_fair(owners[kind], parties) for kind in FOLDERS
        )

    def _session(self, state: Session) -> None:
        if state is Session.CONNECTED:
            self._stale = set(self._changed)
        self._woken.set()

    def _has_changed(self, key: Key) -> None:
        self._stale.add(key)
        self._woken.set()

    async def _watch(self) -> None:
        while True:
            await self._woken.wait()
            self._woken.clear()
            stale, self._stale = self._stale, set()
            try:
                await self._read(sorted(stale))
            except ZooKeeperUnavailable:
                self._stale |= stale
                await asyncio.sleep(LOOK)
                self._woken.set()

    async def _read(self, keys: Sequence[Key]) -> None:
        await asyncio.gather(*(self._read_one(key) for key in keys))

    async def _read_one(self, key: Key) -> None:
        kind, token = key
        found = await self._zookeeper.get(f"{FOLDERS[kind]}/tokens/{token:04}", self._changed[key])
        if found is not None:
            facts = json.loads(found[0])
            self._owners[key] = facts["owner"]
            self._note("ZooKeeper", key, facts["gen"], facts["owner"])

    def _note(self, seen_in: str, key: Key, generation: int, owner: str) -> None:
        if self._seen.get((seen_in, key)) == (generation, owner):
            return
        self._seen[seen_in, key] = generation, owner
        kind, token = key
        self._chronicle.note("token", seen_in=seen_in, kind=kind, token=token, generation=generation, owner=owner)

    async def _look(self) -> None:
        """At what the store has: there an owner is written down before it delivers."""
        while True:
            with contextlib.suppress(psycopg.OperationalError):  # the store is away just now
                async with await psycopg.AsyncConnection.connect(self._store_url, autocommit=True) as connection:
                    while True:
                        await self._read_store(connection)
                        await asyncio.sleep(LOOK)
            await asyncio.sleep(LOOK)

    async def _read_store(self, connection: psycopg.AsyncConnection) -> None:
        for kind, token, generation, owner in await (await connection.execute(GENERATIONS)).fetchall():
            self._note("the store", (kind, token), generation, owner)
