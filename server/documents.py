"""A document as the server carries it: XML, attributes, or both."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from sievefilters.given import AttributeValue, SingleValue

__all__ = ["AttributeValue", "Document", "SingleValue"]


@dataclass(frozen=True, slots=True)
class Document:
    """What was published. `publish_time` is in seconds since 1970, and 0 until the server has accepted it."""

    id: str
    source: str = ""
    xml: bytes = b""
    attributes: Mapping[str, AttributeValue] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    publish_time: float = 0.0
