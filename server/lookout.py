"""Whoever follows something in the store: a look at each hint, and one every `interval` in case a hint was lost.

wake() ─┐
        ├──▶ look() ──▶ what is new is taken
time ───┘      └─ fails: told, and tried again after a pause
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable

from server.errors import StoreUnavailable

__all__ = ["Lookout"]

PAUSE = 0.2


class Lookout:
    """Calls `look`, one at a time. `what` is followed, in the words of its log."""

    def __init__(self, look: Callable[[], Awaitable[None]], interval: float, what: str, logger: logging.Logger) -> None:
        self._look = look
        self._interval = interval
        self._what = what
        self._logger = logger
        self._woken = asyncio.Event()

    def wake(self) -> None:
        """There may be something new."""
        self._woken.set()

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            with contextlib.suppress(TimeoutError):  # then it is time for a look of our own
                async with asyncio.timeout(self._interval):  # wait_for of Python 3.11 may swallow a cancellation
                    await self._woken.wait()
            self._woken.clear()
            try:
                await self._look()
            except StoreUnavailable as error:
                self._logger.warning("%s cannot be followed for now: %s", self._what, error)
                await asyncio.sleep(PAUSE)
            except Exception:
                self._logger.exception("following %s: this should not have happened; trying again", self._what)
                await asyncio.sleep(PAUSE)
