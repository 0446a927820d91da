"""From the XML of a document to attributes, so that Boolean subscriptions work on plain XML.

    price  = "number(//price)"       a number; NaN is no value
    title  = "string(//title)"       a text; empty is no value
    symbol = "//quote/@symbol"       the texts of all nodes, each once: an attribute with several values
    urgent = "boolean(//urgent)"     always true or false

Extractors are few and the same for all documents, so libxml2 evaluates them one by one. As everywhere, the context is
the document node. lxml would start from the root element, so paths are anchored first: `a/b` is asked as `/a/b`.
"""

import math
from collections.abc import Mapping
from dataclasses import replace

from lxml import etree

from sievefilters.errors import ExtractorError
from sievefilters.given import AttributeValue
from xpathfilter import DocumentLimits, NamespaceError, XPathSyntaxError
from xpathfilter.document import parse_document
from xpathfilter.expression import Binary, Call, Expression, Filter, Negate, Path, render
from xpathfilter.parser import parse

__all__ = ["Extractors"]

ROOT = Path(absolute=True, steps=())
OF_THE_CONTEXT = {"string", "number", "string-length", "normalize-space", "name", "local-name", "namespace-uri"}
"""Functions that take the context node when they are given nothing."""


class Extractors:
    """Named XPath expressions, compiled.

    >>> extractors = Extractors({"price": "number(//price)", "symbol": "//@symbol"})
    >>> extractors.extract(b"<quote symbol='IBM'><price>120</price></quote>")
    {'price': 120.0, 'symbol': ['IBM']}
    >>> extractors.extract(b"<halted/>")
    {}
    """

    def __init__(
        self,
        expressions: Mapping[str, str],
        namespaces: Mapping[str, str] | None = None,
        limits: DocumentLimits | None = None,
    ) -> None:
        self._limits = limits or DocumentLimits()
        self._compiled = {name: _compiled(name, text, namespaces or {}) for name, text in expressions.items()}

    def __len__(self) -> int:
        return len(self._compiled)

    def extract(self, xml: bytes | str) -> dict[str, AttributeValue]:
        """The attributes that a document has; `DocumentError` if it is not good XML."""
        root = parse_document(xml, self._limits)
        found = {name: _value(evaluate(root)) for name, evaluate in self._compiled.items()}
        return {name: value for name, value in found.items() if value is not None}


def _compiled(name: str, text: str, namespaces: Mapping[str, str]) -> etree.XPath:
    try:
        anchored = _anchored(parse(text, namespaces))
    except XPathSyntaxError as error:
        raise ExtractorError(f"extractors.{name}", str(error), error.column) from error
    except NamespaceError as error:
        raise ExtractorError(f"namespaces.{error.prefix}", error.reason) from error
    return etree.XPath(render(anchored), namespaces=dict(namespaces), regexp=False, smart_strings=False)


def _anchored(expression: Expression) -> Expression:
    """The same expression with the document node for its context, wherever the context is looked at."""
    match expression:
        case Path(start=start):
            return replace(expression, absolute=True) if start is None else replace(expression, start=_anchored(start))
        case Filter(primary=primary):
            return replace(expression, primary=_anchored(primary))
        case Negate(operand=operand):
            return Negate(_anchored(operand))
        case Binary(operator=operator, left=left, right=right):
            return Binary(operator, _anchored(left), _anchored(right))
        case Call(function=function, arguments=()) if function in OF_THE_CONTEXT:
            return Call(function, (ROOT,))
        case Call(function=function, arguments=arguments):
            return Call(function, tuple(_anchored(argument) for argument in arguments))
        case _:
            return expression


def _value(result: object) -> AttributeValue | None:
    if isinstance(result, list):
        return list(dict.fromkeys(_text(node) for node in result)) or None
    if isinstance(result, float):
        return result if math.isfinite(result) else None
    if isinstance(result, str):
        return result or None
    return bool(result)


def _text(node: str | etree._Element) -> str:
    return node if isinstance(node, str) else "".join(str(text) for text in node.itertext())
