"""Long Python loops that let other threads in.

A thread that needs the GIL waits up to five milliseconds for one that is busy with Python code, each time it
needs it. Work in the background (building the next index) gives the GIL away far more often. A sleep of zero
does not do: the sleeper takes the GIL back before anyone who waits for it has woken up.
"""

import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

__all__ = ["breathe", "breathing"]

Item = TypeVar("Item")

PAUSE_SECONDS = 20e-6
WORK_SECONDS = 500e-6
ITEMS_BETWEEN_LOOKS = 64


def breathe() -> None:
    """Give the GIL to whoever waits for it."""
    time.sleep(PAUSE_SECONDS)


def breathing(items: Iterable[Item]) -> Iterator[Item]:
    """The same items, with a breath after each half millisecond of work."""
    due = time.perf_counter() + WORK_SECONDS
    for number, item in enumerate(items):
        yield item
        if number % ITEMS_BETWEEN_LOOKS == 0 and time.perf_counter() > due:
            breathe()
            due = time.perf_counter() + WORK_SECONDS
