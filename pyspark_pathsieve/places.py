"""Where a task writes to, and the numbers of its attempts.

    query ── batch ── partition ─┬─ attempt 5129…   never finished: dropped by the commit of the batch
                                 └─ attempt 8806…   a winner

An attempt has a random number of 62 bits. Those of Spark start again with each application, so that what a driver
left behind when it was killed could be taken for the work of the next one.
"""

import secrets
from dataclasses import dataclass

__all__ = ["Place", "new_attempt"]


@dataclass(frozen=True, slots=True)
class Place:
    """A partition of a batch of a query."""

    query: str
    batch: int
    partition: int

    @property
    def batch_key(self) -> tuple[str, int]:
        """What the server knows the batch by."""
        return self.query, self.batch


def new_attempt() -> int:
    """A number that nobody else has."""
    return secrets.randbits(62)
