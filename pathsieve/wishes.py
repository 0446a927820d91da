"""What a caller may say about a subscription, and the message that it becomes.

    subscribe(xpath="//quote", schedule="0 8 * * *", webhook="https://…")
        ──▶ Wish ──▶ subscription_pb2.Subscription ──▶ (server) ──▶ Subscription

Short forms are spelled out here, once: a schedule may be seconds or a cron expression, a webhook its URL, an e-mail
its address.
"""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TypedDict

from google.protobuf.duration_pb2 import Duration

from pathsieve.documents import from_timestamp
from pathsieve.subscriptions import PREFIX, DeliveryPolicy, Email, Filter, Progress, Schedule, Subscription, Webhook
from pathsieve.v1 import subscription_pb2

__all__ = ["Wish", "from_subscription", "id_of", "mask_of", "to_duration", "to_filter", "wish_message"]


class Wish(TypedDict, total=False):
    """The keywords of `subscribe` and `update`, and the keys of what `import_subscriptions` takes."""

    id: str
    xpath: str
    boolean: str
    namespaces: Mapping[str, str]
    labels: Mapping[str, str]
    delivery: DeliveryPolicy
    schedule: Schedule | str | float | timedelta
    webhook: Webhook | str
    email: Email | str | Sequence[str]


FIELDS = {
    "xpath": "filter",
    "boolean": "filter",
    "namespaces": "filter",
    "labels": "labels",
    "delivery": "delivery",
    "schedule": "schedule",
    "webhook": "push",
    "email": "push",
}
"""Which field of a subscription a keyword is about."""


def mask_of(wish: Wish) -> list[str]:
    """The fields that a wish is about.

    >>> mask_of({"xpath": "//a", "namespaces": {}, "labels": {}})
    ['filter', 'labels']
    """
    return list(dict.fromkeys(FIELDS[keyword] for keyword in wish if keyword != "id"))


def id_of(wish: Wish) -> str:
    """The id that a wish asks for, which may be given as a name; empty: the server chooses one."""
    return wish.get("id", "").removeprefix(PREFIX)


def wish_message(wish: Wish, name: str = "") -> subscription_pb2.Subscription:
    """A subscription as it travels."""
    unknown = set(wish) - set(FIELDS) - {"id"}
    if unknown:
        raise TypeError(f"a subscription has no {', '.join(sorted(unknown))}; expected id, {', '.join(FIELDS)}")
    message = subscription_pb2.Subscription(name=name, labels=wish.get("labels"))
    if "filter" in mask_of(wish):
        chosen = Filter(wish.get("xpath", ""), wish.get("boolean", ""), wish.get("namespaces") or {})
        message.filter.CopyFrom(to_filter(chosen))
    if "delivery" in wish:
        message.delivery.CopyFrom(_to_delivery(wish["delivery"]))
    if "schedule" in wish:
        message.schedule.CopyFrom(_to_schedule(wish["schedule"]))
    _write_push(wish, message)
    return message


def to_filter(chosen: Filter) -> subscription_pb2.Filter:
    """A filter as it travels."""
    if chosen.xpath:
        return subscription_pb2.Filter(xpath=chosen.xpath, namespaces=chosen.namespaces)
    return subscription_pb2.Filter(boolean=chosen.boolean, namespaces=chosen.namespaces)


def to_duration(seconds: float) -> Duration:
    """Seconds as they travel."""
    duration = Duration()
    duration.FromTimedelta(timedelta(seconds=seconds))
    return duration


def _to_delivery(policy: DeliveryPolicy) -> subscription_pb2.DeliveryPolicy:
    return subscription_pb2.DeliveryPolicy(
        ack_deadline=to_duration(policy.ack_deadline),
        max_attempts=policy.max_attempts,
        min_backoff=to_duration(policy.min_backoff),
        max_backoff=to_duration(policy.max_backoff),
    )


def _to_schedule(given: Schedule | str | float | timedelta) -> subscription_pb2.Schedule:
    match given:
        case str():
            return subscription_pb2.Schedule(cron=given)
        case timedelta():
            return subscription_pb2.Schedule(every=to_duration(given.total_seconds()))
        case int() | float():
            return subscription_pb2.Schedule(every=to_duration(given))
    if given.cron:
        return subscription_pb2.Schedule(cron=given.cron)
    return subscription_pb2.Schedule(every=to_duration(given.every) if given.every else None)


def _write_push(wish: Wish, message: subscription_pb2.Subscription) -> None:
    if wish.get("webhook") and wish.get("email"):
        raise ValueError("expected either webhook=… or email=…, found both")
    if webhook := wish.get("webhook"):
        hook = Webhook(webhook) if isinstance(webhook, str) else webhook
        message.push.webhook.CopyFrom(subscription_pb2.Webhook(url=hook.url, secret=hook.secret, headers=hook.headers))
    if email := wish.get("email"):
        mail = email if isinstance(email, Email) else Email((email,) if isinstance(email, str) else tuple(email))
        message.push.email.CopyFrom(subscription_pb2.Email(to=mail.to, subject=mail.subject))


def from_subscription(message: subscription_pb2.Subscription) -> Subscription:
    """The subscription that was sent."""
    return Subscription(
        name=message.name,
        filter=Filter(message.filter.xpath, message.filter.boolean, dict(message.filter.namespaces)),
        labels=dict(message.labels),
        delivery=_from_delivery(message.delivery),
        schedule=Schedule(_seconds(message.schedule.every), message.schedule.cron),
        push=_from_push(message.push),
        etag=message.etag,
        create_time=from_timestamp(message.create_time) if message.HasField("create_time") else None,
        update_time=from_timestamp(message.update_time) if message.HasField("update_time") else None,
        progress=_from_progress(message.progress),
    )


def _seconds(duration: Duration) -> float:
    return duration.ToTimedelta().total_seconds()


def _from_delivery(message: subscription_pb2.DeliveryPolicy) -> DeliveryPolicy:
    return DeliveryPolicy(
        _seconds(message.ack_deadline),
        message.max_attempts,
        _seconds(message.min_backoff),
        _seconds(message.max_backoff),
    )


def _from_push(message: subscription_pb2.Push) -> Webhook | Email | None:
    kind = message.WhichOneof("kind")
    if kind == "webhook":
        return Webhook(message.webhook.url, message.webhook.secret, dict(message.webhook.headers))
    if kind == "email":
        return Email(tuple(message.email.to), message.email.subject)
    return None


def _from_progress(message: subscription_pb2.Progress) -> Progress:
    return Progress(
        message.head_sequence, message.floor_sequence, message.backlog, message.dead_letters, message.attached
    )
