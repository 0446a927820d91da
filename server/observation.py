"""What the parts of a running server say of themselves, gathered when somebody asks.

    deliveries count as they go ──▶ DeliveryCounts ─┐
    publishing, cursors, engines ───────────────────┤
    session, tokens, peers, if it is a replica ─────┴──▶ Observation ──▶ /metrics, /varz

The age of the oldest notification that waits is looked up in the log, now and then and not for each who asks.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from server.broker import Broker
from server.cluster.observation import ClusterObservation
from server.deliveries import Counters
from server.metrics import Observation

__all__ = ["DeliveryCounts", "Observer"]


@dataclass(slots=True)
class DeliveryCounts:
    """Since the server started."""

    delivered: int = 0
    redelivered: int = 0
    expired: int = 0
    dead_lettered: int = 0
    pushed: int = 0
    push_failed: int = 0

    def counters(self) -> Counters:
        """What the deliveries call."""
        return Counters(**{name: self._adder(name) for name in self.__slots__})

    def _adder(self, name: str) -> Callable[[int], None]:
        def add(amount: int) -> None:
            setattr(self, name, getattr(self, name) + amount)

        return add


class Observer:
    """Looks at a broker."""

    def __init__(
        self, counts: DeliveryCounts, n_streams: Callable[[], int], clock: Callable[[], float] = time.time
    ) -> None:
        self.broker: Broker | None = None
        self.cluster: Callable[[], ClusterObservation | None] = lambda: None
        self._n_streams = n_streams
        self._counts = counts
        self._clock = clock
        self._oldest = 0.0

    async def look_at_backlog(self) -> None:
        """Find out when the oldest notification that waits was published: of whom has come least far in the log."""
        behind = self._behind()
        self._oldest = 0.0
        if self.broker is None or not len(behind):
            return
        cursors = self.broker.cursors
        slowest = int(behind[cursors.positions(behind).argmin()])
        found = await self.broker.log.read(slowest, cursors.floor(slowest) + 1, 1, 1)
        self._oldest = found[0][1].publish_time if found else 0.0

    def _behind(self) -> np.ndarray:
        """The numbers of subscriptions that have something waiting."""
        if self.broker is None:
            return np.zeros(0, np.int64)
        heads, floors = self.broker.log.heads, self.broker.cursors.floors
        n_known = min(len(heads), len(floors))
        return np.flatnonzero(heads[:n_known] > floors[:n_known])

    def observe(self) -> Observation:
        """Everything, as of now."""
        if self.broker is None:
            return Observation(cluster=self.cluster())
        counts, published = self._counts, self.broker.publishing.counts
        return Observation(
            documents={
                "accepted": published.accepted,
                "refused": published.refused,
                "unavailable": published.unavailable,
            },
            matches=published.matches,
            duplicates=published.duplicates,
            delivered=counts.delivered,
            redelivered=counts.redelivered,
            dead_lettered=counts.dead_lettered,
            deadlines_missed=counts.expired,
            expired=self.broker.cursors.n_expired,
            pushes={"done": counts.pushed, "failed": counts.push_failed},
            subscriptions=self._subscriptions(),
            index_bytes=sum(engine["bytes"] for engines in self.engines().values() for engine in engines.values()),
            backlog_messages=self.broker.cursors.backlog(self._behind()),
            backlog_oldest_age=max(0.0, self._clock() - self._oldest) if self._oldest else 0.0,
            attached_streams=self._n_streams(),
            is_ready=True,
            cluster=self.cluster(),
        )

    def engines(self) -> dict[str, dict[str, Any]]:
        """What the engines of each tenant say of themselves."""
        tenants = self.broker.catalog.tenants if self.broker else {}
        return {tenant: filters.stats() for tenant, filters in list(tenants.items())}

    def _subscriptions(self) -> dict[str, int]:
        tenants = list(self.broker.catalog.tenants.values()) if self.broker else []
        return {
            "xpath": sum(len(filters.xpath) for filters in tenants),
            "boolean": sum(len(filters.boolean) for filters in tenants),
        }
