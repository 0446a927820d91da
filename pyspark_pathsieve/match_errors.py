"""What can go wrong before documents are matched inside Spark: all of it is said in the driver, before any task runs.

    ConnectorError
    └── MatchSetupError (also a ValueError)     a parameter is not what was expected
        └── BadSubscriptionsError               some subscriptions cannot be used: `refused`

Columns that are missing or of a wrong type are a `ColumnError`, as they are of a sink.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from pyspark_pathsieve.errors import ConnectorError

__all__ = ["BadSubscriptionsError", "MatchSetupError", "RefusedSubscription"]

SHOWN = 10


class RefusedSubscription(NamedTuple):
    """A subscription that was left out: its id, or its place where it has none, and why."""

    id: str | int
    reason: str


class MatchSetupError(ConnectorError, ValueError):
    """A parameter is not what was expected."""


class BadSubscriptionsError(MatchSetupError):
    """Some subscriptions cannot be used; `refused` has all of them."""

    def __init__(self, refused: Sequence[RefusedSubscription]) -> None:
        super().__init__(_told(refused), {"refused": tuple(refused)})

    @property
    def refused(self) -> tuple[RefusedSubscription, ...]:
        found: tuple[RefusedSubscription, ...] = self.facts["refused"]
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.refused,)


def _told(refused: Sequence[RefusedSubscription]) -> str:
    told = [f"  {one.id!r}: " + one.reason.replace("\n", "\n    ") for one in refused[:SHOWN]]
    more = len(refused) - SHOWN
    told += [f"  and {more:,} more, in `refused`"] if more > 0 else []
    head = f"{len(refused):,} of the subscriptions cannot be used; on_bad='skip' leaves them out:"
    return "\n".join([head, *told])
