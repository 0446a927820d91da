"""The notifications that this replica delivers: those of its tokens. A subscription's token is `number % 256`.

    taken ──▶ claimed in the store: the old owner's writes are refused from now on
          ──▶ the log caught up, cursors read, pushes started ──▶ SERVING
    lost  ──▶ streams told, cursors flushed, gone

Whoever has token 0 keeps the log as well: closes its segments and drops what is too old.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from server.cluster.token_bits import no_tokens
from server.deliveries import Deliveries
from server.errors import Fenced, StoreUnavailable
from server.log.cursors import Cursors
from server.log.follower import LogFollower
from server.log.match_log import MatchLog
from server.store import Store
from server.store.generations import check
from server.store.jobs import Operation
from server.store.subscriptions import Changes
from server.subscriptions import N_TOKENS, Filter, Subscription

__all__ = ["NOTIFYING", "Notifying", "notifying_token"]

logger = logging.getLogger("pathsieve.cluster")

NOTIFYING: Final = "notifying"
KEEPERS_TOKEN = 0


def notifying_token(number: int) -> int:
    """Which token delivers a subscription."""
    return number % N_TOKENS


class Notifying:
    """Deliveries of the tokens of one replica. Belongs to the event loop."""

    def __init__(
        self,
        store: Store,
        replica: str,
        log: MatchLog,
        follower: LogFollower,
        cursors: Cursors,
        deliveries: Deliveries,
    ) -> None:
        self.serving = no_tokens()
        self.version = 0
        self._store = store
        self._replica = replica
        self._log = log
        self._follower = follower
        self._cursors = cursors
        self._deliveries = deliveries
        self._generations: dict[int, int] = {}
        self._changing = asyncio.Lock()
        cursors.fence = self._fence
        cursors.on_fenced = self._let_go
        log.closer.fence = self._fence([KEEPERS_TOKEN])
        log.closer.is_keeper = False

    @property
    def is_keeper(self) -> bool:
        return bool(self.serving[KEEPERS_TOKEN])

    def serves(self, number: int) -> bool:
        return bool(self.serving[notifying_token(number)])

    def _fence(self, tokens: Sequence[int]) -> Operation:
        """Refuse a write about tokens that somebody else has taken."""
        return lambda connection: check(
            connection, NOTIFYING, {token: self._generations.get(token, -1) for token in tokens}
        )

    # What the distributor calls

    async def prepare(self, tokens: Sequence[int], is_urgent: bool = True) -> None:
        """Nothing can be read before the old owner has stopped writing; but who has no store takes nothing."""
        await self._store.subscriptions.revision()

    async def not_taken(self, tokens: Sequence[int]) -> None:
        """Nothing was read, and nothing is to be undone."""

    async def taken(self, generations: Mapping[int, int]) -> None:
        """Take over, from where the old owner has written last."""
        async with self._changing:
            await self._store.generations.claim(NOTIFYING, generations, self._replica)
            self._generations.update(generations)
            tokens = sorted(generations)
            await self._follower.catch_up()
            await self._cursors.load(tokens)
            await self._cursors.skip_expired(self._follower.expired)
            await self._serve(tokens)
            self._keep_log()

    async def _serve(self, tokens: Sequence[int]) -> None:
        self.serving[tokens] = True
        self.version += 1
        self._deliveries.hand_over(_nothing)  # who follows a tenant asks again, and gets these as well
        try:
            pushed = await self._store.subscriptions.pushed(lambda number: notifying_token(number) in tokens)
        except BaseException:
            self._let_go(tokens)
            raise
        for subscription in pushed:
            if self.serves(subscription.number):
                self._deliveries.subscription_created(subscription)

    async def lost(self, tokens: Sequence[int]) -> None:
        """Let go: the new owner reads what was written last."""
        async with self._changing:
            self._let_go(tokens)
            try:
                await self._cursors.flush()
            except (Fenced, StoreUnavailable) as error:
                logger.info("the last acknowledgements of %d tokens are redeliveries: %s", len(tokens), error)
            self._cursors.unload(tokens)
            for token in tokens:
                self._generations.pop(token, None)
            self._keep_log()

    def _let_go(self, tokens: Sequence[int]) -> None:
        """Deliver nothing of them any more; whoever listens for some is told to ask again."""
        self.serving[list(tokens)] = False
        self.version += 1
        goes = no_tokens()
        goes[list(tokens)] = True
        self._deliveries.hand_over(lambda numbers: goes[numbers % N_TOKENS])

    def _keep_log(self) -> None:
        self._log.closer.is_keeper = self.is_keeper
        self._log.closer.wake()

    # What `Following` calls

    async def follow(self, changes: Changes) -> None:
        """Subscriptions were created, changed or deleted: those that are delivered here hear of it."""
        for subscription in changes.changed:
            if self.serves(subscription.number):
                if subscription.create_time == subscription.update_time:
                    self._deliveries.subscription_created(subscription)
                else:
                    self._deliveries.subscription_updated(subscription)
        for tombstone in changes.deleted:
            if self.serves(tombstone.number):
                gone = Subscription(tombstone.tenant, tombstone.id, NO_FILTER, number=tombstone.number)
                self._deliveries.subscription_deleted(gone)


NO_FILTER = Filter("xpath", "")


def _nothing(numbers: np.ndarray) -> np.ndarray:
    return np.zeros(len(numbers), np.bool_)
