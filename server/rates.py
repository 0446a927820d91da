"""How many requests a tenant may make: a bucket of tokens for each, filled as time goes by.

    capacity ▏████████░░▕   each request takes one; `per_second` come back every second, up to a second's worth

A tenant with an empty bucket is told when there will be a token again.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

from server.errors import LimitExceeded

__all__ = ["Rates"]

LIMIT = "requests_per_second"


@dataclass(slots=True)
class Bucket:
    """What is left, and when that was."""

    tokens: float
    time: float


class Rates:
    """The buckets of all tenants. With `per_second` 0 there is no limit."""

    def __init__(self, per_second: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_second = per_second
        self._capacity = max(1.0, per_second)
        self._clock = clock
        self._buckets: dict[str, Bucket] = {}

    def take(self, tenant: str) -> None:
        """Count one request; `LimitExceeded` if there have been too many."""
        if not self._per_second:
            return
        bucket = self._filled(tenant)
        if bucket.tokens < 1:
            wait = (1 - bucket.tokens) / self._per_second
            hint = f"try again in {wait:.3f} s"
            raise LimitExceeded(LIMIT, self._per_second, int(self._capacity - bucket.tokens) + 1, hint, wait)
        bucket.tokens -= 1

    def _filled(self, tenant: str) -> Bucket:
        now = self._clock()
        bucket = self._buckets.setdefault(tenant, Bucket(self._capacity, now))
        bucket.tokens = min(self._capacity, bucket.tokens + (now - bucket.time) * self._per_second)
        bucket.time = now
        return bucket
