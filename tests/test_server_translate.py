"""Protobuf and domain types say the same."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boolmatch import EventError, Interval, Point
from pathsieve.v1 import document_pb2, subscription_pb2
from server.documents import AttributeValue, Document
from server.errors import InvalidRequest
from server.rpc.translate import (
    document_from,
    document_to,
    duration_to,
    seconds_from,
    timestamp_from,
    timestamp_to,
)
from server.rpc.translate_subscriptions import changes_from, filter_from, id_from, subscription_from, subscription_to
from server.subscriptions import DeliveryPolicy, Email, Filter, Schedule, Subscription, Webhook

FINITE = st.floats(allow_nan=False, allow_infinity=False)
SINGLE = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"])),
    st.booleans(),
    st.integers(-(2**53), 2**53),
    FINITE,
    st.builds(Point, FINITE, FINITE),
    st.tuples(FINITE, FINITE).map(lambda ends: Interval(min(ends), max(ends))),
)
NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
DOCUMENTS = st.builds(
    Document,
    id=NAMES,
    source=NAMES,
    xml=st.binary(),
    attributes=st.dictionaries(NAMES, SINGLE | st.lists(SINGLE)),
    headers=st.dictionaries(NAMES, NAMES),
)


@given(DOCUMENTS)
def test_a_document_comes_back_as_it_was(document: Document) -> None:
    back = document_from(document_to(document))
    assert back == document
    assert {name: type(value) for name, value in back.attributes.items()} == {
        name: type(value) for name, value in document.attributes.items()
    }


def test_a_publisher_does_not_say_when_it_was_published() -> None:
    message = document_to(Document("1", publish_time=1.5))
    assert timestamp_from(message.publish_time) == 1.5
    assert document_from(message).publish_time == 0


def value(**kind: object) -> document_pb2.Value:
    return document_pb2.Value(**kind)  # type: ignore[arg-type]


BAD_VALUES = {
    "none": (value(), "expected a value"),
    "a_list_in_a_list": (
        value(list_value=document_pb2.ValueList(values=[value(list_value=document_pb2.ValueList())])),
        "expected no list within a list",
    ),
    "an_interval_from_high_to_low": (value(interval_value=document_pb2.Interval(low=2, high=1)), "from low to high"),
    "a_point_nowhere": (value(point_value=document_pb2.Point(x=float("nan"), y=1)), "NaN"),
}


@pytest.mark.parametrize("bad, said", BAD_VALUES.values(), ids=BAD_VALUES)
def test_a_value_that_cannot_be_is_told_with_its_attribute(bad: document_pb2.Value, said: str) -> None:
    with pytest.raises(EventError, match=said) as caught:
        document_from(document_pb2.Document(attributes={"price": bad}))
    assert caught.value.attribute == "price"


def test_an_empty_list_is_a_value() -> None:
    attributes: dict[str, AttributeValue] = {"tags": []}
    assert document_from(document_to(Document("1", attributes=attributes))).attributes == attributes


@given(st.floats(0, 4e9))
def test_times_are_kept_to_the_microsecond(seconds: float) -> None:
    assert timestamp_from(timestamp_to(seconds)) == pytest.approx(seconds, abs=1e-6)


@given(st.floats(-1e6, 1e6))
def test_durations_are_kept_to_the_nanosecond(seconds: float) -> None:
    assert seconds_from(duration_to(seconds)) == pytest.approx(seconds, abs=1e-9)


SUBSCRIPTIONS = {
    "the_least": Subscription("acme", "a", Filter("xpath", "//a")),
    "with_namespaces": Subscription("acme", "a", Filter("xpath", "//x:a", (("x", "urn:x"), ("y", "urn:y")))),
    "a_boolean": Subscription("acme", "a", Filter("boolean", "price > 1"), {"team": "desk"}),
    "with_a_policy": Subscription("acme", "a", Filter("xpath", "//a"), {}, DeliveryPolicy(1.5, 3, 0.25, 60)),
    "now_and_then": Subscription("acme", "a", Filter("xpath", "//a"), schedule=Schedule(every=90)),
    "in_the_morning": Subscription("acme", "a", Filter("xpath", "//a"), schedule=Schedule(cron="0 8 * * *")),
    "by_webhook": Subscription("acme", "a", Filter("xpath", "//a"), push=Webhook("https://x/", "", {"h": "v"})),
    "by_mail": Subscription("acme", "a", Filter("xpath", "//a"), push=Email(("a@b", "c@d"), "hello")),
}


@pytest.mark.parametrize("subscription", SUBSCRIPTIONS.values(), ids=SUBSCRIPTIONS)
def test_a_subscription_comes_back_as_it_was(subscription: Subscription) -> None:
    assert subscription_from(subscription_to(subscription), "acme", "a") == subscription


def test_what_the_server_sets_is_shown() -> None:
    shown = subscription_to(
        Subscription("acme", "a", Filter("xpath", "//a"), revision=31, create_time=1.5, update_time=2.5)
    )
    assert (shown.name, shown.etag) == ("subscriptions/a", "1f")
    assert (timestamp_from(shown.create_time), timestamp_from(shown.update_time)) == (1.5, 2.5)


def test_a_secret_is_never_shown() -> None:
    webhook = Webhook("https://x/", "hush")
    shown = subscription_to(Subscription("acme", "a", Filter("xpath", "//a"), push=webhook))
    assert "hush" not in str(shown)


@pytest.mark.parametrize("name", ["", "a", "subscriptions/", "subscription/a"])
def test_a_name_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(InvalidRequest, match=r"name: expected subscriptions/\{id\}, found"):
        id_from(name, "name")


def test_a_filter_without_an_expression_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="filter: expected an expression"):
        filter_from(subscription_pb2.Filter())


def test_a_mask_says_what_is_changed() -> None:
    message = subscription_pb2.Subscription(filter={"xpath": "//b"}, labels={"a": "b"})
    assert changes_from(message, ["labels"]) == {"labels": {"a": "b"}}
    assert set(changes_from(message, [])) == {"filter", "labels", "delivery", "schedule", "push"}


def test_a_mask_names_fields_that_can_be_changed() -> None:
    with pytest.raises(InvalidRequest, match="expected some of filter, labels, delivery, schedule, push, found 'name'"):
        changes_from(subscription_pb2.Subscription(), ["name"])
