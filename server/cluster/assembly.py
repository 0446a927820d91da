"""The parts of a replica, put together over one shared store: the same broker, with other parts inside.

store ─┬─ match log ── follower ── cursors ── deliveries ── notifying ─┐
       ├─ holdings ── following ── shared catalog ─────────────────────┼─ broker
       └─ shared matching ── peers, holdings ── publishing ────────────┘
"""

import time
from collections.abc import Callable, Sequence

from server.assembly import BrokerSettings, Observers
from server.broker import Broker
from server.cluster.following import Following
from server.cluster.holdings import Holdings
from server.cluster.matching import SharedMatching
from server.cluster.notifying import Notifying
from server.cluster.peers import Peers
from server.cluster.replica import OwnersOfTokens, Parts, Replica, ReplicaPlacement
from server.cluster.settings import ReplicaSettings
from server.cluster.shared_catalog import SharedCatalog
from server.cluster.sharing import Holder, Sharing
from server.deliveries import Deliveries
from server.ephemeral_filters import EphemeralFilters
from server.housekeeping import Housekeeping
from server.log.cursors import Cursors
from server.log.follower import LogFollower
from server.log.match_log import Entry, MatchLog
from server.publishing import Append, Publishing
from server.staging import Staging
from server.store import open_store
from server.store.jobs import Operation
from sievefilters import StandingFilters

__all__ = ["Share", "open_replica"]

Share = Callable[[Holder, Holder], Sharing]
"""Makes the sharing of tokens for who matches and for who notifies."""


async def open_replica(
    settings: BrokerSettings,
    replica: ReplicaSettings,
    share: Share,
    observers: Observers,
    on_load: Callable[[float], None] = lambda seconds: None,
    clock: Callable[[], float] = time.time,
) -> tuple[Broker, Replica]:
    """A broker over the shared store that owns nothing yet, and the replica that takes part for it."""
    store = await open_store(
        settings.store_url, shared=True, deadline=settings.store_deadline, on_commit=observers.on_commit
    )
    log = await MatchLog.open(store)
    cursors = await Cursors.open(store, log, tokens=())
    deliveries = Deliveries(
        log, cursors, store.dead_letters, settings.delivery, clock=clock, counters=observers.counters
    )
    log.on_append = deliveries.dispatch
    follower = LogFollower(store, log, deliveries.hears)
    follower.on_expire = cursors.skip_expired
    notifying = Notifying(store, replica.name, log, follower, cursors, deliveries)
    holdings = Holdings(
        store,
        settings.extractors,
        settings.document_limits,
        settings.matching_threads,
        observers.on_match,
        on_load,
    )
    following = Following(store, holdings, notifying.follow)
    catalog = SharedCatalog(
        store,
        deliveries,
        holdings,
        following,
        settings.subscription_limits,
        settings.delivery,
        settings.extractors,
        settings.document_limits,
    )
    sharing = share(holdings, notifying)
    owners = OwnersOfTokens(replica.name, sharing)
    peers = Peers(replica.credentials, replica.secret)
    matching = SharedMatching(store, owners, holdings, following, peers, replica.publish_deadline)
    publishing = Publishing(
        matching, _appending_once(log, follower), deliveries, store.settled, settings.publishing, clock
    )
    broker = Broker(
        store,
        catalog,
        log,
        cursors,
        deliveries,
        publishing,
        Staging(store, publishing, StandingFilters(settings.extractors, settings.document_limits)),
        EphemeralFilters(catalog, deliveries),
        Housekeeping(store, log, settings.retention, clock, lambda: notifying.is_keeper),
        ReplicaPlacement(notifying, owners),
    )
    broker.reading.catch_up = follower.catch_up
    parts = Parts(
        sharing,
        holdings,
        following,
        notifying,
        follower,
        catalog,
        deliveries,
        matching,
        peers,
        store,
        settings.store_url,
        replica.session_timeout,
    )
    return broker, Replica(replica.name, parts)


def _appending_once(log: MatchLog, follower: LogFollower) -> Append:
    """For one of several: the store knows what others have taken."""

    async def append(
        entries: Sequence[Entry], keys: Sequence[bytes | None], also: Sequence[Operation]
    ) -> Sequence[bool]:
        positions = await log.append_once(entries, keys, also)
        follower.wake()
        return [position > 0 for position in positions]

    return append
