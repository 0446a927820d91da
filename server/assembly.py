"""The parts of a server, put together over one store.

    store ─┬─ match log ── cursors ─┐
           ├─ dead letters ─────────┼─ deliveries ─┐
           └─ catalog ──────────────┴─ publishing ─┴─ broker

`open_broker` leaves the engines empty: `Broker.load` fills them, while health is already answered.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from server.broker import Broker
from server.catalog import Catalog
from server.checks import SubscriptionLimits
from server.deliveries import Counters, Deliveries, DeliverySettings
from server.ephemeral_filters import EphemeralFilters
from server.housekeeping import Housekeeping, RetentionSettings
from server.log.cursors import Cursors
from server.log.match_log import MatchLog, Record
from server.matching import EngineMatching
from server.publishing import Publishing, PublishingSettings, appending_to
from server.staging import Staging
from server.store import Commit, open_store
from sievefilters import Extractors, StandingFilters
from xpathfilter import DocumentLimits

__all__ = ["BrokerSettings", "Observers", "open_broker"]


@dataclass(frozen=True, slots=True)
class BrokerSettings:
    """What the core can be told."""

    store_url: str
    store_deadline: float = 30.0
    publishing: PublishingSettings = field(default_factory=PublishingSettings)
    matching_threads: int = 2
    delivery: DeliverySettings = field(default_factory=DeliverySettings)
    subscription_limits: SubscriptionLimits = field(default_factory=SubscriptionLimits)
    document_limits: DocumentLimits = field(default_factory=DocumentLimits)
    retention: RetentionSettings = field(default_factory=RetentionSettings)
    extractors: Extractors = field(default_factory=lambda: Extractors({}))


@dataclass(frozen=True, slots=True)
class Observers:
    """Who is told of times and counts, at the edges."""

    on_match: Callable[[float, int], None] = lambda seconds, n_documents: None
    on_commit: Callable[[Commit], None] = lambda commit: None
    counters: Counters = field(default_factory=Counters)


async def open_broker(
    settings: BrokerSettings, observers: Observers | None = None, clock: Callable[[], float] = time.time
) -> Broker:
    """A broker over the store, with everything but the subscriptions' filters."""
    observers = observers or Observers()
    store = await open_store(settings.store_url, deadline=settings.store_deadline, on_commit=observers.on_commit)
    log = await MatchLog.open(store)
    cursors = await Cursors.open(store, log)
    deliveries = Deliveries(
        log, cursors, store.dead_letters, settings.delivery, clock=clock, counters=observers.counters
    )
    catalog = Catalog(
        store,
        deliveries,
        settings.subscription_limits,
        settings.delivery,
        settings.extractors,
        settings.document_limits,
    )
    matching = EngineMatching(catalog.filters_of, settings.matching_threads, observers.on_match)
    publishing = Publishing(matching, appending_to(log), deliveries, store.settled, settings.publishing, clock)

    def appended(records: Sequence[Record]) -> None:
        publishing.landed(records)
        deliveries.dispatch(records)

    log.on_append = appended
    staging = Staging(store, publishing, StandingFilters(settings.extractors, settings.document_limits))
    ephemeral = EphemeralFilters(catalog, deliveries)
    housekeeping = Housekeeping(store, log, settings.retention, clock)
    return Broker(store, catalog, log, cursors, deliveries, publishing, staging, ephemeral, housekeeping)
