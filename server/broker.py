"""The core: what may be asked of the server, without a word of gRPC.

    create, import, update, delete, test ──▶ catalog ──▶ store, engines
    publish ─────────────────────────────▶ publishing ──▶ match log ──▶ deliveries
    stage, commit, abort ─▶ staging ──────────┘
    attach, pull, acknowledge, seek ─────▶ deliveries
    read, ranges ────────────────────────▶ reading ──▶ match log

Every call names its tenant, and sees nothing of any other. One of several replicas delivers only some subscriptions;
for the others its `placement` tells which replica does.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np

from server.catalog import Catalog, Changes, Created, Progress
from server.checks import check_filter
from server.deliveries import (
    Attachment,
    AttachMode,
    Credit,
    DeadLetter,
    Deliveries,
    EphemeralAttachment,
    GoodbyeReason,
    PulledMessage,
)
from server.documents import AttributeValue, Document
from server.ephemeral_filters import EphemeralFilters
from server.errors import DeliveredElsewhere, WrongReplica
from server.housekeeping import Housekeeping
from server.log.cursors import Cursors
from server.log.match_log import MatchLog
from server.publishing import Outcome, Published, Publishing
from server.reading import ALL, Mark, NotificationPage, Range, Reading
from server.staging import Batch, Committed, Part, Staging
from server.store import Store
from server.store.subscriptions import Page
from server.subscriptions import Filter, Subscription

__all__ = ["Broker", "Outcome", "Page", "Placement", "Published", "Standing", "Tested"]

NO_CREDIT = Credit(0, 0)
PAGE_SIZE = 10_000


@dataclass(frozen=True, slots=True)
class Tested:
    """Whether a filter would want a document, why, and the attributes it saw."""

    matches: bool
    explanation: str
    attributes: Mapping[str, AttributeValue]


@dataclass(frozen=True, slots=True)
class Standing:
    """How far the delivery of a subscription has come."""

    head: int
    floor: int
    backlog: int
    is_attached: bool


class Placement(Protocol):
    """Which replica delivers what."""

    @property
    def version(self) -> int:
        """Changes whenever something begins or ceases to be delivered here."""

    def serves(self, number: int) -> bool:
        """Is it delivered here?"""

    def address_of(self, number: int) -> str:
        """Where it is delivered; empty if nowhere just now."""

    def addresses(self) -> Sequence[str]:
        """All who deliver something."""


class Broker:
    """The parts of a running server. All methods belong to the event loop."""

    def __init__(
        self,
        store: Store,
        catalog: Catalog,
        log: MatchLog,
        cursors: Cursors,
        deliveries: Deliveries,
        publishing: Publishing,
        staging: Staging,
        ephemeral: EphemeralFilters,
        housekeeping: Housekeeping,
        placement: Placement | None = None,
    ) -> None:
        self.store = store
        self.catalog = catalog
        self.log = log
        self.cursors = cursors
        self.deliveries = deliveries
        self.publishing = publishing
        self.staging = staging
        self.ephemeral = ephemeral
        self.housekeeping = housekeeping
        self.placement = placement
        self.reading = Reading(store, catalog, log)
        self._tidying: asyncio.Task[None] | None = None

    async def load(self, progress: Progress = lambda n_loaded, n_all: None) -> None:
        """Compile all that is stored, and begin to publish."""
        await self.catalog.load(progress)
        await self.publishing.remember(self.store.published)
        self.publishing.start()
        self._tidying = asyncio.create_task(self.housekeeping.run())

    async def drain(self) -> None:
        """Finish what was taken, say goodbye to streams, and take no more."""
        await self.publishing.drain()
        await self.deliveries.drain()

    async def close(self) -> None:
        """Stop, with everything durable."""
        if self._tidying is not None:
            self._tidying.cancel()
            await asyncio.gather(self._tidying, return_exceptions=True)
        await self.publishing.close()
        await self.deliveries.close()
        await self.cursors.close()
        await self.log.close()
        await self.store.close()

    async def create(self, subscription: Subscription) -> Subscription:
        return await self.catalog.create(subscription)

    async def import_many(self, tenant: str, subscriptions: Sequence[Subscription]) -> Sequence[Created]:
        return await self.catalog.create_many(tenant, subscriptions)

    async def get(self, tenant: str, subscription_id: str) -> Subscription:
        return await self.catalog.get(tenant, subscription_id)

    async def list(self, tenant: str, after_id: str = "", limit: int = 100) -> Page:
        return await self.catalog.page(tenant, after_id, limit)

    async def update(self, tenant: str, subscription_id: str, etag: str, changes: Changes) -> Subscription:
        return await self.catalog.update(tenant, subscription_id, etag, changes)

    async def delete(self, tenant: str, subscription_id: str, etag: str = "") -> None:
        await self.catalog.delete(tenant, subscription_id, etag)

    async def standing(self, subscription: Subscription) -> Standing:
        """How far delivery of a subscription has come; if another replica delivers it, by what that has written."""
        if self.placement is not None and not self.placement.serves(subscription.number):
            head, floor = self.log.head(subscription.number), await self.cursors.stored_floor(subscription.number)
            return Standing(head, floor, max(head - floor, 0), is_attached=False)
        number = np.array([subscription.number])
        head, backlog = self.log.head(subscription.number), self.cursors.backlog(number)
        return Standing(
            head, self.cursors.floor(subscription.number), backlog, self.deliveries.is_attached(subscription)
        )

    async def test_filter(self, tenant: str, filter: Filter | str, document: Document) -> Tested:
        """Try a filter, or that of the subscription with this id. Nothing is stored or delivered."""
        if isinstance(filter, str):
            filter = (await self.get(tenant, filter)).filter
        check_filter(filter, self.catalog.limits)
        filters = self.catalog.filters_of(tenant)
        matches, explanation = await asyncio.to_thread(filters.test, filter, document)
        return Tested(matches, explanation, await asyncio.to_thread(filters.attributes, document))

    async def publish(self, tenant: str, documents: Sequence[Document]) -> Sequence[Outcome]:
        """What becomes of each document, in order: accepted and durable, or why not."""
        return await self.publishing.publish(tenant, documents)

    async def stage(
        self, tenant: str, query: str, batch: int, part: Part, documents: Sequence[Document], first_place: int = 0
    ) -> Sequence[tuple[int, Exception]]:
        """Keep documents of a part of a batch; those that are refused, and why."""
        return await self.staging.stage(Batch(tenant, query, batch), part, documents, first_place)

    async def commit(
        self, tenant: str, query: str, batch: int, parts: Sequence[Part], sizes: Sequence[int | None] = ()
    ) -> Committed:
        """Publish the winning parts of a batch, once."""
        return await self.staging.commit(Batch(tenant, query, batch), parts, sizes)

    async def abort(self, tenant: str, query: str, batch: int) -> None:
        await self.staging.abort(Batch(tenant, query, batch))

    async def attach(
        self,
        tenant: str,
        subscription_ids: Sequence[str],
        mode: AttachMode = AttachMode.EXCLUSIVE,
        consumer: str = "",
        credit: Credit = NO_CREDIT,
        heartbeat: float = 0.0,
        here_only: bool = False,
    ) -> Attachment:
        """A stream for these subscriptions; "-" stands for all of the tenant, those that are created later too.

        `DeliveredElsewhere` if other replicas deliver some of them; `here_only` asks for all that this one delivers.
        """
        if "-" in subscription_ids:
            return await self._attach_all(tenant, mode, consumer, credit, heartbeat, here_only)
        subscriptions = await self.catalog.get_many(tenant, subscription_ids)
        self._must_all_be_here(subscriptions)
        return await self.deliveries.attach(tenant, subscriptions, mode, consumer, credit, heartbeat=heartbeat)

    async def _attach_all(
        self, tenant: str, mode: AttachMode, consumer: str, credit: Credit, heartbeat: float, here_only: bool
    ) -> Attachment:
        if self.placement is None:
            everything = partial(self._all, tenant)
            return await self.deliveries.attach_all(tenant, everything, mode, consumer, credit, heartbeat)
        if not here_only:
            raise DeliveredElsewhere({address: ["subscriptions/-"] for address in self.placement.addresses()})
        version, everything = self.placement.version, partial(self._all_here, tenant, self.placement)
        attachment = await self.deliveries.attach_all(tenant, everything, mode, consumer, credit, heartbeat)
        if self.placement.version != version:  # while they were being listed: the list is not right any more
            attachment.goodbye(GoodbyeReason.MOVED)
        return attachment

    async def _all(self, tenant: str) -> Sequence[Subscription]:
        pages = [(await self.list(tenant, limit=PAGE_SIZE)).subscriptions]
        while pages[-1]:
            pages.append((await self.list(tenant, pages[-1][-1].id, PAGE_SIZE)).subscriptions)
        return [subscription for page in pages for subscription in page]

    async def _all_here(self, tenant: str, placement: Placement) -> Sequence[Subscription]:
        return [subscription for subscription in await self._all(tenant) if placement.serves(subscription.number)]

    def _must_all_be_here(self, subscriptions: Sequence[Subscription]) -> None:
        placement = self.placement
        if placement is None or all(placement.serves(subscription.number) for subscription in subscriptions):
            return
        names: dict[str, list[str]] = {}
        for subscription in subscriptions:
            names.setdefault(placement.address_of(subscription.number), []).append(subscription.name)
        raise DeliveredElsewhere(names)

    async def _here(self, tenant: str, subscription_id: str) -> Subscription:
        """A subscription that is delivered here; `WrongReplica` if it is not."""
        subscription = await self.get(tenant, subscription_id)
        if self.placement is not None and not self.placement.serves(subscription.number):
            raise WrongReplica(subscription.name, self.placement.address_of(subscription.number))
        return subscription

    async def attach_ephemeral(
        self, tenant: str, filters: Sequence[Filter], credit: Credit = NO_CREDIT, heartbeat: float = 0.0
    ) -> EphemeralAttachment:
        """A stream for filters that live as long as it does. One that is refused refuses the stream."""
        return await self.ephemeral.attach(tenant, filters, credit, heartbeat)

    async def detach(self, attachment: Attachment | EphemeralAttachment) -> None:
        """A stream has ended: what it holds is delivered again, and filters of its own are gone."""
        if isinstance(attachment, EphemeralAttachment):
            await self.ephemeral.detach(attachment)
        else:
            await attachment.close()

    async def pull(
        self, tenant: str, subscription_id: str, max_messages: int, wait: float = 0.0
    ) -> Sequence[PulledMessage]:
        return await self.deliveries.pull(await self._here(tenant, subscription_id), max_messages, wait)

    async def acknowledge(self, tenant: str, subscription_id: str, sequences: Sequence[int]) -> None:
        await self.deliveries.acknowledge(await self._here(tenant, subscription_id), sequences)

    async def acknowledge_through(
        self, tenant: str, marks: Sequence[Mark], here_only: bool = False
    ) -> Mapping[str, Sequence[str]]:
        """All up to some points is done; the names that other replicas deliver, by their addresses, are not."""
        is_all, placement = [mark.subscription_id for mark in marks] == [ALL], self.placement
        if placement is not None and is_all and not here_only:
            return {address: [f"subscriptions/{ALL}"] for address in placement.addresses()}
        numbers, sequences = await self.reading.meant(tenant, marks)
        here = np.array([placement is None or placement.serves(number) for number in numbers.tolist()], np.bool_)
        names: dict[str, list[str]] = {}
        if placement is not None and not is_all:
            for place in np.flatnonzero(~here).tolist():
                address = placement.address_of(int(numbers[place]))
                names.setdefault(address, []).append(f"subscriptions/{marks[place].subscription_id}")
        await self.deliveries.acknowledge_through(numbers[here], sequences[here])
        return names

    async def ranges(self, tenant: str, subscription_ids: Sequence[str]) -> Sequence[Range]:
        """What there is to read of some subscriptions, in their order."""
        return await self.reading.ranges(tenant, subscription_ids)

    async def tenant_range(self, tenant: str, after: int, max_documents: int) -> Range:
        """What there is to read of all of a tenant."""
        return await self.reading.tenant_range(tenant, after, max_documents)

    async def read(
        self, tenant: str, subscription_id: str, after: int, through: int, max_messages: int = 0, max_bytes: int = 0
    ) -> NotificationPage:
        """A page of what is in the log, taken from nobody."""
        return await self.reading.read(tenant, subscription_id, after, through, max_messages, max_bytes)

    async def modify_ack_deadline(
        self, tenant: str, subscription_id: str, sequences: Sequence[int], seconds: float
    ) -> None:
        await self.deliveries.modify_ack_deadline(await self._here(tenant, subscription_id), sequences, seconds)

    async def seek(
        self, tenant: str, subscription_id: str, *, time: float | None = None, sequence: int | None = None
    ) -> int:
        """Deliver again from an earlier point, or go on at a later one; the next sequence."""
        return await self.deliveries.seek(await self._here(tenant, subscription_id), time=time, sequence=sequence)

    async def dead_letters(
        self, tenant: str, subscription_id: str, after_sequence: int, limit: int
    ) -> Sequence[DeadLetter]:
        return await self.deliveries.dead_letters(await self.get(tenant, subscription_id), after_sequence, limit)

    async def count_dead_letters(self, subscription: Subscription) -> int:
        return await self.store.dead_letters.count(subscription.number)
