"""What is too old goes: documents past retention, batches that nobody commits, traces of what was deleted.

Whole segments of the match log are dropped, with cursors moved past them first; what a consumer had not acknowledged by
then is gone, and is said. Of several replicas, the one that keeps the log does it.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from server.errors import Fenced, StoreUnavailable
from server.log.match_log import MatchLog
from server.log.rows import forget_published
from server.store import Store

__all__ = ["Housekeeping", "RetentionSettings"]

logger = logging.getLogger("pathsieve.housekeeping")


@dataclass(frozen=True, slots=True)
class RetentionSettings:
    """Seconds: how long things are kept, and how often it is looked."""

    documents: float = 7 * 86400.0
    dead_letters: float = 30 * 86400.0
    staged: float = 86400.0
    traces: float = 86400.0
    interval: float = 60.0


class Housekeeping:
    """Looks around now and then."""

    def __init__(
        self,
        store: Store,
        log: MatchLog,
        settings: RetentionSettings,
        clock: Callable[[], float],
        is_ours: Callable[[], bool] = lambda: True,
    ) -> None:
        self._store = store
        self._log = log
        self._settings = settings
        self._clock = clock
        self._is_ours = is_ours
        self.lost = 0
        """Notifications that went past retention before anyone had acknowledged them."""

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            await asyncio.sleep(self._settings.interval)
            try:
                if self._is_ours():
                    await self.tidy()
            except Fenced:
                logger.info("another replica tidies up from now on")
            except StoreUnavailable as error:
                logger.warning("what is too old stays for now: %s", error)

    async def tidy(self) -> None:
        """Drop everything that is too old by now."""
        now, settings = self._clock(), self._settings
        expired = await self._log.expire(now - settings.documents)
        await self._store.dead_letters.forget(now - settings.dead_letters)
        await self._store.staging.forget(now - settings.staged)
        await self._store.subscriptions.forget_deleted(now - settings.traces)
        await self._store.write(partial(forget_published, before=now - settings.traces))
        self.lost += expired.never_done
        if expired.never_done:
            logger.warning(
                "%d notifications were older than %.0f s and are gone, though nobody had acknowledged them",
                expired.never_done,
                settings.documents,
            )
