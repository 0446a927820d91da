"""Wrong requests: the right status, a message to act on, facts for programs."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from pathsieve.v1 import delivery_service_pb2 as delivery
from pathsieve.v1 import publish_service_pb2 as publish
from pathsieve.v1 import subscription_service_pb2 as subscriptions
from pathsieve.v1.subscription_pb2 import Subscription
from tests.servers import Stubs, details_of, document, ended, running, settings_in, stubs_of

Code = grpc.StatusCode


@pytest.fixture
async def stubs(tmp_path: Path) -> AsyncIterator[Stubs]:
    settings = settings_in(
        tmp_path,
        limits__max_batch_documents=2,
        limits__max_expression_length=50,
        limits__max_subscriptions_per_tenant=2,
        limits__max_message_bytes=100_000,
    )
    async with running(settings) as daemon, stubs_of(daemon.address) as stubs:
        await stubs.subscriptions.CreateSubscription(creating("a", xpath="//a"))
        yield stubs


def creating(subscription_id: str, **filter: Any) -> subscriptions.CreateSubscriptionRequest:
    wanted = Subscription(filter=filter)  # type: ignore[arg-type]
    return subscriptions.CreateSubscriptionRequest(subscription=wanted, subscription_id=subscription_id)


def updating(**fields: Any) -> subscriptions.UpdateSubscriptionRequest:
    return subscriptions.UpdateSubscriptionRequest(
        subscription=Subscription(name="subscriptions/a", filter={"xpath": "//a"}, **fields.get("with_", {})),
        update_mask={"paths": fields.get("paths", [])},
    )


UNARY: dict[str, tuple[str, Any, grpc.StatusCode, str, dict[str, str]]] = {
    "an_xpath_that_is_none": (
        "CreateSubscription",
        creating("b", xpath="//a["),
        Code.INVALID_ARGUMENT,
        "at column 5",
        {"reason": "XPATH_SYNTAX_ERROR", "column": "5", "field": "filter.xpath"},
    ),
    "a_boolean_that_is_none": (
        "CreateSubscription",
        creating("b", boolean="price >"),
        Code.INVALID_ARGUMENT,
        "at column 8",
        {"reason": "BOOLEAN_SYNTAX_ERROR", "column": "8", "field": "filter.boolean"},
    ),
    "an_xpath_in_a_boolean_that_is_none": (
        "CreateSubscription",
        creating("b", boolean="XPATH '//a['"),
        Code.INVALID_ARGUMENT,
        "expected",
        {"reason": "XPATH_SYNTAX_ERROR", "column": "5"},
    ),
    "no_filter": (
        "CreateSubscription",
        creating("b"),
        Code.INVALID_ARGUMENT,
        "expected an expression",
        {"reason": "INVALID_REQUEST", "field": "filter"},
    ),
    "an_unbound_prefix": (
        "CreateSubscription",
        creating("b", xpath="//x:a"),
        Code.INVALID_ARGUMENT,
        "x",
        {"field": "filter.xpath"},
    ),
    "an_id_with_a_slash": (
        "CreateSubscription",
        creating("a/b", xpath="//a"),
        Code.INVALID_ARGUMENT,
        "expected 1 to 128 letters",
        {"field": "subscription_id"},
    ),
    "an_id_that_is_taken": (
        "CreateSubscription",
        creating("a", xpath="//a"),
        Code.ALREADY_EXISTS,
        "subscriptions/a exists already",
        {"reason": "ALREADY_EXISTS", "name": "subscriptions/a"},
    ),
    "an_expression_that_is_too_long": (
        "CreateSubscription",
        creating("b", xpath="//" + "a" * 50),
        Code.RESOURCE_EXHAUSTED,
        "52 is more than the limit max_expression_length of 50",
        {"limit": "max_expression_length", "allowed": "50", "found": "52"},
    ),
    "a_subscription_that_is_not_there": (
        "GetSubscription",
        subscriptions.GetSubscriptionRequest(name="subscriptions/b"),
        Code.NOT_FOUND,
        "there is no subscriptions/b",
        {"reason": "NOT_FOUND", "name": "subscriptions/b"},
    ),
    "a_name_that_is_none": (
        "GetSubscription",
        subscriptions.GetSubscriptionRequest(name="b"),
        Code.INVALID_ARGUMENT,
        "expected subscriptions/{id}, found 'b'",
        {"field": "name"},
    ),
    "a_page_of_less_than_nothing": (
        "ListSubscriptions",
        subscriptions.ListSubscriptionsRequest(page_size=-1),
        Code.INVALID_ARGUMENT,
        "found -1",
        {"field": "page_size"},
    ),
    "a_page_token_that_is_made_up": (
        "ListSubscriptions",
        subscriptions.ListSubscriptionsRequest(page_token="!"),
        Code.INVALID_ARGUMENT,
        "expected the next_page_token of the page before",
        {"field": "page_token"},
    ),
    "an_etag_of_yesterday": (
        "UpdateSubscription",
        updating(with_={"etag": "ffff"}),
        Code.ABORTED,
        "read it again",
        {"reason": "ETAG_MISMATCH", "name": "subscriptions/a", "etag": "1"},
    ),
    "a_mask_of_what_cannot_be_changed": (
        "UpdateSubscription",
        updating(paths=["create_time"]),
        Code.INVALID_ARGUMENT,
        "expected some of filter, labels",
        {"field": "update_mask"},
    ),
    "nothing_to_delete": (
        "DeleteSubscription",
        subscriptions.DeleteSubscriptionRequest(name="subscriptions/b"),
        Code.NOT_FOUND,
        "there is no subscriptions/b",
        {"name": "subscriptions/b"},
    ),
    "nothing_to_test": (
        "TestFilter",
        subscriptions.TestFilterRequest(),
        Code.INVALID_ARGUMENT,
        "expected the name of a subscription, or a filter",
        {"field": "subject"},
    ),
    "a_document_that_is_none": (
        "TestFilter",
        subscriptions.TestFilterRequest(name="subscriptions/a", document=document("1", "<a")),
        Code.INVALID_ARGUMENT,
        "line 1",
        {"reason": "DOCUMENT_ERROR", "line": "1", "field": "document.xml"},
    ),
    "too_many_documents": (
        "Publish",
        publish.PublishRequest(documents=[document(str(i)) for i in range(3)]),
        Code.RESOURCE_EXHAUSTED,
        "3 is more than the limit max_batch_documents of 2; send several requests",
        {"limit": "max_batch_documents"},
    ),
    "a_message_that_is_too_large": (
        "Publish",
        publish.PublishRequest(documents=[document("1", "x" * 200_000)]),
        Code.RESOURCE_EXHAUSTED,
        "larger than max (200",
        {},
    ),
    "a_commit_of_no_query": (
        "CommitBatch",
        publish.CommitBatchRequest(batch=1),
        Code.INVALID_ARGUMENT,
        "expected the name of the query",
        {"field": "query"},
    ),
    "a_pull_of_what_is_not_there": (
        "Pull",
        delivery.PullRequest(subscription="subscriptions/b"),
        Code.NOT_FOUND,
        "there is no subscriptions/b",
        {"name": "subscriptions/b"},
    ),
    "an_ack_of_what_never_was": (
        "Acknowledge",
        delivery.AcknowledgeRequest(subscription="subscriptions/a", sequences=[7]),
        Code.INVALID_ARGUMENT,
        "found 7",
        {"field": "sequences"},
    ),
    "a_deadline_in_the_past": (
        "ModifyAckDeadline",
        delivery.ModifyAckDeadlineRequest(subscription="subscriptions/a", deadline={"seconds": -1}),
        Code.INVALID_ARGUMENT,
        "expected 0 s or more",
        {"field": "deadline"},
    ),
    "a_seek_to_nowhere": (
        "Seek",
        delivery.SeekRequest(subscription="subscriptions/a"),
        Code.INVALID_ARGUMENT,
        "expected a time or a sequence",
        {"field": "target"},
    ),
    "dead_letters_after_a_word": (
        "ListDeadLetters",
        delivery.ListDeadLettersRequest(subscription="subscriptions/a", page_token="YWJj"),
        Code.INVALID_ARGUMENT,
        "expected the next_page_token of the page before",
        {"field": "page_token"},
    ),
}


@pytest.mark.parametrize("method, request_, code, said, facts", UNARY.values(), ids=UNARY)
async def test_a_wrong_request(
    stubs: Stubs, method: str, request_: Any, code: grpc.StatusCode, said: str, facts: dict[str, str]
) -> None:
    services = (stubs.subscriptions, stubs.publish, stubs.delivery)
    service = next(service for service in services if hasattr(service, method))
    call = getattr(service, method)(request_)
    assert await call.code() is code
    assert said in await call.details()
    assert facts.items() <= (await details_of(call)).items()


async def test_one_subscription_too_many(stubs: Stubs) -> None:
    await stubs.subscriptions.CreateSubscription(creating("b", xpath="//b"))
    call = stubs.subscriptions.CreateSubscription(creating("c", xpath="//c"))
    assert await call.code() is Code.RESOURCE_EXHAUSTED
    details = await details_of(call)
    assert (details["limit"], details["allowed"], details["found"]) == ("max_subscriptions_per_tenant", "2", "3")


def starting(**fields: Any) -> delivery.AttachRequest:
    return delivery.AttachRequest(start=delivery.Start(**fields))


ATTACHING: dict[str, tuple[list[delivery.AttachRequest], str, str]] = {
    "an_ack_first": ([delivery.AttachRequest(ack={})], "kind", "expected start in the first request, found ack"),
    "nothing_at_all": ([], "kind", "expected start in the first request, found nothing"),
    "an_empty_request_first": ([delivery.AttachRequest()], "kind", "found nothing"),
    "nothing_to_attach_to": ([starting()], "subscriptions", "expected at least one name"),
    "both_kinds": (
        [starting(subscriptions=["subscriptions/a"], ephemeral=[{"xpath": "//a"}])],
        "start",
        "expected either subscriptions or ephemeral filters",
    ),
    "all_and_one": ([starting(subscriptions=["subscriptions/-", "subscriptions/a"])], "start.subscriptions", "alone"),
    "an_unknown_mode": ([starting(subscriptions=["subscriptions/a"], mode=7)], "start.mode", "found 7"),
    "less_credit_than_nothing": (
        [starting(subscriptions=["subscriptions/a"], credit={"messages": -1})],
        "start.credit",
        "found -1 messages",
    ),
    "an_ephemeral_filter_without_an_expression": (
        [starting(ephemeral=[{"xpath": "//a"}, {}])],
        "start.ephemeral[1]",
        "expected an expression",
    ),
    "an_ephemeral_filter_that_is_none": ([starting(ephemeral=[{"xpath": "//a["}])], "filter.xpath", "at column 5"),
    "a_second_start": (
        [starting(subscriptions=["subscriptions/a"]), starting(subscriptions=["subscriptions/a"])],
        "kind",
        "expected ack, nack, extend or credit after the start, found start",
    ),
    "credit_taken_back": (
        [starting(subscriptions=["subscriptions/a"]), delivery.AttachRequest(credit={"bytes": -5})],
        "credit",
        "-5 bytes",
    ),
}


@pytest.mark.parametrize("requests, field, said", ATTACHING.values(), ids=ATTACHING)
async def test_a_wrong_stream(stubs: Stubs, requests: list[delivery.AttachRequest], field: str, said: str) -> None:
    call = stubs.delivery.Attach()
    for request in requests:
        await call.write(request)
    if len(requests) != 2:
        await call.done_writing()
    await ended(call)
    assert await call.code() is Code.INVALID_ARGUMENT
    assert said in await call.details()
    assert (await details_of(call))["field"] == field


STAGING: dict[str, tuple[list[publish.StageDocumentsRequest], str]] = {
    "nothing": ([], "query"),
    "no_part": ([publish.StageDocumentsRequest(query="q")], "part"),
    "no_query": ([publish.StageDocumentsRequest(part={})], "query"),
}


@pytest.mark.parametrize("requests, field", STAGING.values(), ids=STAGING)
async def test_a_wrong_part(stubs: Stubs, requests: list[publish.StageDocumentsRequest], field: str) -> None:
    call = stubs.publish.StageDocuments(iter(requests))
    assert await call.code() is Code.INVALID_ARGUMENT
    assert (await details_of(call))["field"] == field
