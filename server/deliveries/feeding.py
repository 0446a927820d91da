"""The feeds of one consumer, and the one task that reads the log for those that are behind.

    feeds    LIVE   BEHIND at 812   WAITING
                      └── read_from(its numbers, 812, as much as there is credit for) ──▶ offer, offer, ... ──▶ LIVE

The task lives only while there is both something to read and credit for it. Records beyond the position announced last
are left alone: they are about to be announced.
"""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from server.deliveries.environment import Environment
from server.deliveries.feeds import Feed, FeedState
from server.deliveries.ports import Record
from server.errors import StoreUnavailable
from server.subscriptions import Schedule, Subscription

if TYPE_CHECKING:
    from server.deliveries.consumer import Consumer

__all__ = ["Feeding"]


class Feeding:
    """Keeps a consumer supplied."""

    __slots__ = ("_consumer", "_environment", "_feeds", "_task")

    def __init__(self, consumer: "Consumer", environment: Environment) -> None:
        self._consumer = consumer
        self._environment = environment
        self._feeds: list[Feed] = []
        self._task: asyncio.Task[None] | None = None

    def feed(self, subscriptions: Sequence[Subscription]) -> None:
        """Start to feed these; from where they stand if they have a backlog."""
        by_schedule: dict[Schedule, list[int]] = {}
        for subscription in subscriptions:
            by_schedule.setdefault(subscription.schedule, []).append(subscription.number)
        for schedule, numbers in by_schedule.items():
            self._feed(schedule, np.array(numbers, np.int64))

    def close(self) -> None:
        """Read nothing more."""
        for feed in self._feeds:
            feed.close()
        self._feeds.clear()

    def merge(self) -> None:
        """Make one feed of those that have the same schedule and have handed over all there is."""
        firsts: dict[Schedule, Feed] = {}
        for feed in [feed for feed in self._feeds if feed.is_open]:
            first = firsts.setdefault(feed.schedule, feed)
            if first is not feed:
                self._environment.routes.feed_of[feed.numbers()] = first.feed_id
                feed.close()
        self._feeds = [feed for feed in self._feeds if feed.state is not FeedState.GONE]

    def wake(self) -> None:
        """Read if there is something to read, and somebody who can take it."""
        if self._task is None and self._next_feed() is not None:
            self._task = self._environment.tasks.start(self._read_all())

    async def settled(self) -> None:
        """Wait until all has been read that can be taken now."""
        if self._task is not None:
            await asyncio.wait({self._task})

    @property
    def oldest(self) -> float:
        """When the first that waits to be read was published; infinite if nothing waits."""
        return min((feed.oldest for feed in self._feeds if feed.oldest is not None), default=float("inf"))

    def _feed(self, schedule: Schedule, numbers: np.ndarray) -> None:
        behind = numbers[self._environment.cursors.has_backlog(numbers)]
        feed = None if len(behind) else self._open_feed(schedule)
        if feed is None:
            feed = Feed(self._consumer, self._environment, schedule)
            self._feeds.append(feed)
        self._environment.routes.feed_of[numbers] = feed.feed_id
        if len(behind):
            feed.go_back(int(self._environment.cursors.positions(behind).min()))

    def _open_feed(self, schedule: Schedule) -> Feed | None:
        return next((feed for feed in self._feeds if feed.is_open and feed.schedule == schedule), None)

    def _next_feed(self) -> Feed | None:
        """One that wants to read and for which there is room; its first look costs no credit."""
        for feed in self._feeds:
            if feed.wants_to_read and (feed.oldest is None or self._has_room(feed)):
                return feed
        return None

    def _has_room(self, feed: Feed) -> bool:
        return self._consumer.has_room(feed.blocked_size, feed.blocked_weight)

    async def _read_all(self) -> None:
        try:
            while (feed := self._next_feed()) is not None:
                await self._read_some(feed)
        except Exception as error:
            self._consumer.fail(error)
            raise
        finally:
            self._task = None

    async def _read_some(self, feed: Feed) -> None:
        numbers, settings = feed.numbers(), self._environment.settings
        if not len(numbers):
            feed.advance(feed.goal)
            return
        n_records = max(min(self._consumer.free_messages(), settings.max_read_messages), 1)
        try:
            records, position = await self._environment.log.read_from(
                numbers, feed.position, n_records, settings.max_read_bytes
            )
        except StoreUnavailable as error:
            await asyncio.sleep(error.retry_after)
            return
        if feed.state is FeedState.BEHIND:
            self._hand_over(feed, records, position)
        elif feed.state is FeedState.UNDATED:
            self._date(feed, records, position)

    def _hand_over(self, feed: Feed, records: Sequence[Record], position: int) -> None:
        """Offer what was read, until somebody says no."""
        end = min(position, feed.goal)
        for record in records:
            if record.position > end:
                break
            mine = self._still_wanted(feed, record)
            if mine.any() and not self._consumer.offer(record, record.numbers[mine], record.sequences[mine]):
                feed.block(record, int(mine.sum()))
                return
            feed.position = record.position
        feed.advance(end)

    def _date(self, feed: Feed, records: Sequence[Record], position: int) -> None:
        """Find the first record that waits for a digest, which says when it is due."""
        for record in records:
            if self._still_wanted(feed, record).any():
                feed.date(record.document.publish_time)
                return
        feed.advance(min(position, feed.goal))

    def _still_wanted(self, feed: Feed, record: Record) -> np.ndarray:
        undone: np.ndarray = self._environment.cursors.undone(record.numbers, record.sequences)
        return undone & (self._environment.routes.feed_of[record.numbers] == feed.feed_id)
