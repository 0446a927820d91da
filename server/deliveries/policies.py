"""How patient delivery is with one message.

    attempt 1 ✗ ── 0.5 s ── attempt 2 ✗ ── 1 s ── attempt 3 ✗ ── ... at most 300 s ── attempt 10 ✗ ── dead letter

A message for several subscriptions is delivered and acknowledged as one, so one of them decides for all: the **lead**,
which is the one with the fewest attempts, and the first of those. Attempts are counted for it alone.
"""

from dataclasses import dataclass

import numpy as np

from server.deliveries.settings import DeliverySettings
from server.subscriptions import DeliveryPolicy

__all__ = ["Patience", "PolicyTable", "patience"]


@dataclass(frozen=True, slots=True)
class Patience:
    """A policy with the server's defaults filled in."""

    ack_deadline: float
    max_attempts: int
    min_backoff: float
    max_backoff: float

    def pause(self, failures: int) -> float:
        """How long to wait after so many failures, 1 or more.

        >>> [Patience(30, 10, 0.5, 3).pause(failures) for failures in (1, 2, 3, 4, 5000)]
        [0.5, 1.0, 2.0, 3, 3]
        """
        doublings = min(failures - 1, 62)
        return min(self.min_backoff * (1 << doublings), self.max_backoff)


def patience(policy: DeliveryPolicy, settings: DeliverySettings) -> Patience:
    """What holds for a subscription: its own policy, and the server's where that is zero."""
    min_backoff = policy.min_backoff or settings.min_backoff
    return Patience(
        policy.ack_deadline or settings.ack_deadline,
        policy.max_attempts or settings.max_attempts,
        min_backoff,
        max(policy.max_backoff or settings.max_backoff, min_backoff),
    )


class PolicyTable:
    """The policies of one consumer's slots. Where all are the same, as they nearly always are, a look costs nothing."""

    def __init__(self) -> None:
        self._distinct: list[Patience] = []
        self._places: dict[Patience, int] = {}
        self._of_slot: list[int] = []
        self._array: np.ndarray | None = None

    def set(self, slot: int, policy: Patience) -> None:
        """The policy of a slot: the next new one, or one that is there."""
        place = self._places.setdefault(policy, len(self._distinct))
        if place == len(self._distinct):
            self._distinct.append(policy)
        self._of_slot[slot : slot + 1] = [place]
        self._array = None

    def lead(self, slots: np.ndarray) -> tuple[int, Patience]:
        """Which place of `slots` decides, and its policy."""
        if len(self._distinct) == 1:
            return 0, self._distinct[0]
        if self._array is None:
            self._array = np.array(self._of_slot, np.int64)
        policies = self._array[slots]
        present = np.flatnonzero(np.bincount(policies)).tolist()
        strictest = min(self._distinct[policy].max_attempts for policy in present)
        wanted = [policy for policy in present if self._distinct[policy].max_attempts == strictest]
        place = int(np.isin(policies, wanted).argmax())
        return place, self._distinct[int(policies[place])]
