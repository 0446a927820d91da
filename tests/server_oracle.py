"""The obvious, slow way to decide whether a filter wants a document: lxml for XPath, a tree for Boolean expressions."""

from collections.abc import Mapping

from boolmatch.parser import parse
from server.documents import Document
from server.subscriptions import Filter
from tests import bool_oracle, oracle


def wants(filter: Filter, document: Document, extracted: Mapping[str, object] | None = None) -> bool:
    """Whether the filter wants the document. In a document without XML every XPath is false."""
    namespaces = dict(filter.namespaces)

    def holds(text: str) -> bool:
        return bool(document.xml) and oracle.holds(text, oracle.read(document.xml), namespaces)

    if filter.kind == "xpath":
        return holds(filter.expression)
    event = {**(extracted or {}), **document.attributes}
    return bool_oracle.matches(parse(filter.expression), event, holds)


def wanted(filters: Mapping[int, Filter], document: Document) -> list[int]:
    """The numbers whose filter wants the document, ascending."""
    return sorted(number for number, filter in filters.items() if wants(filter, document))
