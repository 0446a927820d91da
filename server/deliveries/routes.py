"""Who is to hear of a match: arrays from a subscription's number to the feed that listens for it.

    numbers   3  4  9 12 40         of a record
    feed_of   2  0  2  7  0         one numpy take; 0 is nobody
              └──┬──┘  └── feed 7 hears of 12, in one step
                 └──────── feed 2 hears of 3 and 9, in one step

`slot_of` says which small number stands for the subscription on its streams. A subscription has one feed at a time, so
one array of each kind is enough for all consumers.
"""

import logging
from collections.abc import Iterator
from typing import Protocol

import numpy as np

from server.deliveries.ports import Record

__all__ = ["NOBODY", "Listener", "Routes"]

logger = logging.getLogger("pathsieve.deliveries")

NOBODY = 0
FIRST_CAPACITY = 1024


class Listener(Protocol):
    """What a number can lead to."""

    def arrived(self, record: Record, numbers: np.ndarray, sequences: np.ndarray) -> None:
        """A record has become durable that concerns these numbers."""

    def failed(self, error: Exception) -> None:
        """`arrived` has raised this: what was meant for this listener has to come another way."""


class Routes:
    """Feeds by number. Ids of feeds that are gone are used again. `tail` is the position announced last."""

    def __init__(self, tail: int) -> None:
        self.tail = tail
        self.feed_of = np.zeros(FIRST_CAPACITY, np.int32)
        self.slot_of = np.zeros(FIRST_CAPACITY, np.uint32)
        self._listeners: list[Listener | None] = [None]
        self._free: list[int] = []

    def ensure(self, number: int) -> None:
        """Have room for `number`."""
        if number >= len(self.feed_of):
            capacity = max(number + 1, 2 * len(self.feed_of))
            self.feed_of = np.append(self.feed_of, np.zeros(capacity - len(self.feed_of), np.int32))
            self.slot_of = np.append(self.slot_of, np.zeros(capacity - len(self.slot_of), np.uint32))

    def add(self, listener: Listener) -> int:
        """An id for a feed."""
        if self._free:
            feed_id = self._free.pop()
            self._listeners[feed_id] = listener
            return feed_id
        self._listeners.append(listener)
        return len(self._listeners) - 1

    def remove(self, feed_id: int) -> None:
        """The feed is gone, and no number leads to it any more."""
        self._listeners[feed_id] = None
        self._free.append(feed_id)

    def unroute(self, number: int, feed_id: int) -> None:
        """The number leads nowhere, if it led to this feed."""
        if number < len(self.feed_of) and self.feed_of[number] == feed_id:
            self.feed_of[number] = NOBODY

    def listener(self, number: int) -> Listener | None:
        """Who hears of `number`."""
        return self._listeners[self.feed_of[number]] if number < len(self.feed_of) else None

    def listeners(self, numbers: np.ndarray) -> set[Listener]:
        """Who hears of any of `numbers`."""
        found = (self._listeners[feed_id] for feed_id in np.unique(self.feed_of[numbers]).tolist())
        return {listener for listener in found if listener is not None}

    def hears(self, numbers: np.ndarray) -> bool:
        """Does anybody hear of any of `numbers`, which ascend?"""
        known = numbers[: np.searchsorted(numbers, len(self.feed_of))]
        return bool((self.feed_of[known] != NOBODY).any())

    def announce(self, record: Record) -> None:
        """Tell each feed that listens for a number of the record, once."""
        self.tail = record.position
        if not len(record.numbers):
            return
        self.ensure(int(record.numbers[-1]))
        feeds = self.feed_of[record.numbers]
        for feed_id, numbers, sequences in _split(feeds, record.numbers, record.sequences):
            listener = self._listeners[feed_id]
            if listener is not None:
                _tell(listener, record, numbers, sequences)


def _tell(listener: Listener, record: Record, numbers: np.ndarray, sequences: np.ndarray) -> None:
    """One listener that fails must not keep a record from the others, nor fail the publisher."""
    try:
        listener.arrived(record, numbers, sequences)
    except Exception as error:
        logger.exception("the record at position %s could not be handed over", record.position)
        listener.failed(error)


def _split(
    feeds: np.ndarray, numbers: np.ndarray, sequences: np.ndarray
) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """The numbers of each feed, still ascending; quick where all have the same one."""
    first = int(feeds[0])
    if (feeds == first).all():
        if first != NOBODY:
            yield first, numbers, sequences
        return
    order = np.argsort(feeds, kind="stable")
    ordered = feeds[order]
    numbers, sequences = numbers[order], sequences[order]
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])).tolist()
    for start, end in zip(starts, [*starts[1:], len(ordered)], strict=True):
        feed_id = int(ordered[start])
        if feed_id != NOBODY:
            yield feed_id, numbers[start:end], sequences[start:end]
