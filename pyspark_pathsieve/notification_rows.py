"""Notifications as rows: one for each subscription that wants a document.

    Notification q-7 {ibm: 17, tech: 4}   ──▶   ibm   17  …  q-7  <quote/>
                                                tech   4  …  q-7  <quote/>

A user's own schema is some of these columns, in any order. Rows leave as Arrow batches that are bounded in rows and in
bytes, since a document that thousands want becomes thousands of rows.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    BinaryType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from pathsieve import Interval, Notification, Point
from pyspark_pathsieve.errors import ColumnError

__all__ = ["SCHEMA", "batches_of", "check_schema", "text_of"]

PREFIX = "subscriptions/"
ROWS_AT_ONCE = 10_000
BYTES_AT_ONCE = 8 << 20

SCHEMA = StructType(
    [
        StructField("subscription", StringType()),
        StructField("sequence", LongType()),
        StructField("position", LongType()),
        StructField("id", StringType()),
        StructField("source", StringType()),
        StructField("publish_time", TimestampType()),
        StructField("body", BinaryType()),
        StructField("headers", MapType(StringType(), StringType())),
        StructField("attributes", MapType(StringType(), StringType())),
    ]
)

Match = tuple[str, int]
VALUES: dict[str, Callable[[Notification, Match], Any]] = {
    "subscription": lambda notification, match: match[0].removeprefix(PREFIX),
    "sequence": lambda notification, match: match[1],
    "position": lambda notification, match: notification.position,
    "id": lambda notification, match: notification.document.id,
    "source": lambda notification, match: notification.document.source,
    "publish_time": lambda notification, match: notification.document.publish_time,
    "body": lambda notification, match: notification.xml,
    "headers": lambda notification, match: dict(notification.document.headers),
    "attributes": lambda notification, match: {
        name: text_of(value) for name, value in notification.document.attributes.items()
    },
}


def check_schema(schema: StructType) -> None:
    """Is this what we have, or some of it?"""
    ours = {field.name: field.dataType for field in SCHEMA.fields}
    for field in schema.fields:
        if field.name not in ours:
            raise ColumnError(
                f"no column {field.name}; there are {', '.join(ours)}",
                {"option": "schema", "column": field.name, "found": field.dataType.simpleString()},
            )
        if field.dataType != ours[field.name]:
            expected, found = ours[field.name].simpleString(), field.dataType.simpleString()
            words = f"column {field.name} is {expected}, not {found}; leave the schema out, and cast what was read"
            raise ColumnError(words, {"option": "schema", "column": field.name, "found": found})


def batches_of(notifications: Iterable[Notification], schema: StructType) -> Iterator[pa.RecordBatch]:
    """Rows of some notifications, in order."""
    arrow, names = to_arrow_schema(schema, timezone="UTC"), schema.fieldNames()
    rows: list[list[Any]] = []
    n_bytes = 0
    for notification in notifications:
        for match in notification.matches:
            rows.append([VALUES[name](notification, match) for name in names])
            n_bytes += len(notification.xml)
            if len(rows) >= ROWS_AT_ONCE or n_bytes >= BYTES_AT_ONCE:
                yield _batch(rows, arrow)
                rows, n_bytes = [], 0
    if rows:
        yield _batch(rows, arrow)


def _batch(rows: list[list[Any]], schema: pa.Schema) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def text_of(value: Any) -> str:
    """An attribute as text: a text as it is, anything else as JSON.

    >>> text_of("IBM"), text_of(99.5), text_of(True), text_of(["new", 7]), text_of(Point(13.4, 52.5))
    ('IBM', '99.5', 'true', '["new", 7]', '{"x": 13.4, "y": 52.5}')
    """
    return value if isinstance(value, str) else json.dumps(_plain(value))


def _plain(value: Any) -> Any:
    if isinstance(value, Point):
        return {"x": value.x, "y": value.y}
    if isinstance(value, Interval):
        return {"low": value.low, "high": value.high}
    return [_plain(one) for one in value] if isinstance(value, list) else value
