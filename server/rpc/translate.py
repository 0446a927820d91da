"""Protobuf to domain types and back, for documents: the part that has to be quick.

    Document (protobuf)  ─▶  Document          xml is taken as it is, maps only if there is something in them
    Document             ─▶  Document (protobuf)

A value that cannot be (an interval from high to low, a value without a kind) raises `EventError` with the name of the
attribute. `server.rpc.translate_subscriptions` has the rest.
"""

from collections.abc import Mapping

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from boolmatch import EventError, Interval, Point
from pathsieve.v1 import document_pb2
from server.documents import AttributeValue, Document, SingleValue

__all__ = ["document_from", "document_to", "duration_to", "seconds_from", "timestamp_from", "timestamp_to", "value_to"]

NANOSECONDS = 1_000_000_000


def document_from(message: document_pb2.Document) -> Document:
    """What a publisher sent. Its `publish_time` is not for a publisher to say."""
    attributes = message.attributes
    headers = message.headers
    return Document(
        message.id,
        message.source,
        message.xml,
        {name: value_from(name, value) for name, value in attributes.items()} if attributes else {},
        dict(headers) if headers else {},
    )


def document_to(document: Document) -> document_pb2.Document:
    """What a subscriber gets."""
    message = document_pb2.Document(
        id=document.id, source=document.source, xml=document.xml, publish_time=timestamp_to(document.publish_time)
    )
    if document.attributes:
        values_to(document.attributes, message.attributes)
    if document.headers:
        message.headers.update(document.headers)
    return message


def value_from(name: str, value: document_pb2.Value) -> AttributeValue:
    """The value of the attribute called `name`."""
    if value.WhichOneof("kind") == "list_value":
        return [single_from(name, item) for item in value.list_value.values]
    return single_from(name, value)


def single_from(name: str, value: document_pb2.Value) -> SingleValue:
    """A value that is not a list."""
    kind = value.WhichOneof("kind")
    if kind is None or kind == "list_value":
        raise EventError(name, "expected a value" if kind is None else "expected no list within a list")
    if kind == "point_value":
        return _placed(name, Point, value.point_value.x, value.point_value.y)
    if kind == "interval_value":
        return _placed(name, Interval, value.interval_value.low, value.interval_value.high)
    single: SingleValue = getattr(value, kind)
    return single


def _placed(name: str, kind: type[Point] | type[Interval], first: float, second: float) -> Point | Interval:
    try:
        return kind(first, second)
    except EventError as error:
        raise EventError(name, error.reason, error.hint) from None


def values_to(attributes: Mapping[str, AttributeValue], target: Mapping[str, document_pb2.Value]) -> None:
    """Write attributes into a protobuf map."""
    for name, value in attributes.items():
        value_to(value, target[name])


def value_to(value: AttributeValue, target: document_pb2.Value) -> None:
    """Write one value."""
    if isinstance(value, str):
        target.string_value = value
    elif isinstance(value, bool):
        target.bool_value = value
    elif isinstance(value, int):
        target.integer_value = value
    elif isinstance(value, float):
        target.double_value = value
    elif isinstance(value, Point):
        target.point_value.x, target.point_value.y = value.x, value.y
    elif isinstance(value, Interval):
        target.interval_value.low, target.interval_value.high = value.low, value.high
    else:
        target.list_value.SetInParent()
        for single in value:
            value_to(single, target.list_value.values.add())


def timestamp_to(seconds: float) -> Timestamp:
    """Seconds since 1970, to the microsecond, which is what a float holds."""
    whole, microseconds = divmod(round(seconds * 1e6), 1_000_000)
    return Timestamp(seconds=whole, nanos=microseconds * 1000)


def timestamp_from(timestamp: Timestamp) -> float:
    """Seconds since 1970."""
    return timestamp.seconds + timestamp.nanos / NANOSECONDS


def duration_to(seconds: float) -> Duration:
    """A length of time."""
    whole, nanoseconds = divmod(round(seconds * NANOSECONDS), NANOSECONDS)
    return Duration(seconds=whole, nanos=nanoseconds)


def seconds_from(duration: Duration) -> float:
    """A length of time, in seconds; 0 if it is not set."""
    return duration.seconds + duration.nanos / NANOSECONDS
