"""What Prometheus is told: counters, gauges and times, in base units, under names that stay.

    the parts count as they go, in plain integers ──▶ an Observation, when somebody asks ──▶ /metrics

So counting costs the hot path an addition. There is no label with an endless number of values: no subscription, no
tenant, no document. The series of a cluster are there only where the server is one of its replicas.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from server.cluster.observation import MOVES, SESSION_STATES, ClusterObservation, MoveReason, TokenKind

__all__ = ["CONTENT_TYPE_LATEST", "Metrics", "Observation", "TimeHistogram"]

BOUNDS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Seconds: from a small document among few subscriptions to a store that stalls."""


Values = float | Mapping[Any, float]


class TimeHistogram:
    """How often something took how long.

    >>> times = TimeHistogram()
    >>> times.observe(0.0003, 64)
    >>> times.n, dict(times.buckets())["0.0005"]
    (64, 64)
    """

    def __init__(self) -> None:
        self._counts = [0] * (len(BOUNDS) + 1)
        self.seconds = 0.0
        self.n = 0

    def observe(self, seconds: float, times: int = 1) -> None:
        """Each of so many took so long."""
        self._counts[bisect_left(BOUNDS, seconds)] += times
        self.seconds += seconds * times
        self.n += times

    def buckets(self) -> Iterator[tuple[str, int]]:
        """How many took at most so long, for each bound."""
        return zip((*(str(bound) for bound in BOUNDS), "+Inf"), accumulate(self._counts), strict=True)


@dataclass(frozen=True, slots=True)
class Observation:
    """What the parts of the server have counted, at one moment."""

    documents: Mapping[str, int] = field(default_factory=dict)
    matches: int = 0
    duplicates: int = 0
    delivered: int = 0
    redelivered: int = 0
    dead_lettered: int = 0
    deadlines_missed: int = 0
    expired: int = 0
    pushes: Mapping[str, int] = field(default_factory=dict)
    subscriptions: Mapping[str, int] = field(default_factory=dict)
    index_bytes: int = 0
    backlog_messages: int = 0
    backlog_oldest_age: float = 0.0
    attached_streams: int = 0
    is_ready: bool = False
    cluster: ClusterObservation | None = None


class Metrics:
    """The server's own registry. `observe` is called whenever somebody asks."""

    def __init__(self, version: str) -> None:
        self.match_seconds = TimeHistogram()
        self.store_commit_seconds = TimeHistogram()
        self.token_load_seconds = TimeHistogram()
        self.token_moves: dict[tuple[TokenKind, MoveReason], int] = dict.fromkeys(MOVES, 0)
        self.observe: Callable[[], Observation] = Observation
        self._version = version
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(_Collector(self._collect))
        ProcessCollector(registry=self._registry)  # memory, processor time, files: empty where there is no /proc

    def text(self) -> bytes:
        """The answer to /metrics."""
        return generate_latest(self._registry)

    def _collect(self) -> Iterator[Metric]:
        seen = self.observe()
        yield _counter("documents", "Documents that came in.", seen.documents, "outcome")
        yield _counter("matches", "Matches of documents with subscriptions.", seen.matches)
        yield _counter("duplicates_dropped", "Documents that had been published before.", seen.duplicates)
        yield _counter("delivered", "Messages sent to consumers.", seen.delivered)
        yield _counter("redelivered", "Messages sent to consumers again.", seen.redelivered)
        yield _counter("dead_lettered", "Messages given up.", seen.dead_lettered)
        yield _counter("ack_deadlines_missed", "Messages not acknowledged in time.", seen.deadlines_missed)
        yield _counter("expired", "Notifications past retention before anybody had them.", seen.expired)
        yield _counter("pushes", "Webhooks called and mails sent.", seen.pushes, "outcome")
        yield _gauge("subscriptions", "Subscriptions that are loaded.", seen.subscriptions, "kind")
        yield _gauge("index_bytes", "Memory of the engines' indexes.", seen.index_bytes)
        yield _gauge("backlog_messages", "Notifications that are not acknowledged yet.", seen.backlog_messages)
        yield _gauge("backlog_oldest_age_seconds", "Age of the oldest of them.", seen.backlog_oldest_age)
        yield _gauge("attached_streams", "Streams that are open for delivery.", seen.attached_streams)
        yield _gauge("ready", "1 if the server is ready to serve.", int(seen.is_ready))
        yield _histogram("match_seconds", "Time to match a document.", self.match_seconds)
        yield _histogram("store_commit_seconds", "Time to make a group durable.", self.store_commit_seconds)
        yield _gauge("build_info", "Which version this is.", {self._version: 1}, "version")
        if seen.cluster is not None:
            yield from self._collect_cluster(seen.cluster)

    def _collect_cluster(self, seen: ClusterObservation) -> Iterator[Metric]:
        states = {state: int(state == seen.session) for state in SESSION_STATES}
        yield _gauge("cluster_tokens_owned", "Tokens that this replica has.", seen.tokens_owned, "kind")
        yield _counter("cluster_token_moves", "Tokens that came or went.", self.token_moves, "kind", "reason")
        yield _histogram("cluster_token_load_seconds", "Time to load a token's subscriptions.", self.token_load_seconds)
        yield _gauge("cluster_session", "1 for the state of the session with ZooKeeper.", states, "state")
        yield _gauge("cluster_peers", "Other replicas that are there.", seen.peers)
        yield _gauge("cluster_peer_lag_seconds", "Age of the oldest batch it has not answered.", seen.peer_lags, "peer")
        yield _gauge("cluster_log_lag_records", "Records of the shared log not read yet.", seen.log_lag_records)


class _Collector(Collector):
    def __init__(self, collect: Callable[[], Iterator[Metric]]) -> None:
        self._collect = collect

    def collect(self) -> Iterable[Metric]:
        return self._collect()


def _counter(name: str, help: str, value: Values, *labels: str) -> Metric:
    return _filled(CounterMetricFamily(f"pathsieve_{name}", help, labels=labels), value)


def _gauge(name: str, help: str, value: Values, *labels: str) -> Metric:
    return _filled(GaugeMetricFamily(f"pathsieve_{name}", help, labels=labels), value)


def _filled(family: CounterMetricFamily | GaugeMetricFamily, value: Values) -> Metric:
    """With one number, or one for each value of its label, or for each tuple of values of its labels."""
    for labels, one in value.items() if isinstance(value, Mapping) else [((), value)]:
        family.add_metric((labels,) if isinstance(labels, str) else labels, one)
    return family


def _histogram(name: str, help: str, times: TimeHistogram) -> Metric:
    family = HistogramMetricFamily(f"pathsieve_{name}", help)
    family.add_metric([], list(times.buckets()), times.seconds)
    return family
