"""What is observed of a broker is what happened to it."""

from pathlib import Path

import pytest

from server.assembly import BrokerSettings, open_broker
from server.cluster.observation import ClusterObservation
from server.documents import Document
from server.metrics import Observation
from server.observation import DeliveryCounts, Observer
from server.subscriptions import Filter, Subscription

NOW = 1000.0


def test_what_deliveries_count_is_added_up() -> None:
    counts = DeliveryCounts()
    counters = counts.counters()
    counters.delivered(3)
    counters.delivered(2)
    counters.push_failed(1)
    assert (counts.delivered, counts.push_failed, counts.redelivered) == (5, 1, 0)


async def test_before_there_is_a_broker_there_is_nothing_to_see() -> None:
    observer = Observer(DeliveryCounts(), lambda: 0)
    await observer.look_at_backlog()
    assert observer.observe() == Observation()


async def test_a_replica_is_seen_as_one_while_it_loads() -> None:
    observer = Observer(DeliveryCounts(), lambda: 0)
    observer.cluster = lambda: ClusterObservation("connected", peers=2)
    assert observer.observe() == Observation(cluster=ClusterObservation("connected", peers=2))


async def test_a_backlog_has_a_size_and_an_age(tmp_path: Path) -> None:
    now = NOW
    broker = await open_broker(BrokerSettings(str(tmp_path / "x.db")), clock=lambda: now)
    await broker.load()
    observer = Observer(DeliveryCounts(expired=4), lambda: 7, lambda: now)
    observer.broker = broker
    created = await broker.create(Subscription("default", "a", Filter("xpath", "//a")))
    await broker.publish("default", [Document("1", xml=b"<a/>")])
    now += 5
    await broker.publish("default", [Document("2", xml=b"<a/>"), Document("3", xml=b"<b/>")])
    now += 5
    await observer.look_at_backlog()
    seen = observer.observe()
    assert (seen.backlog_messages, seen.backlog_oldest_age) == (2, pytest.approx(10))
    assert (seen.documents["accepted"], seen.matches, seen.attached_streams) == (3, 2, 7)
    assert (seen.documents["unavailable"], seen.deadlines_missed, seen.expired) == (0, 4, 0)
    await broker.acknowledge("default", created.id, [1, 2])
    await observer.look_at_backlog()
    seen = observer.observe()
    assert (seen.backlog_messages, seen.backlog_oldest_age) == (0, 0)
    await broker.close()
