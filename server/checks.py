"""Is a subscription one that can be kept? The first thing that is wrong is told, with its field.

What a filter says is not looked at here: the engines compile it, and their errors point into it.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from server.deliveries import DeliverySettings
from server.deliveries.push_checks import check_push
from server.deliveries.schedules import check_schedule
from server.errors import InvalidRequest, LimitExceeded
from server.subscriptions import DeliveryPolicy, Filter, Subscription

__all__ = ["SubscriptionLimits", "check_filter", "check_id", "check_subscription"]

ID = re.compile(r"[A-Za-z0-9._~-]{1,128}")


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


def check_subscription(subscription: Subscription, limits: SubscriptionLimits, delivery: DeliverySettings) -> None:
    check_id(subscription.id)
    check_filter(subscription.filter, limits)
    _check_labels(subscription.labels, limits)
    _check_delivery(subscription.delivery)
    check_schedule(subscription.schedule)
    if subscription.push is not None:
        check_push(subscription.push, delivery)


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
