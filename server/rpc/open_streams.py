"""The streams that are open, so that they can be ended when their token is: revoked, expired, of another tenant now.

stream ──admit(principal)──▶ a future that fails when the principal is no longer valid
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from server.errors import Unauthenticated
from server.security import Guard, Principal

__all__ = ["OpenStreams"]


class OpenStreams:
    """Who has streams open. Belongs to the event loop."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._open: dict[asyncio.Future[None], Principal] = {}

    def __len__(self) -> int:
        return len(self._open)

    @contextmanager
    def admit(self, principal: Principal) -> Iterator["asyncio.Future[None]"]:
        """Count a stream while it lives. The future fails if its principal may no longer be here."""
        revoked: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._open[revoked] = principal
        try:
            yield revoked
        finally:
            del self._open[revoked]
            revoked.cancel()

    def check(self) -> None:
        """End the streams of those who would not be let in any more."""
        valid: dict[Principal, bool] = {}
        for revoked, principal in self._open.items():
            if principal not in valid:
                valid[principal] = self._guard.is_still_valid(principal)
            if not valid[principal] and not revoked.done():
                revoked.set_exception(Unauthenticated("the token is no longer valid; ask for a new one", why="revoked"))
