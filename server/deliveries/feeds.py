"""How matches reach a consumer: pushed as they become durable, or read from the log.

    LIVE ──── a record came that no stream could take ────▶ BEHIND at the position before it
    BEHIND ── has read up to the tail ────────────────────▶ LIVE           no await between the look and the switch

    with a schedule:
    WAITING ── a record came: due at ... ──▶ WAITING ── due ──▶ BEHIND ── has read up to the tail of then ──▶ WAITING
    UNDATED ── the first record that waits was read: due at ... ──▶ WAITING

A feed that is BEHIND ignores what comes in: it will read it. So nothing is queued for a consumer beyond its credit, and
nothing is missed or doubled: `position` says up to where all has been handed over.

A consumer has one feed for each schedule, and for a while more: subscriptions that have to go back (a seek, a late
join) get a feed of their own until it has caught up and is merged.
"""

from enum import Enum
from typing import TYPE_CHECKING

import numpy as np

from server.deliveries.environment import Environment
from server.deliveries.leases import size_of, weight_of
from server.deliveries.ports import Record
from server.deliveries.schedules import next_due
from server.deliveries.timers import NOT_SET
from server.subscriptions import Schedule

if TYPE_CHECKING:
    from server.deliveries.consumer import Consumer

__all__ = ["Feed", "FeedState"]


class FeedState(Enum):
    """Where a feed stands; the module's picture has the transitions."""

    LIVE = "live"
    BEHIND = "behind"
    WAITING = "waiting"
    UNDATED = "undated"
    GONE = "gone"


class Feed:
    """Some subscriptions of one consumer with one schedule.

    `oldest` is when the first that waits was published, if one is known to wait.
    """

    __slots__ = (
        "_consumer",
        "_environment",
        "_next_came_in",
        "blocked_size",
        "blocked_weight",
        "feed_id",
        "oldest",
        "position",
        "schedule",
        "state",
        "tick",
        "until",
    )

    def __init__(self, consumer: "Consumer", environment: Environment, schedule: Schedule) -> None:
        self._consumer = consumer
        self._environment = environment
        self.schedule = schedule
        self.feed_id = environment.routes.add(self)
        self.state = FeedState.LIVE if schedule.is_immediate else FeedState.WAITING
        self.position = environment.routes.tail
        self.until = 0
        self.oldest: float | None = None
        self.blocked_size = self.blocked_weight = 1
        self._next_came_in: float | None = None
        self.tick = NOT_SET

    @property
    def consumer(self) -> "Consumer":
        return self._consumer

    @property
    def is_open(self) -> bool:
        """Has it handed over all there is, so that subscriptions without a backlog may join?"""
        return self.state is FeedState.LIVE or (self.state is FeedState.WAITING and self.oldest is None)

    @property
    def wants_to_read(self) -> bool:
        return self.state is FeedState.BEHIND or self.state is FeedState.UNDATED

    @property
    def goal(self) -> int:
        """Up to where to read."""
        return self._environment.routes.tail if self.schedule.is_immediate else self.until

    def numbers(self) -> np.ndarray:
        """Which subscriptions it is for, ascending."""
        return self._consumer.members.fed_by(self.feed_id)

    def go_back(self, position: int) -> None:
        """Start after `position`."""
        self.position = position
        self.until = self._environment.routes.tail
        self.state = FeedState.BEHIND if self.schedule.is_immediate else FeedState.UNDATED

    def arrived(self, record: Record, numbers: np.ndarray, sequences: np.ndarray) -> None:
        """A record has become durable."""
        if self.state is FeedState.LIVE:
            if not self._consumer.offer(record, numbers, sequences):
                self._fall_behind(record, len(numbers))
        elif not self.schedule.is_immediate:
            self._wait_for(record)

    def failed(self, error: Exception) -> None:
        """The streams end with the error; whoever attaches again reads the log."""
        self._consumer.fail(error)

    def fire(self) -> None:
        """The digest is due: all that waits now is read."""
        self.state = FeedState.BEHIND
        self.until = self._environment.routes.tail
        self._consumer.wake()

    def advance(self, position: int) -> None:
        """All up to `position` has been handed over. Reaching the tail and going live are one step."""
        self.position = max(self.position, position)
        if self.position >= self.goal:
            self._catch_up()

    def block(self, record: Record, n_numbers: int) -> None:
        """Nobody can take this record, for so many subscriptions, now."""
        self.oldest = record.document.publish_time
        self.blocked_size = size_of(record.document)
        self.blocked_weight = weight_of(self.blocked_size, n_numbers)

    def date(self, came_in: float) -> None:
        """The oldest that waits came in then: when is it due?"""
        self.state = FeedState.WAITING
        self.oldest = came_in
        self._environment.timers.set(self, next_due(self.schedule, came_in))

    def close(self) -> None:
        """No number leads here any more."""
        self.state = FeedState.GONE
        self._environment.timers.cancel(self)
        self._environment.routes.remove(self.feed_id)

    def _fall_behind(self, record: Record, n_numbers: int) -> None:
        self.state = FeedState.BEHIND
        self.position = record.position - 1
        self.block(record, n_numbers)

    def _wait_for(self, record: Record) -> None:
        """Something for the next digest, or for the one after it."""
        if self.is_open:
            self.position = record.position - 1
            self.date(self._environment.clock())
        elif self.state is FeedState.BEHIND and self._next_came_in is None and record.position > self.until:
            self._next_came_in = self._environment.clock()

    def _catch_up(self) -> None:
        self.oldest = None
        self.blocked_size = self.blocked_weight = 1
        self.state = FeedState.LIVE if self.schedule.is_immediate else FeedState.WAITING
        came_in, self._next_came_in = self._next_came_in, None
        if came_in is not None:
            self.date(came_in)
        self._consumer.feeding.merge()
