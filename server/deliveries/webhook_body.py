"""The JSON that a webhook gets.

    {"subscription": "subscriptions/ibm",
     "messages": [{"sequence": 7, "attempt": 1,
                   "document": {"id": "q-1", "source": "nyse", "publish_time": "2026-01-01T10:00:00Z",
                                "xml": "<quote/>", "attributes": {"price": 120}, "headers": {}}}]}

A document that is not UTF-8 has `xml_base64` instead of `xml`: what was published are bytes.
"""

import base64
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from boolmatch import Interval, Point
from server.deliveries.transports import Notification
from server.documents import AttributeValue, Document
from server.subscriptions import Subscription

__all__ = ["webhook_body"]


def webhook_body(subscription: Subscription, notifications: Sequence[Notification]) -> bytes:
    """The JSON that is posted."""
    messages = [
        {
            "sequence": notification.sequence,
            "attempt": notification.attempt,
            "document": _document(notification.document),
        }
        for notification in notifications
    ]
    body = {"subscription": subscription.name, "messages": messages}
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()


def _document(document: Document) -> dict[str, Any]:
    published = datetime.fromtimestamp(document.publish_time, UTC).isoformat().replace("+00:00", "Z")
    return {
        "id": document.id,
        "source": document.source,
        "publish_time": published,
        **_xml(document.xml),
        "attributes": {name: _value(value) for name, value in document.attributes.items()},
        "headers": dict(document.headers),
    }


def _xml(xml: bytes) -> dict[str, str]:
    """As text if it is UTF-8, else as base64: the bytes themselves are what was published."""
    try:
        return {"xml": xml.decode()}
    except UnicodeDecodeError:
        return {"xml_base64": base64.b64encode(xml).decode()}


def _value(value: AttributeValue) -> Any:
    """A point is {"x", "y"}, an interval {"low", "high"}; the rest is JSON as it is."""
    if isinstance(value, str | int | float):
        return value
    if isinstance(value, Point):
        return {"x": value.x, "y": value.y}
    if isinstance(value, Interval):
        return {"low": value.low, "high": value.high}
    return [_value(single) for single in value]
