"""A document as the columns that every table of documents has, and back.

    source   id       publish_time   details                            xml
    bytes    bytes    seconds        "" or JSON: attributes, headers    bytes

Ids are bytes because PostgreSQL's text holds no zero byte, and a publisher may send one.
"""

import json
from collections.abc import Mapping
from typing import Any

from boolmatch import Interval, Point
from server.documents import AttributeValue, Document
from server.store.databases import Row

__all__ = ["DOCUMENT_COLUMNS", "document_from_row", "document_to_row"]

DOCUMENT_COLUMNS = ("source", "id", "publish_time", "details", "xml")


def document_to_row(document: Document) -> Row:
    details = ""
    if document.attributes or document.headers:
        details = json.dumps([dict(document.attributes), dict(document.headers)], default=_value_to_json)
    return document.source.encode(), document.id.encode(), document.publish_time, details, document.xml


def document_from_row(row: Row) -> Document:
    """
    >>> document_from_row(document_to_row(Document("1", "here", b"<a/>", {"place": Point(1, 2)}))).attributes
    {'place': Point(x=1.0, y=2.0)}
    """
    source, id_, publish_time, details, xml = row
    attributes: Mapping[str, AttributeValue] = {}
    headers: Mapping[str, str] = {}
    if details:
        coded, headers = json.loads(details)
        attributes = {name: _value_from_json(value) for name, value in coded.items()}
    return Document(id_.decode(), source.decode(), xml, attributes, headers, publish_time)


def _value_to_json(value: object) -> Any:
    if isinstance(value, Point):
        return {"point": [value.x, value.y]}
    if isinstance(value, Interval):
        return {"interval": [value.low, value.high]}
    if isinstance(value, set | frozenset | tuple):
        return list(value)
    raise TypeError(f"an attribute cannot be a {type(value).__name__}")


def _value_from_json(value: Any) -> AttributeValue:
    if isinstance(value, list):
        return [_value_from_json(each) for each in value]  # type: ignore[misc]
    if isinstance(value, dict):
        return Point(*value["point"]) if "point" in value else Interval(*value["interval"])
    plain: AttributeValue = value
    return plain
