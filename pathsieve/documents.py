"""A document as clients see it: XML, attributes, or both."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from google.protobuf.timestamp_pb2 import Timestamp

from pathsieve.v1 import document_pb2
from pathsieve.values import AttributeValue, from_value, write_attributes

__all__ = ["Document", "from_document", "from_timestamp", "to_document"]

DECLARED = re.compile(r"""<\?xml[^>]*?\sencoding\s*=\s*["']([A-Za-z0-9._-]+)["']""")


@dataclass(frozen=True, slots=True)
class Document:
    """What is published. `xml` may be given as text; what arrives has bytes, an id and a time.

    >>> Document("<quote symbol='IBM'/>", attributes={"price": 120}).xml
    b"<quote symbol='IBM'/>"
    """

    xml: bytes = b""
    id: str = ""
    source: str = ""
    attributes: Mapping[str, AttributeValue] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    publish_time: datetime | None = None

    def __init__(
        self,
        xml: bytes | str = b"",
        *,
        id: str = "",
        source: str = "",
        attributes: Mapping[str, AttributeValue] | None = None,
        headers: Mapping[str, str] | None = None,
        publish_time: datetime | None = None,
    ) -> None:
        put = object.__setattr__
        put(self, "xml", _encoded(xml))
        put(self, "id", id)
        put(self, "source", source)
        put(self, "attributes", attributes or {})
        put(self, "headers", headers or {})
        put(self, "publish_time", publish_time)


def _encoded(xml: bytes | str) -> bytes:
    """The bytes of a document: text is encoded as it says of itself, in UTF-8 if it says nothing."""
    if isinstance(xml, str):
        declared = DECLARED.match(xml)
        return xml.encode(declared[1] if declared else "utf-8")
    if isinstance(xml, bytes | bytearray | memoryview):
        return bytes(xml)
    raise TypeError(f"expected a document as bytes or str, found {type(xml).__name__}")


def to_document(document: Document, document_id: str = "") -> document_pb2.Document:
    """A document as it travels, under its own id or else under `document_id`."""
    message = document_pb2.Document(id=document.id or document_id, source=document.source, xml=document.xml)
    if document.attributes:
        write_attributes(document.attributes, message.attributes)
    if document.headers:
        message.headers.update(document.headers)
    return message


def from_document(message: document_pb2.Document) -> Document:
    """The document that was sent."""
    return Document(
        message.xml,
        id=message.id,
        source=message.source,
        attributes={name: from_value(value) for name, value in message.attributes.items()},
        headers=dict(message.headers),
        publish_time=from_timestamp(message.publish_time) if message.HasField("publish_time") else None,
    )


def from_timestamp(timestamp: Timestamp) -> datetime:
    """A time with its zone, which is UTC."""
    return timestamp.ToDatetime(tzinfo=UTC)
