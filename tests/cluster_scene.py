"""Several replicas in one event loop, over one PostgreSQL, with tokens that the test moves by hand.

    async with cluster(postgres_url, "a", "b") as scene:
        await scene.share()                       the tokens are dealt out, in turn
        await scene.give("matching", [7], "b")    prepared by b, lost by its owner, taken by b
        await scene["a"].broker.publish("default", [document])

Everything but ZooKeeper is real: the store, hints, gRPC between the peers.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import grpc

from pathsieve.v1.peer_service_pb2_grpc import add_PeerServiceServicer_to_server
from server.assembly import BrokerSettings, Observers
from server.broker import Broker
from server.cluster.assembly import open_replica
from server.cluster.observation import SessionState
from server.cluster.replica import Replica
from server.cluster.settings import ReplicaSettings, peer_credentials
from server.cluster.sharing import Holder, Member, Ownership
from server.rpc.listener import server_credentials
from server.rpc.peer_servicer import PeerServicer
from server.settings import Security
from server.subscriptions import N_TOKENS

__all__ = ["Scene", "cluster"]

SECRET = "between us"


class HandTokens:
    """One set of tokens as all replicas see it at once."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.owners = [Ownership(token) for token in range(N_TOKENS)]
        self.holders: dict[str, Holder] = {}
        self.on_change: list[Callable[[], None]] = []

    async def give(self, tokens: Sequence[int], to: str) -> None:
        """Have one replica take tokens from whoever has them."""
        await self.holders[to].prepare(tokens)
        before = {token: self.owners[token].owner for token in tokens}
        for token in tokens:
            self.owners[token] = Ownership(token, to, self.owners[token].generation + 1)
        for owner in set(before.values()) - {"", to}:
            if owner in self.holders:
                await self.holders[owner].lost([token for token in tokens if before[token] == owner])
        await self.holders[to].taken({token: self.owners[token].generation for token in tokens})
        self.changed()

    def changed(self) -> None:
        for listener in self.on_change:
            listener()


@dataclass
class View:
    """`HandTokens` as one replica has it."""

    tokens: HandTokens
    replica: str

    @property
    def owners(self) -> Sequence[Ownership]:
        return self.tokens.owners

    @property
    def on_change(self) -> list[Callable[[], None]]:
        return self.tokens.on_change

    @property
    def mine(self) -> Mapping[int, int]:
        return {one.token: one.generation for one in self.owners if one.owner == self.replica}

    async def settled(self) -> None: ...

    async def hand_over(self, timeout: float) -> None: ...


@dataclass
class HandSharing:
    matching: View
    notifying: View
    members: dict[str, Member]
    session: SessionState = "connected"
    takes_part: bool = True

    async def start(self) -> None: ...

    async def set_draining(self, replica: str, draining: bool) -> None: ...

    async def set_unwell(self, unwell: bool) -> None: ...

    async def stop(self) -> None: ...


@dataclass
class Running:
    """One replica."""

    broker: Broker
    replica: Replica
    server: grpc.aio.Server


@dataclass
class Scene:
    url: str
    tokens: dict[str, HandTokens] = field(
        default_factory=lambda: {kind: HandTokens(kind) for kind in ("matching", "notifying")}
    )
    members: dict[str, Member] = field(default_factory=dict)
    replicas: dict[str, Running] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Broker:
        return self.replicas[name].broker

    async def start(self, name: str, security: Security | None = None, **settings: float) -> None:
        server = grpc.aio.server()
        encrypted = server_credentials(security) if security else None
        here = "127.0.0.1:0"
        port = server.add_secure_port(here, encrypted) if encrypted else server.add_insecure_port(here)
        address = f"127.0.0.1:{port}"
        self.members[name] = Member(name, address)

        def share(matching: Holder, notifying: Holder) -> HandSharing:
            self.tokens["matching"].holders[name] = matching
            self.tokens["notifying"].holders[name] = notifying
            views = (View(self.tokens[kind], name) for kind in ("matching", "notifying"))
            return HandSharing(*views, self.members)

        peers = peer_credentials(security) if security else None
        told = ReplicaSettings(name, address, "", secret=SECRET, credentials=peers, **settings)  # type: ignore[arg-type]
        broker, replica = await open_replica(BrokerSettings(self.url), told, share, Observers())
        add_PeerServiceServicer_to_server(PeerServicer(replica.answering, SECRET), server)
        await server.start()
        await broker.load()
        await replica.start()
        self.replicas[name] = Running(broker, replica, server)

    async def stop(self, name: str) -> None:
        """It is gone, and others have yet to take what it had."""
        running = self.replicas.pop(name)
        for tokens in self.tokens.values():
            tokens.holders.pop(name)
        self.members.pop(name)
        await running.replica.stop()
        await running.server.stop(0)
        await running.broker.close()

    async def give(self, kind: str, tokens: Sequence[int], to: str) -> None:
        await self.tokens[kind].give(tokens, to)

    async def share(self) -> None:
        """Deal all tokens of both kinds out, in turn."""
        names = sorted(self.replicas)
        for kind in self.tokens:
            for place, name in enumerate(names):
                await self.give(kind, range(place, N_TOKENS, len(names)), name)


@asynccontextmanager
async def cluster(url: str, *names: str, **settings: float) -> AsyncIterator[Scene]:
    scene = Scene(url)
    try:
        for name in names:
            await scene.start(name, **settings)
        yield scene
    finally:
        for name in list(scene.replicas):
            await scene.stop(name)
