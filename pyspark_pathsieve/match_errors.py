"""What can go wrong before documents are matched inside Spark: all of it is said in the driver, before any task runs.

    MatchSetupError               a column, a type, a parameter is not what was expected
    └── BadSubscriptionsError     some subscriptions cannot be compiled: which, and why
"""

from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["BadSubscriptionsError", "MatchSetupError", "RefusedSubscription"]

SHOWN = 10


class RefusedSubscription(NamedTuple):
    """A subscription that was left out: its id, or its place where it has none, and why."""

    id: str | int
    reason: str


class MatchSetupError(ValueError):
    """A column, a type or a parameter is not what was expected."""


class BadSubscriptionsError(MatchSetupError):
    """Some subscriptions cannot be compiled; `refused` has all of them."""

    def __init__(self, refused: Sequence[RefusedSubscription]) -> None:
        super().__init__(refused)
        self.refused = tuple(refused)

    def __str__(self) -> str:
        told = [f"  {one.id!r}: " + one.reason.replace("\n", "\n    ") for one in self.refused[:SHOWN]]
        more = len(self.refused) - SHOWN
        told += [f"  and {more:,} more, in `refused`"] if more > 0 else []
        head = f"{len(self.refused):,} of the subscriptions cannot be used; on_bad='skip' leaves them out:"
        return "\n".join([head, *told])
