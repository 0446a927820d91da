"""Is a subscription one that can be kept? The first thing that is wrong is told, with its field.

What a filter says is not looked at here: the engines compile it, and their errors point into it.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import urlsplit

from cronsim import CronSim, CronSimError

from server.errors import InvalidRequest, LimitExceeded
from server.subscriptions import DeliveryPolicy, Email, Filter, Push, Schedule, Subscription, Webhook

__all__ = ["SubscriptionLimits", "check_filter", "check_id", "check_subscription"]

ID = re.compile(r"[A-Za-z0-9._~-]{1,128}")
ADDRESS = re.compile(r"[^@\s<>,;]+@[^@\s<>,;]+")
HEADER = re.compile(r"[A-Za-z0-9-]+")
SOME_TIME = datetime(2000, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class SubscriptionLimits:
    """More than these is refused, and the error has the name of the limit."""

    max_subscriptions_per_tenant: int = 10_000_000
    max_expression_length: int = 65_536
    max_labels: int = 64
    max_label_length: int = 1024


def check_id(subscription_id: str) -> None:
    if not ID.fullmatch(subscription_id):
        raise InvalidRequest(
            "subscription_id", f"expected 1 to 128 letters, digits or . _ ~ -, not {subscription_id!r}"
        )


def check_subscription(subscription: Subscription, limits: SubscriptionLimits) -> None:
    check_id(subscription.id)
    check_filter(subscription.filter, limits)
    _check_labels(subscription.labels, limits)
    _check_delivery(subscription.delivery)
    _check_schedule(subscription.schedule)
    _check_push(subscription.push)


def check_filter(filter: Filter, limits: SubscriptionLimits) -> None:
    if filter.kind not in ("xpath", "boolean") or not filter.expression:
        raise InvalidRequest("filter", "expected an expression: filter.xpath or filter.boolean")
    if len(filter.expression) > limits.max_expression_length:
        raise LimitExceeded("max_expression_length", limits.max_expression_length, len(filter.expression))


def _check_labels(labels: Mapping[str, str], limits: SubscriptionLimits) -> None:
    if len(labels) > limits.max_labels:
        raise LimitExceeded("max_labels", limits.max_labels, len(labels))
    longest = max((len(text) for label in labels.items() for text in label), default=0)
    if longest > limits.max_label_length:
        raise LimitExceeded("max_label_length", limits.max_label_length, longest)


def _check_delivery(policy: DeliveryPolicy) -> None:
    for name in ("ack_deadline", "max_attempts", "min_backoff", "max_backoff"):
        value = getattr(policy, name)
        if value < 0:
            raise InvalidRequest(f"delivery.{name}", f"expected 0 for the default, or more, not {value}")
    if policy.max_backoff and policy.min_backoff > policy.max_backoff:
        raise InvalidRequest("delivery.min_backoff", f"expected at most max_backoff, {policy.max_backoff} s")


def _check_schedule(schedule: Schedule) -> None:
    if schedule.every < 0:
        raise InvalidRequest("schedule.every", f"expected a time above zero, not {schedule.every} s")
    if schedule.cron:
        try:
            CronSim(schedule.cron, SOME_TIME)
        except CronSimError as error:
            expected = f"expected five fields, as in '0 8 * * MON-FRI', not {schedule.cron!r}: {error}"
            raise InvalidRequest("schedule.cron", expected) from error


def _check_push(push: Push | None) -> None:
    if isinstance(push, Webhook):
        _check_webhook(push)
    elif isinstance(push, Email):
        wrong = [address for address in push.to if not ADDRESS.fullmatch(address)]
        if wrong or not push.to:
            raise InvalidRequest("push.email.to", f"expected addresses, as in desk@example.com, not {wrong or 'none'}")
        if "\n" in push.subject or "\r" in push.subject:
            raise InvalidRequest("push.email.subject", "expected a single line")


def _check_webhook(webhook: Webhook) -> None:
    try:
        url = urlsplit(webhook.url)
        is_good = url.scheme in ("http", "https") and bool(url.hostname) and (url.port is None or url.port > 0)
    except ValueError:
        is_good = False
    if not is_good:
        raise InvalidRequest("push.webhook.url", f"expected https://host/path, not {webhook.url!r}")
    for name, value in webhook.headers.items():
        if not HEADER.fullmatch(name) or not value.isprintable():
            raise InvalidRequest("push.webhook.headers", f"expected a printable header, not {name!r}")
