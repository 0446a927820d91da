"""Protobuf to domain types and back, for subscriptions.

Only the form is looked at here: that there is an expression, that a name is a name. What they say is for the core.
"""

from collections.abc import Callable, Sequence

from pathsieve.v1 import subscription_pb2
from server.errors import InvalidRequest
from server.rpc.translate import duration_to, seconds_from, timestamp_to
from server.subscriptions import PREFIX, DeliveryPolicy, Email, Filter, Push, Schedule, Subscription, Webhook

__all__ = ["changes_from", "filter_from", "id_from", "subscription_from", "subscription_to"]


def id_from(name: str, field: str) -> str:
    """The id in subscriptions/{id}."""
    if not name.startswith(PREFIX) or len(name) == len(PREFIX):
        raise InvalidRequest(field, f"expected {PREFIX}{{id}}, found {name[:200]!r}")
    return name[len(PREFIX) :]


def filter_from(message: subscription_pb2.Filter, field: str = "filter") -> Filter:
    """Which documents."""
    kind = message.WhichOneof("kind")
    if kind is None:
        raise InvalidRequest(field, "expected an expression, xpath or boolean, found none")
    namespaces = message.namespaces
    return Filter(kind, getattr(message, kind), tuple(sorted(namespaces.items())) if namespaces else ())


def subscription_from(message: subscription_pb2.Subscription, tenant: str, subscription_id: str) -> Subscription:
    """A subscription as somebody wants it; what the server sets is not set yet."""
    return Subscription(
        tenant,
        subscription_id,
        filter_from(message.filter),
        dict(message.labels) if message.labels else {},
        delivery_from(message.delivery) if message.HasField("delivery") else DeliveryPolicy(),
        schedule_from(message.schedule) if message.HasField("schedule") else Schedule(),
        push_from(message.push) if message.HasField("push") else None,
    )


def delivery_from(message: subscription_pb2.DeliveryPolicy) -> DeliveryPolicy:
    """Delivered how."""
    return DeliveryPolicy(
        seconds_from(message.ack_deadline),
        message.max_attempts,
        seconds_from(message.min_backoff),
        seconds_from(message.max_backoff),
    )


def schedule_from(message: subscription_pb2.Schedule) -> Schedule:
    """Delivered when."""
    return Schedule(seconds_from(message.every), message.cron)


def push_from(message: subscription_pb2.Push) -> Push | None:
    """Delivered where."""
    kind = message.WhichOneof("kind")
    if kind == "webhook":
        webhook = message.webhook
        return Webhook(webhook.url, webhook.secret, dict(webhook.headers))
    if kind == "email":
        return Email(tuple(message.email.to), message.email.subject)
    return None


CHANGES: dict[str, Callable[[subscription_pb2.Subscription], object]] = {
    "filter": lambda message: filter_from(message.filter),
    "labels": lambda message: dict(message.labels),
    "delivery": lambda message: delivery_from(message.delivery),
    "schedule": lambda message: schedule_from(message.schedule),
    "push": lambda message: push_from(message.push),
}


def changes_from(message: subscription_pb2.Subscription, paths: Sequence[str]) -> dict[str, object]:
    """The new values of the fields that a mask names; an empty mask names all of them."""
    wrong = [path for path in paths if path not in CHANGES]
    if wrong:
        raise InvalidRequest("update_mask", f"expected some of {', '.join(CHANGES)}, found {wrong[0][:200]!r}")
    return {path: CHANGES[path](message) for path in paths or CHANGES}


def subscription_to(
    subscription: Subscription, progress: subscription_pb2.Progress | None = None
) -> subscription_pb2.Subscription:
    """A subscription as it is, without its secret."""
    message = subscription_pb2.Subscription(
        name=subscription.name,
        labels=subscription.labels,
        etag=subscription.etag,
        create_time=timestamp_to(subscription.create_time),
        update_time=timestamp_to(subscription.update_time),
        progress=progress,
    )
    filter_to(subscription.filter, message.filter)
    delivery_to(subscription.delivery, message.delivery)
    if not subscription.schedule.is_immediate:
        schedule_to(subscription.schedule, message.schedule)
    if subscription.push is not None:
        push_to(subscription.push, message.push)
    return message


def filter_to(filter: Filter, message: subscription_pb2.Filter) -> None:
    """Write a filter."""
    setattr(message, filter.kind, filter.expression)
    message.namespaces.update(dict(filter.namespaces))


def delivery_to(policy: DeliveryPolicy, message: subscription_pb2.DeliveryPolicy) -> None:
    """Write a policy; what is 0 stays unset."""
    message.max_attempts = policy.max_attempts
    for name in ("ack_deadline", "min_backoff", "max_backoff"):
        if getattr(policy, name):
            getattr(message, name).CopyFrom(duration_to(getattr(policy, name)))


def schedule_to(schedule: Schedule, message: subscription_pb2.Schedule) -> None:
    """Write a schedule."""
    if schedule.cron:
        message.cron = schedule.cron
    else:
        message.every.CopyFrom(duration_to(schedule.every))


def push_to(push: Push, message: subscription_pb2.Push) -> None:
    """Write where to, without the secret."""
    if isinstance(push, Webhook):
        message.webhook.url = push.url
        message.webhook.headers.update(push.headers)
    else:
        message.email.to.extend(push.to)
        message.email.subject = push.subject
