"""What filters are made of and what they are asked about: a filter, and anything that has XML and attributes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from boolmatch import Interval, Point

__all__ = ["AttributeValue", "Document", "Filter", "Given", "Namespaces", "SingleValue"]

SingleValue = str | int | float | bool | Point | Interval
AttributeValue = SingleValue | Sequence[SingleValue]
Namespaces = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Filter:
    """An expression: `kind` is "xpath" or "boolean". `namespaces` binds the prefixes of its XPath expressions."""

    kind: str
    expression: str
    namespaces: Namespaces = ()


class Document(Protocol):
    """What filters look at. `xml` may be empty, and then every XPath is false."""

    @property
    def xml(self) -> bytes | str: ...
    @property
    def attributes(self) -> Mapping[str, AttributeValue]: ...


@dataclass(frozen=True, slots=True)
class Given:
    """A document and nothing else."""

    xml: bytes | str = b""
    attributes: Mapping[str, AttributeValue] = field(default_factory=dict)
