"""SubscriptionService, over a real channel."""

from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import pytest

from pathsieve.v1 import subscription_service_pb2 as wire
from pathsieve.v1.subscription_pb2 import Subscription
from tests.servers import Stubs, document, running, settings_in, stubs_of


@pytest.fixture
async def stubs(tmp_path: Path) -> AsyncIterator[Stubs]:
    async with running(settings_in(tmp_path)) as daemon, stubs_of(daemon.address) as stubs:
        yield stubs


async def create(stubs: Stubs, subscription_id: str, xpath: str = "//a", **fields: object) -> Subscription:
    wanted = Subscription(filter={"xpath": xpath}, **fields)  # type: ignore[arg-type]
    request = wire.CreateSubscriptionRequest(subscription=wanted, subscription_id=subscription_id)
    return await stubs.subscriptions.CreateSubscription(request)


async def test_what_is_created_can_be_read(stubs: Stubs) -> None:
    created = await create(stubs, "ibm", labels={"desk": "fx"}, schedule={"every": {"seconds": 5}})
    read = await stubs.subscriptions.GetSubscription(wire.GetSubscriptionRequest(name="subscriptions/ibm"))
    assert created == read
    assert (read.name, read.filter.xpath, read.labels["desk"]) == ("subscriptions/ibm", "//a", "fx")
    assert read.etag
    assert read.create_time.seconds


async def test_an_id_is_made_up_if_there_is_none(stubs: Stubs) -> None:
    assert (await create(stubs, "")).name.startswith("subscriptions/")


async def test_lists_come_in_pages(stubs: Stubs) -> None:
    for name in "edcba":
        await create(stubs, name)
    names, token = [], ""
    while True:
        page = await stubs.subscriptions.ListSubscriptions(wire.ListSubscriptionsRequest(page_size=2, page_token=token))
        assert page.total_size == 5
        names += [subscription.name[-1] for subscription in page.subscriptions]
        token = page.next_page_token
        if not token:
            break
    assert names == list("abcde")


async def test_an_update_changes_what_its_mask_names(stubs: Stubs) -> None:
    created = await create(stubs, "a", labels={"x": "1"})
    wanted = Subscription(name=created.name, filter={"xpath": "//b"}, etag=created.etag)
    request = wire.UpdateSubscriptionRequest(subscription=wanted, update_mask={"paths": ["filter"]})
    updated = await stubs.subscriptions.UpdateSubscription(request)
    assert (updated.filter.xpath, updated.labels["x"]) == ("//b", "1")
    assert updated.etag != created.etag


async def test_what_is_deleted_is_gone(stubs: Stubs) -> None:
    created = await create(stubs, "a")
    await stubs.subscriptions.DeleteSubscription(wire.DeleteSubscriptionRequest(name=created.name, etag=created.etag))
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await stubs.subscriptions.GetSubscription(wire.GetSubscriptionRequest(name=created.name))
    assert caught.value.code() is grpc.StatusCode.NOT_FOUND


async def test_an_import_has_a_result_for_each_in_order(stubs: Stubs) -> None:
    texts = ["//a", "//b[", "//c", "//d"]
    ids = ["a", "b", "a", "d"]
    items = [
        wire.ImportItem(subscription={"filter": {"xpath": text}}, subscription_id=one)
        for text, one in zip(texts, ids, strict=True)
    ]
    call = stubs.subscriptions.ImportSubscriptions()
    await call.write(wire.ImportSubscriptionsRequest(items=items[:3]))
    await call.write(wire.ImportSubscriptionsRequest())
    await call.write(wire.ImportSubscriptionsRequest(items=[*items[3:], wire.ImportItem(subscription_id="none")]))
    await call.done_writing()
    results = [result async for response in call for result in response.results]
    assert [result.index for result in results] == [0, 1, 2, 3, 4]
    assert [result.name for result in results] == ["subscriptions/a", "", "", "subscriptions/d", ""]
    assert [result.problem.details["reason"] for result in results if result.HasField("problem")] == [
        "XPATH_SYNTAX_ERROR",
        "ALREADY_EXISTS",
        "INVALID_REQUEST",
    ]
    assert results[1].problem.details["column"] == "5"
    assert await call.code() is grpc.StatusCode.OK


async def test_an_import_may_be_large(stubs: Stubs) -> None:
    n_items, size = 12_000, 3_000

    async def requests() -> AsyncIterator[wire.ImportSubscriptionsRequest]:
        for start in range(0, n_items, size):
            items = [
                wire.ImportItem(subscription={"filter": {"xpath": f"//a{i}"}}, subscription_id=f"s{i}")
                for i in range(start, start + size)
            ]
            yield wire.ImportSubscriptionsRequest(items=items)

    call = stubs.subscriptions.ImportSubscriptions(requests())
    results = [result async for response in call for result in response.results]
    assert [(result.index, result.name) for result in results] == [(i, f"subscriptions/s{i}") for i in range(n_items)]


async def test_a_filter_can_be_tried(stubs: Stubs) -> None:
    request = wire.TestFilterRequest(
        filter={"boolean": "price > 10 AND XPATH '//a'"},
        document=document("1", attributes={"price": {"integer_value": 12}}),
    )
    tested = await stubs.subscriptions.TestFilter(request)
    assert tested.matches
    assert tested.explanation
    assert tested.attributes["price"].integer_value == 12


async def test_the_filter_of_a_subscription_can_be_tried(stubs: Stubs) -> None:
    await create(stubs, "a", "//b")
    request = wire.TestFilterRequest(name="subscriptions/a", document=document("1", "<a/>"))
    assert not (await stubs.subscriptions.TestFilter(request)).matches
