"""Messages as they come, for as long as one wants them: an iterator that comes back by itself.

    CONNECTING ──▶ ATTACHED ──▶ ENDED     closed here, or ended by the server for good: replaced, deleted, too slow
        ▲             │
        └── PAUSED ◀──┘ a connection broke, a server stops, or a subscription has changed hands

`Branches` keeps the streams: one, or in a cluster one to each replica that delivers a part. Messages of all of them
come here in one line; in order, those of one subscription.

After a break the server delivers again what was not acknowledged. So messages that nobody has looked at yet are dropped
here then, and what is said about others of the broken stream is too late: counted in `n_late`, and no error.
"""

import asyncio
import time
from types import TracebackType
from typing import Self

from pathsieve.branches import Branches
from pathsieve.calls import Caller
from pathsieve.errors import Cancelled
from pathsieve.inbox import Inbox
from pathsieve.messages import Message
from pathsieve.v1.delivery_service_pb2 import Start

__all__ = ["AsyncAttachment"]

TURN = 0.02
"""Seconds after which the stream gets its turn while there are messages to take, so that acks leave in time."""


class AsyncAttachment:
    """Iterate over it with `async for`, inside `async with` to leave cleanly."""

    def __init__(
        self, caller: Caller, start: Start, labels: list[str], auto_ack: bool, open_ones: set["AsyncAttachment"]
    ) -> None:
        self._next_turn = 0.0
        self._news = asyncio.Event()
        self._inbox = Inbox(auto_ack)
        self._branches = Branches(caller, start, labels, self._inbox, self._news)
        self._running = asyncio.create_task(self._branches.run())
        self._running.add_done_callback(self._ended)
        self._open_ones = open_ones
        open_ones.add(self)

    # -- for who iterates --------------------------------------------------------------------------

    async def ready(self) -> Self:
        """Wait until the server has attached us; from then on nothing is missed. Whoever gives up waiting leaves."""
        try:
            while not self._branches.is_ready:
                await self._next_news()
        except BaseException:
            await self.close()
            raise
        return self

    async def receive(self, timeout: float | None = None) -> Message | None:
        """The next message; None if none comes within `timeout` seconds."""
        try:
            async with asyncio.timeout(timeout):
                while (message := self.take()) is None:
                    await self._next_news()
        except TimeoutError:
            return None
        return message

    def take(self) -> Message | None:
        """A message that has come already, if there is one. In any thread."""
        return self._inbox.take()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Message:
        if time.monotonic() > self._next_turn:
            await asyncio.sleep(0)
            self._next_turn = time.monotonic() + TURN
        while (message := self.take()) is None:
            if self._branches.is_leaving:
                raise StopAsyncIteration
            await self._next_news()
        return message

    async def __aenter__(self) -> Self:
        return await self.ready()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Leave; what is not acknowledged is delivered again, to whoever attaches next."""
        await self._branches.leave()
        self._running.cancel()
        await asyncio.wait([self._running])

    async def _next_news(self) -> None:
        if self._running.done() and not self._running.cancelled():
            self._running.result()
        if self._branches.is_leaving or self._running.done():
            raise Cancelled("the attachment is closed")
        self._news.clear()
        await self._news.wait()

    @property
    def backlog(self) -> int:
        """How many notifications wait, as the last heartbeats told."""
        return self._branches.backlog

    @property
    def oldest_age(self) -> float:
        """For how many seconds the oldest of them does."""
        return self._branches.oldest_age

    @property
    def n_breaks(self) -> int:
        """How many streams broke and were opened again."""
        return self._branches.n_breaks

    @property
    def n_late(self) -> int:
        """How often something was said about a message of a broken stream."""
        return self._branches.n_late

    def _ended(self, running: asyncio.Task[None]) -> None:
        self._open_ones.discard(self)
        self._news.set()
        if not running.cancelled():
            running.exception()  # looked at here, told by whoever iterates
