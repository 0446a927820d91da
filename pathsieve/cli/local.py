"""Filters tried out here, without a server: the same engines, imported when they are needed."""

from collections.abc import Mapping
from typing import Any

from pathsieve.errors import InvalidRequest
from pathsieve.results import Tested
from pathsieve.subscriptions import Filter

__all__ = ["tried_locally"]


def tried_locally(chosen: Filter, xml: bytes, attributes: Mapping[str, Any]) -> Tested:
    """Would a filter want this document, and why? `InvalidRequest` if an engine refuses one of them."""
    try:
        explanation = _explain_xpath(chosen, xml) if chosen.xpath else _explain_boolean(chosen, xml, attributes)
    except ValueError as refused:
        raise InvalidRequest(str(refused)) from None
    return Tested(explanation.matched, str(explanation), attributes)


def _explain_xpath(chosen: Filter, xml: bytes) -> Any:
    from xpathfilter import XPathIndex

    index = XPathIndex()
    return index.explain(index.add(chosen.xpath, chosen.namespaces), xml)


def _explain_boolean(chosen: Filter, xml: bytes, attributes: Mapping[str, Any]) -> Any:
    """XPATH atoms are subscriptions of an index of their own, whose ids are their keys."""
    from boolmatch import BooleanIndex
    from xpathfilter import XPathIndex

    paths = XPathIndex()
    index = BooleanIndex(decide=lambda text: paths.add(text, chosen.namespaces))
    subscription = index.add(chosen.boolean)
    true_paths = paths.match(xml).tolist() if len(paths) else ()
    event = {name: _engine_value(value) for name, value in attributes.items()}
    return index.explain(subscription, event, true_paths)


def _engine_value(value: object) -> Any:
    """The engine has classes of its own for points and intervals."""
    import boolmatch
    from pathsieve.values import Interval, Point

    match value:
        case Point(x, y):
            return boolmatch.Point(x, y)
        case Interval(low, high):
            return boolmatch.Interval(low, high)
    return value
