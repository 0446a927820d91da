"""A subscription as the server carries it: which documents, delivered how.

subscriptions/{id}      the name its tenant knows it by
number                  the server's own: ascending, never used again; arrays are indexed by it
token                   which of 256 shards it belongs to, a stable hash of tenant and id
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from sievefilters.given import Filter

__all__ = ["N_TOKENS", "DeliveryPolicy", "Email", "Filter", "Push", "Schedule", "Subscription", "Webhook", "token_of"]

N_TOKENS = 256
PREFIX = "subscriptions/"


@dataclass(frozen=True, slots=True)
class DeliveryPolicy:
    """Seconds and counts; zero means the server's default."""

    ack_deadline: float = 0.0
    max_attempts: int = 0
    min_backoff: float = 0.0
    max_backoff: float = 0.0


@dataclass(frozen=True, slots=True)
class Schedule:
    """When notifications leave: at once, at most once `every` so many seconds, or at the times of a cron expression."""

    every: float = 0.0
    cron: str = ""

    @property
    def is_immediate(self) -> bool:
        return not self.every and not self.cron


@dataclass(frozen=True, slots=True)
class Webhook:
    """A POST to a URL, signed if there is a secret."""

    url: str
    secret: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Email:
    """A mail to some addresses."""

    to: tuple[str, ...]
    subject: str = ""


Push = Webhook | Email


@dataclass(frozen=True, slots=True)
class Subscription:
    """A standing wish of one tenant."""

    tenant: str
    id: str
    filter: Filter
    labels: Mapping[str, str] = field(default_factory=dict)
    delivery: DeliveryPolicy = DeliveryPolicy()
    schedule: Schedule = Schedule()
    push: Push | None = None
    number: int = 0
    revision: int = 0
    create_time: float = 0.0
    update_time: float = 0.0

    @property
    def name(self) -> str:
        return PREFIX + self.id

    @property
    def etag(self) -> str:
        return f"{self.revision:x}"

    @property
    def token(self) -> int:
        return token_of(self.tenant, self.id)


def token_of(tenant: str, subscription_id: str) -> int:
    """The shard of a subscription, the same on every machine and in every version.

    >>> token_of("default", "ibm-above-100")
    8
    """
    digest = hashlib.blake2b(f"{tenant}/{subscription_id}".encode(), digest_size=2).digest()
    return int.from_bytes(digest, "big") % N_TOKENS
