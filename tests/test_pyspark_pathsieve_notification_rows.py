"""Notifications as Arrow rows, without Spark and without a server."""

from datetime import UTC, datetime

import pyarrow as pa
import pytest
from pyspark.sql.types import BinaryType, LongType, StringType, StructField, StructType

from pathsieve import Document, Interval, Notification
from pathsieve.documents import to_document
from pathsieve.v1 import delivery_service_pb2 as pb
from pyspark_pathsieve import notification_rows
from pyspark_pathsieve.errors import ColumnError
from pyspark_pathsieve.notification_rows import SCHEMA, batches_of, check_schema

NAMES = ["subscriptions/ibm", "subscriptions/tech"]


def notification(document: Document, position: int, **sequences: int) -> Notification:
    message = pb.Notification(document=to_document(document), position=position)
    for slot, name in enumerate(NAMES):
        sequence = sequences.get(name.removeprefix("subscriptions/"))
        if sequence is not None:
            message.slots.append(slot)
            message.sequences.append(sequence)
    message.document.publish_time.FromJsonString("2026-01-01T10:00:00.000001Z")
    return Notification(message, NAMES)


QUOTE = Document(
    "<quote/>",
    id="q-7",
    source="nyse",
    attributes={"price": 99.5, "symbol": "IBM", "spread": Interval(1, 2), "tags": ["new", 7], "late": False},
    headers={"trace": "abc"},
)


def test_a_document_is_a_row_for_each_who_wants_it() -> None:
    notifications = [notification(QUOTE, 41, ibm=17, tech=4), notification(Document("<a/>", id="q-8"), 44, tech=5)]
    rows = pa.Table.from_batches(batches_of(notifications, SCHEMA)).to_pylist()
    assert [(row["subscription"], row["sequence"], row["position"], row["id"]) for row in rows] == [
        ("ibm", 17, 41, "q-7"),
        ("tech", 4, 41, "q-7"),
        ("tech", 5, 44, "q-8"),
    ]
    assert rows[0]["body"] == b"<quote/>"
    assert rows[0]["source"] == "nyse"
    assert rows[0]["publish_time"] == datetime(2026, 1, 1, 10, 0, 0, 1, tzinfo=UTC)
    assert rows[0]["headers"] == [("trace", "abc")]
    assert dict(rows[0]["attributes"]) == {
        "price": "99.5",
        "symbol": "IBM",
        "spread": '{"low": 1.0, "high": 2.0}',
        "tags": '["new", 7]',
        "late": "false",
    }


def test_a_schema_may_be_some_columns_in_any_order() -> None:
    schema = StructType([StructField("body", BinaryType()), StructField("sequence", LongType())])
    check_schema(schema)
    (batch,) = batches_of([notification(QUOTE, 41, ibm=17)], schema)
    assert batch.to_pylist() == [{"body": b"<quote/>", "sequence": 17}]


def test_a_column_may_be_asked_for_as_never_null() -> None:
    schema = StructType([StructField("sequence", LongType(), nullable=False)])
    (batch,) = batches_of([notification(QUOTE, 41, ibm=17)], schema)
    assert not batch.schema.field("sequence").nullable


WRONG = {
    "unknown": (StructField("xml", BinaryType()), "no column xml; there are subscription, sequence"),
    "another_type": (StructField("body", StringType()), "column body is binary, not string; leave the schema out"),
}


@pytest.mark.parametrize("field, told", WRONG.values(), ids=WRONG)
def test_a_schema_that_does_not_fit_is_refused(field: StructField, told: str) -> None:
    with pytest.raises(ColumnError, match=told) as caught:
        check_schema(StructType([StructField("id", StringType()), field]))
    assert caught.value.column == field.name


def test_batches_are_bounded_in_rows_and_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notification_rows, "ROWS_AT_ONCE", 3)
    many = [notification(Document("<a/>", id=str(n)), n, ibm=n, tech=n) for n in range(1, 5)]
    assert [batch.num_rows for batch in batches_of(many, SCHEMA)] == [3, 3, 2]
    monkeypatch.setattr(notification_rows, "BYTES_AT_ONCE", 8)
    assert [batch.num_rows for batch in batches_of(many, SCHEMA)] == [2, 2, 2, 2]


def test_nothing_is_no_batch() -> None:
    assert list(batches_of([], SCHEMA)) == []
