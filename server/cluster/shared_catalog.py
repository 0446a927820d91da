"""The subscriptions of a cluster: any replica takes changes, the store has them, whoever owns the token follows.

    create, update: check ─▶ compile on trial ─▶ store ─▶ hint          delete: store ─▶ hint

What is acknowledged is in the store under a revision, and every document that comes later waits for that revision
(`server.cluster.following`), so nothing has to be said to the owner before the answer.
"""

import asyncio
import uuid
from collections.abc import Sequence
from dataclasses import replace

from server.catalog import Catalog, Changes, Created, Progress, changed, revision_of
from server.checks import SubscriptionLimits, check_subscription
from server.cluster.following import Following
from server.cluster.holdings import Holdings
from server.deliveries import Deliveries, DeliverySettings
from server.errors import EtagMismatch
from server.store import Store
from server.subscriptions import Filter, Subscription
from sievefilters import Extractors, Handle, Refused, StandingFilters
from xpathfilter import DocumentLimits

__all__ = ["SharedCatalog"]


class SharedCatalog(Catalog):
    """The same face as that of a server that stands alone."""

    def __init__(
        self,
        store: Store,
        deliveries: Deliveries,
        holdings: Holdings,
        following: Following,
        limits: SubscriptionLimits | None = None,
        delivery: DeliverySettings | None = None,
        extractors: Extractors | None = None,
        document_limits: DocumentLimits | None = None,
    ) -> None:
        super().__init__(store, deliveries, limits, delivery, extractors, document_limits)
        self.tenants = holdings.tenants
        self.filters_of = holdings.filters_of  # type: ignore[method-assign]
        self._following = following

    async def load(self, progress: Progress = lambda n_loaded, n_all: None) -> None:
        """Loading is for those who hold tokens."""
        await self.recount()

    async def recount(self) -> None:
        """How many subscriptions each tenant has, whoever took them."""
        counts = await self._table.counts()
        self._counts.clear()
        self._counts.update(counts)

    async def loads(self) -> tuple[list[int], list[int]]:
        """How many subscriptions each matching token stands for, and each notifying token."""
        return await self._table.loads()

    async def _create_many(self, tenant: str, subscriptions: Sequence[Subscription]) -> list[Created]:
        named = [replace(one, id=one.id or uuid.uuid4().hex, tenant=tenant) for one in subscriptions]
        outcomes: list[Created] = [self._checked(one) for one in named]
        good = [place for place, outcome in enumerate(outcomes) if isinstance(outcome, Subscription)]
        refusals = await asyncio.to_thread(self._try, [named[place].filter for place in good])
        kept = []
        for place, refusal in zip(good, refusals, strict=True):
            if refusal is None:
                kept.append(place)
            else:
                outcomes[place] = refusal
        if kept:
            stored = await self._store_within_limit([named[place] for place in kept])
            for place, outcome in zip(kept, stored, strict=True):
                outcomes[place] = outcome
            self._following.wake()
        return outcomes

    def _try(self, filters: Sequence[Filter]) -> list[Refused | None]:
        """In a thread: compile filters, to see whether they can be, in engines that are thrown away."""
        prepared = StandingFilters(self._extractors, self._document_limits).prepare_many(filters)
        return [None if isinstance(outcome, Handle) else outcome for outcome in prepared]

    async def _update(self, tenant: str, subscription_id: str, etag: str, changes: Changes) -> Subscription:
        while True:
            old = await self._table.get(tenant, subscription_id)
            new = changed(old, changes)
            check_subscription(new, self.limits, self._delivery)
            refusal = (await asyncio.to_thread(self._try, [new.filter]))[0]
            if refusal is not None:
                raise refusal
            try:
                stored = await self._table.update(new, revision_of(old, etag))
            except EtagMismatch:
                if etag:
                    raise
                continue  # another replica was quicker, and the caller does not mind which came first
            self._following.wake()
            return stored

    async def _delete(self, tenant: str, subscription_id: str, etag: str) -> None:
        old = await self._table.get(tenant, subscription_id)
        await self._table.delete(tenant, subscription_id, revision_of(old, etag) if etag else None)
        self._counts[tenant] -= 1
        self._following.wake()
