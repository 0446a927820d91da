"""Things as JSON: what `-o json` prints, and what `sub import` reads back."""

from collections.abc import Callable
from typing import Any

from pathsieve.documents import Document
from pathsieve.messages import Message
from pathsieve.subscriptions import DeliveryPolicy, Email, Progress, Schedule, Subscription, Webhook
from pathsieve.values import Interval, Point
from pathsieve.wishes import Wish

__all__ = ["SET_BY_THE_SERVER", "document_facts", "message_facts", "read_wish", "subscription_facts", "value_facts"]

SET_BY_THE_SERVER = {"name", "etag", "create_time", "update_time", "progress"}


def subscription_facts(subscription: Subscription) -> dict[str, Any]:
    """A subscription, in the form that `read_wish` reads, and what the server has added."""
    facts: dict[str, Any] = {"id": subscription.id, subscription.filter.kind: subscription.filter.expression}
    facts["namespaces"] = dict(subscription.filter.namespaces)
    facts["labels"] = dict(subscription.labels)
    facts["delivery"] = _given(subscription.delivery)
    facts["schedule"] = _given(subscription.schedule)
    if isinstance(subscription.push, Webhook):
        facts["webhook"] = {"url": subscription.push.url, "headers": dict(subscription.push.headers)}
    elif subscription.push:
        facts["email"] = {"to": list(subscription.push.to), "subject": subscription.push.subject}
    facts = {key: fact for key, fact in facts.items() if fact}
    facts |= {"name": subscription.name, "etag": subscription.etag}
    facts |= {"create_time": _time(subscription.create_time), "update_time": _time(subscription.update_time)}
    if subscription.progress != Progress():
        facts["progress"] = {key: getattr(subscription.progress, key) for key in subscription.progress.__slots__}
    return facts


def _given(policy: DeliveryPolicy | Schedule) -> dict[str, Any]:
    """What differs from the server's default."""
    return {key: getattr(policy, key) for key in policy.__slots__ if getattr(policy, key)}


def _time(time: Any) -> str | None:
    return time.isoformat() if time else None


def read_wish(facts: Any) -> Wish:
    """A wish out of JSON: an object with the keywords of `Client.subscribe`, or just an XPath expression."""
    if isinstance(facts, str):
        return {"xpath": facts}
    if not isinstance(facts, dict):
        raise ValueError(f'expected an object such as {{"xpath": "//a"}}, found {type(facts).__name__}')
    wish: dict[str, Any] = {key: fact for key, fact in facts.items() if key not in SET_BY_THE_SERVER}
    readers: dict[str, Callable[..., Any]] = {
        "delivery": DeliveryPolicy,
        "schedule": Schedule,
        "webhook": Webhook,
        "email": _read_email,
    }
    for key, reader in readers.items():
        if isinstance(wish.get(key), dict):
            wish[key] = reader(**wish[key])
    return wish  # type: ignore[return-value]


def _read_email(to: Any, subject: str = "") -> Email:
    return Email((to,) if isinstance(to, str) else tuple(to), subject)


def document_facts(document: Document) -> dict[str, Any]:
    """A document; XML that is not UTF-8 is shown with replacements."""
    facts: dict[str, Any] = {"id": document.id, "source": document.source, "publish_time": _time(document.publish_time)}
    facts["xml"] = document.xml.decode(errors="replace")
    facts["attributes"] = {name: value_facts(value) for name, value in document.attributes.items()}
    return {key: fact for key, fact in (facts | {"headers": dict(document.headers)}).items() if fact}


def value_facts(value: object) -> Any:
    """The value of an attribute."""
    match value:
        case Point(x, y):
            return {"x": x, "y": y}
        case Interval(low, high):
            return {"low": low, "high": high}
        case list():
            return [value_facts(one) for one in value]
    return value


def message_facts(message: Message) -> dict[str, Any]:
    """A message: who wants the document, and the document."""
    matches = [{"subscription": name, "sequence": sequence} for name, sequence in message.matches]
    return {"matches": matches, "attempt": message.attempt, "document": document_facts(message.document)}
