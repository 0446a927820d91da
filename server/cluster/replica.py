"""One server of several: what it owns, whom it asks, and its way in and out of the cluster.

start ──▶ changes and log are followed ──▶ a session with ZooKeeper, a member ──▶ tokens are taken ──▶ settled
hand_over ──▶ draining: the others load and take its tokens ──▶ it owns nothing
stop ──▶ it has left

ZooKeeper ──▶ distributor "matching"  ──▶ holdings ◀── following ◀── hints, store
          └─▶ distributor "notifying" ──▶ notifying ──▶ deliveries, cursors ◀── log follower ◀── hints, store
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from server.cluster.answering import Answering
from server.cluster.following import Following
from server.cluster.holdings import Holdings
from server.cluster.matching import SharedMatching
from server.cluster.notifying import NOTIFYING, Notifying, notifying_token
from server.cluster.observation import ClusterObservation, SessionState, TokenKind
from server.cluster.peers import Peers
from server.cluster.shared_catalog import SharedCatalog
from server.cluster.sharing import Member, Ownership, Sharing
from server.deliveries import Deliveries
from server.errors import NotFound, ServerError, StoreUnavailable
from server.log.follower import LogFollower
from server.store import Store
from server.store.hints import LOG, Hints
from server.subscriptions import N_TOKENS

__all__ = ["Parts", "Replica"]

logger = logging.getLogger("pathsieve.cluster")

RECOUNT_SECONDS = 30.0
LOOK_SECONDS = 1.0
MATCHING: Final = "matching"


class OwnersOfTokens:
    """What `SharedMatching` and the broker want to know."""

    def __init__(self, replica: str, sharing: Sharing) -> None:
        self.replica = replica
        self._sharing = sharing

    def by_replica(self, tokens: np.ndarray) -> dict[str, np.ndarray]:
        """The owners of some matching tokens, as a mask, with the mask of those that each has."""
        found: dict[str, np.ndarray] = {}
        owners = self._sharing.matching.owners
        for token in np.flatnonzero(tokens).tolist():
            owner = owners[token].owner
            if owner:
                found.setdefault(owner, np.zeros(len(tokens), np.bool_))[token] = True
        return found

    def address_of(self, replica: str) -> str | None:
        member = self._sharing.members.get(replica)
        return member.address if member else None

    def deliverer(self, number: int) -> str:
        """Where a subscription is delivered; empty if nowhere just now."""
        owner = self._sharing.notifying.owners[notifying_token(number)].owner
        return self.address_of(owner) or "" if owner else ""

    def deliverers(self) -> list[str]:
        """Where anything is delivered; with "" if some of it is nowhere just now."""
        owners = {owned.owner for owned in self._sharing.notifying.owners}
        return sorted({self.address_of(owner) or "" if owner else "" for owner in owners})


class ReplicaPlacement:
    """Which replica delivers what, for the broker of this one."""

    def __init__(self, notifying: Notifying, owners: OwnersOfTokens) -> None:
        self._notifying = notifying
        self._owners = owners
        self.serves = notifying.serves
        self.addresses = owners.deliverers

    @property
    def version(self) -> int:
        return self._notifying.version

    def address_of(self, number: int) -> str:
        """Where it is delivered; nowhere while this replica has the token but not its cursors yet."""
        address = self._owners.deliverer(number)
        return "" if address == self._owners.address_of(self._owners.replica) else address


@dataclass(frozen=True)
class Parts:
    """What a replica is made of."""

    sharing: Sharing
    holdings: Holdings
    following: Following
    notifying: Notifying
    follower: LogFollower
    catalog: SharedCatalog
    deliveries: Deliveries
    matching: SharedMatching
    peers: Peers
    store: Store
    hints_url: str
    patience: float


class Replica:
    """A running replica. All methods belong to the event loop."""

    def __init__(self, name: str, parts: Parts) -> None:
        self.name = name
        self.parts = parts
        self._tasks: list[asyncio.Task[None]] = []
        self._watchers: list[Callable[[], None]] = []
        self._loads: dict[str, Sequence[int]] = {kind: [0] * N_TOKENS for kind in (MATCHING, NOTIFYING)}
        self._hints = Hints(parts.hints_url, self._hint)
        for tokens in (parts.sharing.matching, parts.sharing.notifying):
            tokens.on_change.append(self._changed)

    @property
    def members(self) -> Mapping[str, Member]:
        return self.parts.sharing.members

    @property
    def session(self) -> SessionState:
        """connected, suspended or lost."""
        return self.parts.sharing.session

    def takes_part(self) -> bool:
        """Whether it has its share, loaded, or had it when ZooKeeper was last there."""
        return self.parts.sharing.takes_part

    def ownerships(self) -> dict[str, Sequence[Ownership]]:
        return {MATCHING: self.parts.sharing.matching.owners, NOTIFYING: self.parts.sharing.notifying.owners}

    def loads(self) -> Mapping[str, Sequence[int]]:
        """How many subscriptions each token stands for, as last counted."""
        return self._loads

    def observe(self) -> ClusterObservation:
        """What the metrics tell."""
        sharing, peers = self.parts.sharing, {name: one for name, one in self.members.items() if name != self.name}
        lags = dict.fromkeys(peers, 0.0) | self.parts.peers.lags(peers)
        served = int(self.parts.notifying.serving.sum())
        owned: dict[TokenKind, int] = {MATCHING: len(sharing.matching.mine), NOTIFYING: served}
        return ClusterObservation(sharing.session, owned, len(peers), lags, self.parts.follower.lag)

    def variables(self) -> dict[str, Any]:
        """What `/varz` tells beside that."""
        engines, matching = self.parts.holdings.engines, self.parts.matching
        return {
            "replica": self.name,
            "revision": self.parts.following.applied,
            "loaded_tokens": int(self.parts.holdings.loaded.sum()),
            "keeps_log": self.parts.notifying.is_keeper,
            "match_cpu_seconds": engines.cpu_seconds,
            "matched_documents": engines.n_documents,
            "passing_cpu_seconds": matching.passing_cpu_seconds,
            "passed_documents": matching.n_passed,
        }

    def answering(self) -> Answering:
        """Who answers one stream of a peer."""
        return Answering(self.parts.holdings, self.parts.following, self.parts.deliveries)

    async def start(self) -> None:
        """Take part; return when this replica has its share, loaded."""
        parts = self.parts
        await parts.following.start()
        self._hints.start()
        followed = (parts.following.run(), parts.follower.run(), self._recount(), self._look_at_store())
        self._tasks = [asyncio.create_task(task) for task in followed]
        await parts.sharing.start()
        await parts.sharing.matching.settled()
        await parts.sharing.notifying.settled()

    async def set_draining(self, replica: str, draining: bool) -> None:
        """Have a replica hand over what it owns, or take its share again; an empty name is this one."""
        name = replica or self.name
        if name not in self.members:
            raise NotFound(f"replicas/{name}")
        await self.parts.sharing.set_draining(name, draining)

    async def hand_over(self, seconds: float) -> None:
        """Let the others take all that is ours, for at most so long."""
        sharing = self.parts.sharing
        try:
            await sharing.set_draining(self.name, True)
        except ServerError as error:
            logger.warning("what is ours cannot be handed over, others take it when we are gone: %s", error)
            return
        await asyncio.gather(sharing.matching.hand_over(seconds), sharing.notifying.hand_over(seconds))

    async def stop(self) -> None:
        """Leave, whatever is still ours."""
        await self.parts.sharing.stop()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._hints.is_started:
            await self._hints.stop()
        await self.parts.peers.close()

    @contextlib.contextmanager
    def watching(self, on_change: Callable[[], None]) -> Iterator[None]:
        """Have `on_change` called whenever members or owners change."""
        self._watchers.append(on_change)
        try:
            yield
        finally:
            self._watchers.remove(on_change)

    def _changed(self) -> None:
        self.parts.matching.owners_changed()
        self.parts.peers.keep(self.members)
        for watcher in self._watchers:
            watcher()

    def _hint(self, topic: str) -> None:
        if topic == LOG:
            self.parts.follower.wake()
        else:
            self.parts.following.wake()

    async def _look_at_store(self) -> None:
        """Say so when the store has been out of reach for long: nobody else would get past our tokens."""
        last_answer, is_unwell = time.monotonic(), False
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            try:
                async with asyncio.timeout(self.parts.patience):
                    await self.parts.store.subscriptions.revision()
                last_answer = time.monotonic()
            except (StoreUnavailable, TimeoutError) as error:
                logger.debug("the store does not answer: %r", error)
            was_unwell, is_unwell = is_unwell, time.monotonic() - last_answer > self.parts.patience
            if is_unwell != was_unwell:
                await self._say_unwell(is_unwell)

    async def _say_unwell(self, is_unwell: bool) -> None:
        logger.warning("the store %s", "is out of reach, others are to take over" if is_unwell else "answers again")
        while True:
            try:
                return await self.parts.sharing.set_unwell(is_unwell)
            except ServerError as error:
                logger.info("the others cannot be told just now: %s", error)
                await asyncio.sleep(LOOK_SECONDS)

    async def _recount(self) -> None:
        """Know, roughly, how many subscriptions each tenant and each token has: others take some too."""
        while True:
            try:
                await self.parts.catalog.recount()
                self._loads = dict(zip((MATCHING, NOTIFYING), await self.parts.catalog.loads(), strict=True))
            except StoreUnavailable as error:
                logger.warning("subscriptions could not be counted: %s", error)
            await asyncio.sleep(RECOUNT_SECONDS)
