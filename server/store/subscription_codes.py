"""A subscription as a row, and back.

number  token  tenant  id  kind  expression  namespaces  options             revision  create_time  update_time
                                             [] of pairs  {} or what is set

Namespaces and options are JSON; most subscriptions have none, and then the column is empty text.
"""

import json
from collections.abc import Callable
from typing import Any

from server.store.databases import Row
from server.subscriptions import DeliveryPolicy, Email, Filter, Push, Schedule, Subscription, Webhook

__all__ = ["COLUMNS", "from_row", "namespaces_from_text", "to_row"]

COLUMNS = (
    "number",
    "token",
    "tenant",
    "id",
    "kind",
    "expression",
    "namespaces",
    "options",
    "revision",
    "create_time",
    "update_time",
)


def to_row(subscription: Subscription) -> Row:
    wanted = subscription.filter
    return (
        subscription.number,
        subscription.token,
        subscription.tenant,
        subscription.id,
        wanted.kind,
        wanted.expression,
        json.dumps(wanted.namespaces) if wanted.namespaces else "",
        options_to_text(subscription),
        subscription.revision,
        subscription.create_time,
        subscription.update_time,
    )


def from_row(row: Row) -> Subscription:
    number, _, tenant, id_, kind, expression, namespaces, options, revision, create_time, update_time = row
    return Subscription(
        tenant=tenant,
        id=id_,
        filter=Filter(kind, expression, namespaces_from_text(namespaces)),
        number=number,
        revision=revision,
        create_time=create_time,
        update_time=update_time,
        **(options_from_text(options) if options else {}),
    )


def namespaces_from_text(text: str) -> tuple[tuple[str, str], ...]:
    return tuple((prefix, uri) for prefix, uri in json.loads(text)) if text else ()


NO_DELIVERY, NO_SCHEDULE = DeliveryPolicy(), Schedule()


def options_to_text(subscription: Subscription) -> str:
    """What differs from a plain subscription, as JSON."""
    options: dict[str, Any] = {}
    if subscription.labels:
        options["labels"] = dict(subscription.labels)
    if subscription.delivery != NO_DELIVERY:
        policy = subscription.delivery
        options["delivery"] = [policy.ack_deadline, policy.max_attempts, policy.min_backoff, policy.max_backoff]
    if subscription.schedule != NO_SCHEDULE:
        options["schedule"] = [subscription.schedule.every, subscription.schedule.cron]
    if subscription.push is not None:
        options["push"] = _push_to_json(subscription.push)
    return json.dumps(options) if options else ""


def options_from_text(text: str) -> dict[str, Any]:
    found = json.loads(text)
    readers: dict[str, Callable[[Any], Any]] = {
        "labels": dict,
        "delivery": lambda values: DeliveryPolicy(*values),
        "schedule": lambda values: Schedule(*values),
        "push": _push_from_json,
    }
    return {name: readers[name](value) for name, value in found.items()}


def _push_to_json(push: Push) -> dict[str, Any]:
    if isinstance(push, Webhook):
        return {"webhook": [push.url, push.secret, dict(push.headers)]}
    return {"email": [push.to, push.subject]}


def _push_from_json(value: dict[str, Any]) -> Push:
    if "webhook" in value:
        return Webhook(*value["webhook"])
    to, subject = value["email"]
    return Email(tuple(to), subject)
