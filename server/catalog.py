"""The subscriptions: durable in the store, compiled in the engines of their tenant.

    create:  check ─▶ prepare in the engine ─▶ store ─▶ reveal          refused or not stored: discard
    update:  check ─▶ prepare the new filter ─▶ store ─▶ reveal it ─▶ discard the old one
    delete:                                     store ─▶ discard

What is revealed is durable, and what `create` has returned is revealed: every document that is accepted from then on
meets it. Changes of one subscription happen one after the other; a subscription itself is read from the store, and
the server keeps 8 bytes of it beside the engines.
"""

import asyncio
import logging
import uuid
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from server.checks import SubscriptionLimits, check_subscription
from server.deliveries import DeliverySettings
from server.errors import AlreadyExists, EtagMismatch, LimitExceeded, NotFound, ServerError, StoreUnavailable
from server.filter_places import FilterPlaces
from server.store import Store
from server.store.subscriptions import Columns, Page
from server.subscriptions import N_TOKENS, PREFIX, Filter, Subscription, Webhook, token_of
from sievefilters import Extractors, Handle, Refused, StandingFilters
from xpathfilter import DocumentLimits

__all__ = ["Catalog", "Changes", "Created", "Listener", "Progress", "changed", "revision_of"]

logger = logging.getLogger("pathsieve.catalog")

Progress = Callable[[int, int], None]
"""Called with how many subscriptions are loaded, and of how many."""
Changes = Mapping[str, Any]
"""New values of fields of a subscription: filter, labels, delivery, schedule, push."""
Created = Subscription | ServerError | Refused


class Listener(Protocol):
    """Who wants to know of changes: the deliveries."""

    def subscription_created(self, subscription: Subscription) -> None: ...
    def subscription_updated(self, subscription: Subscription) -> None: ...
    def subscription_deleted(self, subscription: Subscription) -> None: ...


class Catalog:
    """All subscriptions of all tenants. Methods belong to the event loop; compiling runs in threads."""

    def __init__(
        self,
        store: Store,
        listener: Listener,
        limits: SubscriptionLimits | None = None,
        delivery: DeliverySettings | None = None,
        extractors: Extractors | None = None,
        document_limits: DocumentLimits | None = None,
    ) -> None:
        self.limits = limits or SubscriptionLimits()
        self.tenants: dict[str, StandingFilters] = {}
        self.places = FilterPlaces()
        self._store = store
        self._table = store.subscriptions
        self._reconciling: set[asyncio.Task[None]] = set()
        self._listener = listener
        self._delivery = delivery or DeliverySettings()
        self._extractors = extractors
        self._document_limits = document_limits
        self._counts: Counter[str] = Counter()
        self._locks = [asyncio.Lock() for _ in range(N_TOKENS)]

    def filters_of(self, tenant: str) -> StandingFilters:
        """The engines of a tenant; a tenant that is new gets its own."""
        filters = self.tenants.get(tenant)
        if filters is None:
            filters = self.tenants[tenant] = StandingFilters(self._extractors, self._document_limits)
        return filters

    async def create(self, subscription: Subscription) -> Subscription:
        """Keep a subscription; an empty id is made up."""
        outcome = (await self.create_many(subscription.tenant, [subscription]))[0]
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    async def create_many(self, tenant: str, subscriptions: Sequence[Subscription]) -> list[Created]:
        """Keep many; a bad one does not stop the others."""
        # Whoever asked may go away; what is stored must be revealed all the same.
        return await asyncio.shield(self._create_many(tenant, subscriptions))

    async def _create_many(self, tenant: str, subscriptions: Sequence[Subscription]) -> list[Created]:
        named = [replace(one, id=one.id or uuid.uuid4().hex, tenant=tenant) for one in subscriptions]
        outcomes: list[Created] = [self._checked(one) for one in named]
        good = [position for position, outcome in enumerate(outcomes) if isinstance(outcome, Subscription)]
        filters = self.filters_of(tenant)
        prepared = await asyncio.to_thread(filters.prepare_many, [named[position].filter for position in good])
        kept: list[tuple[int, Handle]] = []
        for position, handle in zip(good, prepared, strict=True):
            if isinstance(handle, Handle):
                kept.append((position, handle))
            else:
                outcomes[position] = handle
        handles = [handle for _, handle in kept]
        stored = await self._store_and_reveal(filters, [named[position] for position, _ in kept], handles)
        for (position, _), outcome in zip(kept, stored, strict=True):
            outcomes[position] = outcome
        return outcomes

    def _checked(self, subscription: Subscription) -> Created:
        try:
            check_subscription(subscription, self.limits, self._delivery)
        except ServerError as error:
            return error
        return subscription

    async def _store_and_reveal(
        self, filters: StandingFilters, subscriptions: Sequence[Subscription], handles: Sequence[Handle]
    ) -> Sequence[Subscription | AlreadyExists]:
        """Make prepared subscriptions durable and reveal them; discard what could not be kept."""
        if not subscriptions:
            return []
        try:
            stored = await self._store_within_limit(subscriptions)
        except ServerError as error:
            filters.discard_many(handles)
            self._reconcile_if_unknown(error, subscriptions)
            raise
        for handle, outcome in zip(handles, stored, strict=True):
            if isinstance(outcome, Subscription):
                self.places.put(outcome.number, handle)
                filters.reveal(handle, outcome.number)
                self._listener.subscription_created(outcome)
            else:
                filters.discard(handle)
        return stored

    async def _store_within_limit(
        self, subscriptions: Sequence[Subscription]
    ) -> Sequence[Subscription | AlreadyExists]:
        tenant, most = subscriptions[0].tenant, self.limits.max_subscriptions_per_tenant
        wanted = self._counts[tenant] + len(subscriptions)
        if wanted > most:
            raise LimitExceeded("max_subscriptions_per_tenant", most, wanted, "delete some first")
        self._counts[tenant] = wanted
        n_stored = 0
        try:
            stored = await self._table.create(subscriptions)
            n_stored = sum(isinstance(outcome, Subscription) for outcome in stored)
        finally:
            self._counts[tenant] -= len(subscriptions) - n_stored
        return stored

    async def get(self, tenant: str, subscription_id: str) -> Subscription:
        return await self._table.get(tenant, subscription_id)

    async def get_many(self, tenant: str, subscription_ids: Sequence[str]) -> Sequence[Subscription]:
        """Those with these ids, in their order; `NotFound` of the first that is not there."""
        found = await self._table.by_ids(tenant, subscription_ids)
        missing = next((one for one in subscription_ids if one not in found), None)
        if missing is not None:
            raise NotFound(PREFIX + missing)
        return [found[subscription_id] for subscription_id in subscription_ids]

    async def page(self, tenant: str, after_id: str, limit: int) -> Page:
        """The next subscriptions after an id, in the order of their ids, and how many there are in all."""
        return await self._table.page(tenant, after_id, limit)

    async def update(self, tenant: str, subscription_id: str, etag: str, changes: Changes) -> Subscription:
        """Change some fields; `EtagMismatch` if `etag` is not empty and not the current one."""
        return await asyncio.shield(self._update(tenant, subscription_id, etag, changes))

    async def _update(self, tenant: str, subscription_id: str, etag: str, changes: Changes) -> Subscription:
        async with self._locks[token_of(tenant, subscription_id)]:
            old = await self._table.get(tenant, subscription_id)
            new = changed(old, changes)
            check_subscription(new, self.limits, self._delivery)
            filters = self.filters_of(tenant)
            handle = await asyncio.to_thread(filters.prepare, new.filter) if new.filter != old.filter else None
            try:
                stored = await self._table.update(new, revision_of(old, etag))
            except ServerError as error:
                if handle is not None:
                    filters.discard(handle)
                self._reconcile_if_unknown(error, [old])
                raise
            if handle is not None:
                self._swap(filters, handle, stored.number)
            self._listener.subscription_updated(stored)
            return stored

    def _swap(self, filters: StandingFilters, handle: Handle, number: int) -> None:
        """Reveal the new filter before the old one goes: no document falls between the two."""
        old = self.places.get(number)
        filters.reveal(handle, number)
        self.places.put(number, handle)
        if old is not None:
            filters.discard(old)

    async def delete(self, tenant: str, subscription_id: str, etag: str = "") -> None:
        """Forget a subscription, and all that waits for it."""
        await asyncio.shield(self._delete(tenant, subscription_id, etag))

    async def _delete(self, tenant: str, subscription_id: str, etag: str) -> None:
        async with self._locks[token_of(tenant, subscription_id)]:
            old = await self._table.get(tenant, subscription_id)
            try:
                await self._table.delete(tenant, subscription_id, revision_of(old, etag) if etag else None)
            except ServerError as error:
                self._reconcile_if_unknown(error, [old])
                raise
            self._forget(old)

    def _forget(self, subscription: Subscription) -> None:
        handle = self.places.take(subscription.number)
        if handle is not None:
            self._counts[subscription.tenant] -= 1
            self.filters_of(subscription.tenant).discard(handle)
            self._listener.subscription_deleted(subscription)

    def _reconcile_if_unknown(self, error: ServerError, subscriptions: Sequence[Subscription]) -> None:
        """The store may have taken a change after all: look when it answers again."""
        if isinstance(error, StoreUnavailable) and error.outcome_unknown:
            task = asyncio.create_task(self._reconcile(subscriptions))
            self._reconciling.add(task)
            task.add_done_callback(self._reconciling.discard)

    async def _reconcile(self, subscriptions: Sequence[Subscription]) -> None:
        await self._store.settled()
        for given in subscriptions:
            async with self._locks[given.token]:
                await self._follow(given)

    async def _follow(self, given: Subscription) -> None:
        """Bring the engines in line with what the store has."""
        try:
            stored = await self._table.get(given.tenant, given.id)
        except NotFound:
            self._forget(given)
            return
        filters = self.filters_of(stored.tenant)
        is_new = self.places.get(stored.number) is None
        self._swap(filters, await asyncio.to_thread(filters.prepare, stored.filter), stored.number)
        if is_new:
            self._counts[stored.tenant] += 1
            self._listener.subscription_created(stored)
        else:
            self._listener.subscription_updated(stored)

    async def load(self, progress: Progress = lambda n_loaded, n_all: None) -> None:
        """Compile all that is stored. One that this version cannot compile is kept, and never matches."""
        self._counts.update(await self._table.counts())
        n_loaded, n_all = 0, self._counts.total()
        progress(0, n_all)
        async for columns in self._table.scan():
            await asyncio.to_thread(self._load, columns)
            n_loaded += len(columns.numbers)
            progress(n_loaded, n_all)
        async for subscription in self._table.with_options():
            self._listener.subscription_created(subscription)

    def _load(self, columns: Columns) -> None:
        filters = [Filter(*one) for one in zip(columns.kinds, columns.expressions, columns.namespaces, strict=True)]
        places: dict[str, list[int]] = {}
        for place, tenant in enumerate(columns.tenants):
            places.setdefault(tenant, []).append(place)
        numbers = columns.numbers.tolist()
        for tenant, ours in places.items():
            self._load_tenant(tenant, [filters[place] for place in ours], [numbers[place] for place in ours])

    def _load_tenant(self, tenant: str, filters: Sequence[Filter], numbers: Sequence[int]) -> None:
        engines = self.filters_of(tenant)
        prepared = zip(engines.prepare_many(filters), numbers, strict=True)
        loaded: list[tuple[Handle, int]] = []
        for handle, number in prepared:
            if isinstance(handle, Handle):
                loaded.append((handle, number))
                self.places.put(number, handle)
            else:
                logger.error("subscription number %d cannot be compiled any more: %s", number, handle)
        engines.reveal_many([handle for handle, _ in loaded], [number for _, number in loaded])


def changed(old: Subscription, changes: Changes) -> Subscription:
    """The subscription with its changes. The secret of a webhook is never read back, so an empty one keeps it."""
    new = replace(old, **changes)
    if isinstance(new.push, Webhook) and isinstance(old.push, Webhook) and not new.push.secret:
        return replace(new, push=replace(new.push, secret=old.push.secret))
    return new


def revision_of(current: Subscription, etag: str) -> int:
    """The revision that an etag stands for; the one that was just read if there is none."""
    try:
        return int(etag, 16) if etag else current.revision
    except ValueError:
        raise EtagMismatch(current.name, etag, current.etag) from None
