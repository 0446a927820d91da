"""Changes of subscriptions, wherever they were made: read from the store, in the order of their revisions.

    hint, a wait for `reached`, or a look every `interval` ──▶ changed_since ──▶ holdings, then notifying
                                                                                 └──▶ applied

A document carries the revision that was the newest when it came; whoever matches it first waits until that one is
`reached`. So a subscription that was acknowledged before the document was sent is always asked, on whichever replicas
the two happened; the hint only makes the wait short.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from server.cluster.holdings import Holdings
from server.lookout import Lookout
from server.store import Store
from server.store.subscriptions import Changes

__all__ = ["Following"]

logger = logging.getLogger("pathsieve.cluster")


class Following:
    """Follows the changes. `applied` is a revision: this and all before it are in the engines."""

    def __init__(
        self,
        store: Store,
        holdings: Holdings,
        on_changes: Callable[[Changes], Awaitable[None]],
        interval: float = 1.0,
    ) -> None:
        self.applied = 0
        self._store = store
        self._holdings = holdings
        self._on_changes = on_changes
        self._read = 0
        self._advanced = asyncio.Condition()
        lookout = Lookout(self.catch_up, interval, "changes of subscriptions", logger)
        self.wake, self.run = lookout.wake, lookout.run

    async def start(self) -> None:
        """Begin with the newest revision, before anything is loaded."""
        self._read = self.applied = await self._store.subscriptions.revision()

    async def reached(self, revision: int) -> None:
        """Wait until all changes up to `revision` are in the engines."""
        if self.applied >= revision:
            return
        self.wake()
        async with self._advanced:
            await self._advanced.wait_for(lambda: self.applied >= revision)

    async def catch_up(self) -> None:
        """Take all that there is."""
        while await self._take_some():
            pass

    async def _take_some(self) -> bool:
        """Take some changes; True if there are more."""
        async with self._holdings.changing:
            changes = await self._store.subscriptions.changed_since(self._read)
            await self._holdings.apply(changes)
            await self._on_changes(changes)
            self._read = changes.revision
        if changes.revision < changes.newest:
            return True
        # Only now: a subscription of an early revision may have been changed since, and come with its late one.
        async with self._advanced:
            self.applied = changes.newest
            self._advanced.notify_all()
        return False
