"""Trying again, for as long as it may help.

    try ──▶ done
     ▲ └──▶ a passing failure: nobody answers, or not now ── pause ──┐      pauses double, and are of random length
     └───────────────────────────────────────────────────────────────┘      after `patience` seconds: raised

A server that only is slow never uses up the patience: it counts from the first failure after the last success.
"""

import logging
import random
import time
from collections.abc import Callable
from typing import TypeVar

from pathsieve.errors import DeadlineExceeded, PathSieveError
from pathsieve.statuses import is_passing

__all__ = ["Patience"]

LOG = logging.getLogger("pathsieve.spark")
SHORTEST, LONGEST = 0.1, 5.0

Result = TypeVar("Result")


class Patience:
    """How long to go on, in seconds."""

    def __init__(
        self, seconds: float, clock: Callable[[], float] = time.monotonic, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._seconds = seconds
        self._clock = clock
        self._sleep = sleep

    def calling(
        self, call: Callable[[], Result], is_harmless: Callable[[PathSieveError], bool] | None = None
    ) -> Result:
        """What `call` returns at last; `is_harmless` tells which failures pass, if it is not the usual ones."""
        passes = is_harmless or _passes
        pause, end = SHORTEST, None
        while True:
            try:
                return call()
            except PathSieveError as error:
                end = end or self._clock() + self._seconds
                wait = max(pause * random.uniform(0.5, 1.0), getattr(error, "retry_after", None) or 0.0)
                if not passes(error) or self._clock() + wait > end:
                    raise
                LOG.info("again in %.1f s: %s", wait, error)
            self._sleep(wait)
            pause = min(2 * pause, LONGEST)


def _passes(error: PathSieveError) -> bool:
    return is_passing(error) or isinstance(error, DeadlineExceeded)
