"""Which subscriptions want some documents? Asked of all who own tokens, until every token has answered.

    documents ──▶ the newest revision ──▶ each owner: here, or over a link ──▶ numbers and tokens
                                               ▲                                  │
                                               └── who owns what is missing? ◀────┘ joined, once no token is missing

So a document meets every subscription whatever happens to their owners meanwhile: a token that a lost peer has not
answered for is asked of its new owner. If that takes longer than the deadline, the document is refused with the hint
to send it again, and nothing of it has been kept.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

import numpy as np

from pathsieve.v1.peer_service_pb2 import MatchAnswer, MatchBatch, MatchOutcome
from server.cluster.following import Following
from server.cluster.holdings import Holdings
from server.cluster.peer_link import PeerLink, PeerLost
from server.cluster.peers import Peers
from server.cluster.token_bits import from_bytes, no_tokens, to_bytes
from server.documents import Document
from server.errors import NoOwner, StoreUnavailable
from server.log.number_codes import unpack_ascending
from server.matching import Match
from server.rpc.translate import document_to
from server.store import Store
from sievefilters import Matched

__all__ = ["Owners", "SharedMatching"]

logger = logging.getLogger("pathsieve.cluster")

AGAIN_AFTER = 0.02

Result = TypeVar("Result")


class Owners(Protocol):
    """Who owns which token."""

    replica: str

    def by_replica(self, tokens: np.ndarray) -> dict[str, np.ndarray]:
        """The owners of some tokens, as a mask, with the mask of those that each has; without those nobody has."""

    def address_of(self, replica: str) -> str | None: ...


@dataclass
class _Gathering:
    """Documents, and what has been answered about them so far."""

    tenant: str
    documents: Sequence[Document]
    revision: int
    missing: np.ndarray = field(default_factory=lambda: ~no_tokens())
    numbers: list[list[np.ndarray]] = field(default_factory=list)
    failures: dict[int, BaseException] = field(default_factory=dict)
    curious: list[tuple[PeerLink, int, list[int]]] = field(default_factory=list)
    is_looked_at: bool = False

    def __post_init__(self) -> None:
        self.numbers = [[] for _ in self.documents]

    @property
    def is_complete(self) -> bool:
        return self.is_looked_at and not self.missing.any()

    def take(self, tokens: np.ndarray, found: Sequence[Matched | BaseException]) -> None:
        for place, numbers in enumerate(found):
            if isinstance(numbers, np.ndarray):
                self.numbers[place].append(numbers)
            else:
                self.failures.setdefault(place, numbers)
        self.missing &= ~tokens

    def take_answer(self, link: PeerLink, answer: MatchAnswer) -> None:
        for place in answer.refused:
            self.failures.setdefault(place, PeerLost(f"the peer at {link.address} cannot read a document"))
        self.take(from_bytes(answer.tokens), [unpack_ascending(code) for code in answer.numbers])
        if answer.wants_outcome:
            self.curious.append((link, answer.batch, list(answer.wants_outcome)))

    def match(self) -> Match:
        found = [self.failures.get(place) or _joined(arrays) for place, arrays in enumerate(self.numbers)]
        return Match(found, self._tell)

    def _tell(self, accepted: Sequence[int]) -> None:
        for link, batch, places in self.curious:
            link.tell(MatchOutcome(batch=batch, accepted=[place for place in places if place in set(accepted)]))


def _joined(arrays: Sequence[np.ndarray]) -> np.ndarray:
    filled = [array for array in arrays if len(array)]
    if len(filled) < 2:
        return filled[0] if filled else np.empty(0, np.int64)
    return np.unique(np.concatenate(filled))


class SharedMatching:
    """Asks this replica and its peers."""

    def __init__(
        self,
        store: Store,
        owners: Owners,
        holdings: Holdings,
        following: Following,
        peers: Peers,
        deadline: float,
    ) -> None:
        self.passing_cpu_seconds = 0.0
        self.n_passed = 0
        self._store = store
        self._owners = owners
        self._holdings = holdings
        self._following = following
        self._peers = peers
        self.deadline = deadline
        self._changed = asyncio.Event()

    def owners_changed(self) -> None:
        """Somebody else may own what is missing."""
        self._changed.set()

    async def match(self, tenant: str, documents: Sequence[Document]) -> Match:
        if not documents:
            return Match([])
        started = time.monotonic()
        gathering = None
        try:
            async with asyncio.timeout(self.deadline):
                gathering = _Gathering(tenant, documents, await self._store.subscriptions.revision())
                await self._gather(gathering)
        except StoreUnavailable as error:
            return Match([error] * len(documents))
        except TimeoutError:
            n_missing = int(gathering.missing.sum()) if gathering else 0
            logger.warning("%d documents found no owner of %d tokens", len(documents), n_missing)
            return Match([NoOwner(n_missing, time.monotonic() - started)] * len(documents))
        except Exception as error:  # whoever publishes next must find somebody who matches
            logger.exception("matching %d documents: this should not have happened", len(documents))
            return Match([error] * len(documents))
        return gathering.match()

    def close(self) -> None:
        self._holdings.close()

    async def _gather(self, gathering: _Gathering) -> None:
        """Ask until no token is missing. A replica is asked once at a time, and again after a pause."""
        asking: dict[str, asyncio.Task[None]] = {}
        asked: set[str] = set()
        try:
            while not gathering.is_complete:
                self._changed.clear()
                for replica, tokens in self._to_ask(gathering).items():
                    if replica not in asking:
                        pause = AGAIN_AFTER if replica in asked else 0.0
                        asking[replica] = asyncio.create_task(self._ask(replica, tokens, gathering, pause))
                        asked.add(replica)
                await self._wait(asking)
                for replica in [replica for replica, task in asking.items() if task.done()]:
                    asking.pop(replica).result()
        finally:
            for task in asking.values():
                task.cancel()

    def _to_ask(self, gathering: _Gathering) -> dict[str, np.ndarray]:
        """Who owns what is missing; this replica in any case, once, because it is the one to refuse a bad document."""
        owners = self._owners.by_replica(gathering.missing)
        if not gathering.is_looked_at:
            owners.setdefault(self._owners.replica, no_tokens())
        return owners

    async def _wait(self, asking: dict[str, "asyncio.Task[None]"]) -> None:
        """Until somebody has answered, or owners have changed."""
        changed = asyncio.create_task(self._changed.wait())
        try:
            await asyncio.wait([changed, *asking.values()], return_when=asyncio.FIRST_COMPLETED)
        finally:
            changed.cancel()

    async def _ask(self, replica: str, tokens: np.ndarray, gathering: _Gathering, pause: float) -> None:
        await asyncio.sleep(pause)
        if replica == self._owners.replica:
            await self._ask_here(gathering)
            return
        address = self._owners.address_of(replica)
        if address is None:
            await asyncio.sleep(AGAIN_AFTER)
            return
        link = self._peers.link(address)
        try:
            answer = await link.ask(self._measured(lambda: _batch(gathering, tokens)))
        except PeerLost:
            return
        self.n_passed += len(gathering.documents)
        self._measured(lambda: gathering.take_answer(link, answer))

    async def _ask_here(self, gathering: _Gathering) -> None:
        await self._following.reached(gathering.revision)
        loaded, match = await self._holdings.match(gathering.tenant, gathering.documents)
        gathering.is_looked_at = True
        gathering.take(loaded, match.found)

    def _measured(self, work: Callable[[], Result]) -> Result:
        started = time.thread_time()
        try:
            return work()
        finally:
            self.passing_cpu_seconds += time.thread_time() - started


def _batch(gathering: _Gathering, tokens: np.ndarray) -> MatchBatch:
    return MatchBatch(
        tenant=gathering.tenant,
        documents=[document_to(document) for document in gathering.documents],
        revision=gathering.revision,
        tokens=to_bytes(tokens),
    )
