"""A subscription as clients see it: which documents, delivered how, and how far delivery has come.

    Subscription
    ├── filter     Filter(xpath=…) or Filter(boolean=…)
    ├── delivery   DeliveryPolicy: deadline, attempts, pauses
    ├── schedule   Schedule: at once, every so many seconds, or at the times of a cron expression
    ├── push       Webhook, Email, or None: notifications wait for `attach` or `pull`
    └── progress   Progress: head, floor, backlog, dead letters

Zero and empty mean the server's default.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

__all__ = [
    "ALL",
    "PREFIX",
    "DeliveryPolicy",
    "Email",
    "Filter",
    "Named",
    "Progress",
    "Schedule",
    "Subscription",
    "Webhook",
    "name_of",
]

PREFIX = "subscriptions/"
ALL = PREFIX + "-"
"""All subscriptions of the tenant, those that are created later too."""


@dataclass(frozen=True, slots=True)
class Filter:
    """Which documents: an XPath 1.0 expression, or a Boolean one over attributes, which may hold XPATH '…'.

    >>> Filter(boolean="price > 100").expression
    'price > 100'
    """

    xpath: str = ""
    boolean: str = ""
    namespaces: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if bool(self.xpath) == bool(self.boolean):
            raise ValueError("expected either xpath=… or boolean=…, found " + ("both" if self.xpath else "neither"))

    @property
    def kind(self) -> str:
        return "xpath" if self.xpath else "boolean"

    @property
    def expression(self) -> str:
        return self.xpath or self.boolean


@dataclass(frozen=True, slots=True)
class DeliveryPolicy:
    """When a message is delivered again, in seconds, and how often."""

    ack_deadline: float = 0.0
    max_attempts: int = 0
    min_backoff: float = 0.0
    max_backoff: float = 0.0


@dataclass(frozen=True, slots=True)
class Schedule:
    """When notifications leave: at once, at most once `every` so many seconds, or at the times of `cron` (UTC)."""

    every: float = 0.0
    cron: str = ""

    def __post_init__(self) -> None:
        if self.every and self.cron:
            raise ValueError("expected either every=… or cron=…, found both")


@dataclass(frozen=True, slots=True)
class Webhook:
    """A POST to a URL, signed if there is a secret. The server never returns the secret."""

    url: str
    secret: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Email:
    """A mail to some addresses."""

    to: tuple[str, ...]
    subject: str = ""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far delivery has come: sequences start at 1 and have no gaps, and all up to `floor` are done."""

    head: int = 0
    floor: int = 0
    backlog: int = 0
    dead_letters: int = 0
    attached: bool = False


@dataclass(frozen=True, slots=True)
class Subscription:
    """A standing wish, as the server has it."""

    name: str
    filter: Filter
    labels: Mapping[str, str] = field(default_factory=dict)
    delivery: DeliveryPolicy = DeliveryPolicy()
    schedule: Schedule = Schedule()
    push: Webhook | Email | None = None
    etag: str = ""
    create_time: datetime | None = None
    update_time: datetime | None = None
    progress: Progress = Progress()
    """Told of one that is asked for; in a list it is all zero."""

    @property
    def id(self) -> str:
        return self.name.removeprefix(PREFIX)


Named = str | Subscription
"""A subscription, its name or its id: any of them says which one is meant."""


def name_of(subscription: Named) -> str:
    """The full name of a subscription.

    >>> name_of("ibm"), name_of("subscriptions/ibm")
    ('subscriptions/ibm', 'subscriptions/ibm')
    """
    name = subscription.name if isinstance(subscription, Subscription) else subscription
    return name if name.startswith(PREFIX) else PREFIX + name
