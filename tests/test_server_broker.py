"""The broker over a real store: subscribe, publish, attach; and what is left after it was closed and opened again."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from boolmatch import BooleanSyntaxError
from server.assembly import BrokerSettings, open_broker
from server.broker import Broker
from server.checks import SubscriptionLimits
from server.deliveries import Attachment, Credit, Heartbeat, Message, Messages, SlotsJoined
from server.documents import Document
from server.errors import AlreadyExists, EtagMismatch, InvalidRequest, LimitExceeded, NotFound
from server.publishing import Published
from server.staging import Part
from server.subscriptions import DeliveryPolicy, Email, Filter, Schedule, Subscription, Webhook
from xpathfilter import XPathSyntaxError

PLENTY = Credit(1000, 1 << 20)


@asynccontextmanager
async def opened(folder: Path, **settings: object) -> AsyncIterator[Broker]:
    broker = await open_broker(BrokerSettings(str(folder / "pathsieve.db"), **settings))  # type: ignore[arg-type]
    await broker.load()
    yield broker
    await broker.drain()
    await broker.close()


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[Broker]:
    async with opened(tmp_path) as made:
        yield made


def wish(subscription_id: str, expression: str = "//quote", kind: str = "xpath", tenant: str = "desk") -> Subscription:
    return Subscription(tenant, subscription_id, Filter(kind, expression))


def quote(document_id: str) -> Document:
    return Document(document_id, xml=b"<quote/>")


async def messages(attachment: Attachment, n_messages: int) -> list[Message]:
    """The next so many messages of a stream."""
    got: list[Message] = []
    async with asyncio.timeout(10):
        while len(got) < n_messages:
            event = await attachment.next()
            assert isinstance(event, Messages | SlotsJoined | Heartbeat), event
            got += event.messages if isinstance(event, Messages) else []
    return got


async def test_a_document_reaches_the_subscription_that_wants_it(broker: Broker) -> None:
    await broker.create(wish("quotes"))
    await broker.create(wish("cheap", "price < 5 AND XPATH '//quote'", "boolean"))
    await broker.create(wish("halted", "//halted"))
    attachment = await broker.attach("desk", ["quotes", "cheap", "halted"], credit=PLENTY)
    assert await broker.publish("desk", [replace(quote("1"), attributes={"price": 3})]) == [Published("1", 2)]
    (message,) = await messages(attachment, 1)
    names = dict(attachment.slots)
    assert message.document.id == "1"
    assert [names[slot] for slot in message.slots.tolist()] == ["subscriptions/quotes", "subscriptions/cheap"]
    assert message.sequences.tolist() == [1, 1]
    await broker.detach(attachment)


async def test_what_was_accepted_is_delivered_after_a_restart(tmp_path: Path) -> None:
    async with opened(tmp_path) as broker:
        await broker.create(wish("quotes"))
        await broker.publish("desk", [quote(str(n)) for n in range(5)])
        attachment = await broker.attach("desk", ["quotes"], credit=PLENTY)
        got = await messages(attachment, 5)
        attachment.ack([message.message_id for message in got[:2]])
        await broker.detach(attachment)
    async with opened(tmp_path) as broker:
        assert await broker.publish("desk", [quote("4")]) == [Published("4", duplicate=True)]
        await broker.publish("desk", [quote("5")])
        attachment = await broker.attach("desk", ["quotes"], credit=PLENTY)
        got = await messages(attachment, 4)
        assert [(message.document.id, message.sequences.tolist()) for message in got] == [
            ("2", [3]),
            ("3", [4]),
            ("4", [5]),
            ("5", [6]),
        ]
        await broker.detach(attachment)


async def test_a_filter_that_changes_misses_no_document(broker: Broker) -> None:
    made = await broker.create(wish("quotes"))
    await broker.publish("desk", [quote("1")])
    updated = await broker.update("desk", "quotes", made.etag, {"filter": Filter("boolean", "price > 5")})
    assert updated.etag != made.etag
    outcomes = await broker.publish("desk", [quote("2"), Document("3", attributes={"price": 6})])
    assert outcomes == [Published("2", 0), Published("3", 1)]
    assert (await broker.get("desk", "quotes")).filter == Filter("boolean", "price > 5")
    assert (await broker.standing(updated)).head == 2


async def test_the_secret_of_a_webhook_stays_when_it_is_not_given_again(broker: Broker) -> None:
    await broker.create(replace(wish("quotes"), push=Webhook("https://example.com/", "whsec_c2VjcmV0")))
    await broker.update("desk", "quotes", "", {"push": Webhook("https://example.com/other")})
    assert (await broker.get("desk", "quotes")).push == Webhook("https://example.com/other", "whsec_c2VjcmV0")


async def test_a_stream_of_many_names_has_them_in_order_and_misses_none(broker: Broker) -> None:
    await broker.import_many("desk", [wish(f"s{n}") for n in range(1200)])
    attachment = await broker.attach("desk", [f"s{n}" for n in reversed(range(1200))])
    assert [name for _, name in attachment.slots] == [f"subscriptions/s{n}" for n in reversed(range(1200))]
    await broker.detach(attachment)
    with pytest.raises(NotFound, match="subscriptions/nobody"):
        await broker.attach("desk", ["s1", "nobody"])


async def test_a_stream_for_all_gets_those_that_come_later(broker: Broker) -> None:
    await broker.create(wish("first"))
    attachment = await broker.attach("desk", ["-"], credit=PLENTY)
    await broker.create(wish("second"))
    await broker.publish("desk", [quote("1")])
    (message,) = await messages(attachment, 1)
    names = dict(attachment.slots)
    assert [names[slot] for slot in message.slots.tolist()] == ["subscriptions/first", "subscriptions/second"]
    await broker.detach(attachment)


async def test_a_deleted_subscription_wants_nothing(broker: Broker) -> None:
    await broker.create(wish("quotes"))
    await broker.delete("desk", "quotes")
    assert await broker.publish("desk", [quote("1")]) == [Published("1", 0)]
    with pytest.raises(NotFound):
        await broker.get("desk", "quotes")


async def test_an_old_etag_changes_nothing(broker: Broker) -> None:
    made = await broker.create(wish("quotes"))
    await broker.update("desk", "quotes", "", {"labels": {"a": "b"}})
    for old in (made.etag, "no etag"):
        with pytest.raises(EtagMismatch):
            await broker.update("desk", "quotes", old, {"filter": Filter("xpath", "//other")})
        with pytest.raises(EtagMismatch):
            await broker.delete("desk", "quotes", old)
    assert await broker.publish("desk", [quote("1")]) == [Published("1", 1)]


async def test_nobody_sees_what_belongs_to_another_tenant(broker: Broker) -> None:
    await broker.create(wish("quotes"))
    assert await broker.publish("other", [quote("1")]) == [Published("1", 0)]
    for attempt in (
        broker.get("other", "quotes"),
        broker.update("other", "quotes", "", {"labels": {}}),
        broker.delete("other", "quotes"),
        broker.attach("other", ["quotes"]),
        broker.pull("other", "quotes", 1),
        broker.acknowledge("other", "quotes", [1]),
        broker.seek("other", "quotes", sequence=1),
        broker.dead_letters("other", "quotes", 0, 10),
        broker.test_filter("other", "quotes", quote("1")),
    ):
        with pytest.raises(NotFound):
            await attempt
    assert (await broker.list("other")).total == 0
    await broker.create(wish("quotes", tenant="other"))


async def test_many_are_imported_and_bad_ones_are_refused_alone(broker: Broker) -> None:
    await broker.create(wish("taken"))
    wishes = [wish("a"), wish("taken"), wish("b", "//["), wish("c", "price >", "boolean"), wish("no space"), wish("d")]
    outcomes = await broker.import_many("desk", wishes)
    kinds = [type(outcome) for outcome in outcomes]
    assert kinds == [Subscription, AlreadyExists, XPathSyntaxError, BooleanSyntaxError, InvalidRequest, Subscription]
    assert await broker.publish("desk", [quote("1")]) == [Published("1", 3)]
    assert [one.id for one in (await broker.list("desk")).subscriptions] == ["a", "d", "taken"]


async def test_a_refused_subscription_leaves_nothing_in_the_engine(broker: Broker) -> None:
    await broker.create(wish("quotes"))
    with pytest.raises(AlreadyExists):
        await broker.create(wish("quotes", "//other"))
    assert len(broker.catalog.filters_of("desk")) == 1


async def test_a_tenant_has_room_for_so_many(tmp_path: Path) -> None:
    limits = SubscriptionLimits(max_subscriptions_per_tenant=2)
    async with opened(tmp_path, subscription_limits=limits) as broker:
        await broker.create(wish("a"))
        with pytest.raises(LimitExceeded, match="max_subscriptions_per_tenant of 2"):
            await broker.import_many("desk", [wish("b"), wish("c")])
        await broker.create(wish("b"))
        with pytest.raises(LimitExceeded):
            await broker.create(wish("c"))
        await broker.delete("desk", "a")
        await broker.create(wish("c"))


WRONG = {
    "an_id_with_a_slash": (wish("a/b"), "subscription_id"),
    "no_filter": (wish("a", "", ""), "filter"),
    "a_negative_time": (replace(wish("a"), delivery=DeliveryPolicy(ack_deadline=-1)), "delivery.ack_deadline"),
    "a_backoff_that_shrinks": (
        replace(wish("a"), delivery=DeliveryPolicy(min_backoff=5, max_backoff=1)),
        "delivery.min_backoff",
    ),
    "a_cron_of_two_fields": (replace(wish("a"), schedule=Schedule(cron="8 *")), "schedule.cron"),
    "a_file_for_a_url": (replace(wish("a"), push=Webhook("file:///etc/passwd")), "push.webhook.url"),
    "a_port_that_is_none": (replace(wish("a"), push=Webhook("http://x:99999/")), "push.webhook.url"),
    "mail_from_a_server_that_sends_none": (replace(wish("a"), push=Email(("desk@example.com",))), "push.email"),
}


@pytest.mark.parametrize("given, field", WRONG.values(), ids=WRONG)
async def test_what_cannot_be_kept_is_refused_with_its_field(given: Subscription, field: str, broker: Broker) -> None:
    with pytest.raises(InvalidRequest) as refused:
        await broker.create(given)
    assert refused.value.field == field


async def test_a_batch_is_published_once_however_often_it_is_committed(broker: Broker) -> None:
    await broker.create(wish("quotes"))
    lost, won = Part(0, 0), Part(0, 1)
    await broker.stage("desk", "q", 7, lost, [quote("lost")])
    refused = await broker.stage("desk", "q", 7, won, [quote("a"), Document("bad", xml=b"<a>"), quote("b")])
    assert [place for place, _ in refused] == [1]
    assert (await broker.publish("desk", [quote("between")])) == [Published("between", 1)]
    first = await broker.commit("desk", "q", 7, [won])
    again = await broker.commit("desk", "q", 7, [won])
    assert (first.documents, first.matches, first.repeated) == (2, 2, False)
    assert (again.documents, again.matches, again.repeated) == (2, 2, True)
    attachment = await broker.attach("desk", ["quotes"], credit=PLENTY)
    got = await messages(attachment, 3)
    assert [message.document.id for message in got] == ["between", "a", "b"]
    await broker.detach(attachment)


async def test_an_empty_batch_is_committed_too(broker: Broker) -> None:
    assert (await broker.commit("desk", "q", 1, [])).documents == 0
    assert (await broker.commit("desk", "q", 1, [])).repeated


async def test_a_batch_is_committed_once_also_when_the_first_to_ask_goes_away(broker: Broker) -> None:
    await broker.create(wish("quotes"))
    await broker.stage("desk", "q", 1, Part(0, 0), [quote("a"), quote("")])
    asking = asyncio.create_task(broker.commit("desk", "q", 1, [Part(0, 0)], [2]))
    await asyncio.sleep(0)
    asking.cancel()
    assert (await broker.commit("desk", "q", 1, [Part(0, 0)], [2])).repeated
    assert broker.publishing.counts.accepted == 2


async def test_an_aborted_batch_is_forgotten(broker: Broker) -> None:
    await broker.create(wish("quotes"))
    await broker.stage("desk", "q", 1, Part(0, 0), [quote("a")])
    await broker.abort("desk", "q", 1)
    assert (await broker.commit("desk", "q", 1, [Part(0, 0)])).documents == 0


async def test_ephemeral_filters_live_with_their_stream(broker: Broker) -> None:
    filters = [Filter("xpath", "//quote"), Filter("boolean", "price > 5")]
    attachment = await broker.attach_ephemeral("desk", filters, PLENTY)
    await broker.publish("desk", [replace(quote("1"), attributes={"price": 6}), quote("2")])
    got = await messages(attachment, 2)  # type: ignore[arg-type]
    assert [(message.document.id, message.slots.tolist()) for message in got] == [("1", [0, 1]), ("2", [0])]
    await broker.detach(attachment)
    assert await broker.publish("desk", [quote("3")]) == [Published("3", 0)]
    assert len(broker.catalog.filters_of("desk")) == 0


async def test_a_bad_ephemeral_filter_refuses_the_stream_and_leaves_nothing(broker: Broker) -> None:
    with pytest.raises(XPathSyntaxError):
        await broker.attach_ephemeral("desk", [Filter("xpath", "//quote"), Filter("xpath", "//[")], PLENTY)
    assert len(broker.catalog.filters_of("desk")) == 0


async def test_trying_a_filter_stores_nothing(broker: Broker) -> None:
    tested = await broker.test_filter("desk", Filter("boolean", "price > 5"), Document("", attributes={"price": 6}))
    assert tested.matches
    assert tested.attributes == {"price": 6}
    assert "price > 5 held" in tested.explanation
    assert (await broker.list("desk")).total == 0
