"""A document as the server carries it: XML, attributes, or both."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from boolmatch import Interval, Point

__all__ = ["AttributeValue", "Document"]

SingleValue = str | int | float | bool | Point | Interval
AttributeValue = SingleValue | Sequence[SingleValue]


@dataclass(frozen=True, slots=True)
class Document:
    """What was published. `publish_time` is in seconds since 1970, and 0 until the server has accepted it."""

    id: str
    source: str = ""
    xml: bytes = b""
    attributes: Mapping[str, AttributeValue] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    publish_time: float = 0.0
