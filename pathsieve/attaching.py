"""Messages as they come, for as long as one wants them: an iterator that comes back by itself.

    CONNECTING ──▶ ATTACHED ──▶ ENDED     closed here, or ended by the server for good: replaced, deleted, too slow
        ▲             │
        └── PAUSED ◀──┘ the connection broke, or the server stops

After a break the server delivers again what was not acknowledged. So messages that nobody has looked at yet are dropped
here then, and what is said about others of the broken stream is too late: counted in `n_late`, and no error.
"""

import asyncio
import logging
import time
from types import TracebackType
from typing import Self
from uuid import uuid4

import grpc

from pathsieve.attach_stream import HEARTBEAT, AttachStream
from pathsieve.calls import Caller, Pauses
from pathsieve.errors import (
    AlreadyAttached,
    Cancelled,
    Detached,
    PathSieveError,
    ServerFault,
    Unauthenticated,
    Unavailable,
)
from pathsieve.inbox import Inbox
from pathsieve.messages import Message
from pathsieve.statuses import error_of_call, is_passing
from pathsieve.v1.delivery_service_pb2 import Goodbye, GoodbyeReason, Heartbeat, Start
from pathsieve.wishes import to_duration

__all__ = ["AsyncAttachment"]

LOG = logging.getLogger("pathsieve.attach")
FAREWELL = 2.0
"""Seconds that the server has to take the last acknowledgements when we leave."""

TURN = 0.02
"""Seconds after which the stream gets its turn while there are messages to take, so that acks leave in time."""


class AsyncAttachment:
    """Iterate over it with `async for`, inside `async with` to leave cleanly.

    `backlog` and `oldest_age` are what the last heartbeat told: how many notifications wait, and for how many seconds
    the oldest does. `n_breaks` counts streams that broke, `n_late` what was said about messages of broken streams.
    """

    def __init__(
        self, caller: Caller, start: Start, names: list[str], auto_ack: bool, open_ones: set["AsyncAttachment"]
    ) -> None:
        self.backlog = 0
        self.oldest_age = 0.0
        self.n_breaks = 0
        self.n_late = 0
        self._caller = caller
        self._start = start
        start.consumer = start.consumer or uuid4().hex
        start.heartbeat.CopyFrom(to_duration(HEARTBEAT))
        self._names = names
        self._inbox = Inbox(start.credit.messages, start.credit.bytes, auto_ack)
        self._stream: AttachStream | None = None
        self._is_attached = self._is_leaving = False
        self._next_turn = 0.0
        self._news = asyncio.Event()
        self._running = asyncio.create_task(self._run())
        self._running.add_done_callback(self._ended)
        self._open_ones = open_ones
        open_ones.add(self)

    # -- for who iterates --------------------------------------------------------------------------

    async def ready(self) -> Self:
        """Wait until the server has attached us; from then on nothing is missed. Whoever gives up waiting leaves."""
        try:
            while not self._is_attached:
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
            if self._is_leaving:
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
        self._is_leaving = True
        if self._stream and self._stream.is_open:
            self._stream.leave()
            await asyncio.wait([self._running], timeout=FAREWELL)
        self._running.cancel()
        await asyncio.wait([self._running])

    async def _next_news(self) -> None:
        if self._running.done() and not self._running.cancelled():
            self._running.result()
        if self._is_leaving or self._running.done():
            raise Cancelled("the attachment is closed")
        self._news.clear()
        await self._news.wait()

    # -- for the stream ----------------------------------------------------------------------------

    def attached(self) -> None:
        self._is_attached = True
        self._news.set()

    def arrived(self, messages: list[Message]) -> None:
        self._inbox.put(messages)
        self._news.set()

    def heard(self, heartbeat: Heartbeat) -> None:
        self.backlog = heartbeat.backlog
        self.oldest_age = heartbeat.oldest_age.ToTimedelta().total_seconds()

    def late(self) -> None:
        self.n_late += 1

    # -- coming back -------------------------------------------------------------------------------

    async def _run(self) -> None:
        pauses = Pauses(self._caller.patience)
        while not self._is_leaving:
            error = await self._attach()
            self._inbox.drop_stale()
            if self._is_leaving:
                break
            if self._stream and self._stream.is_attached:
                pauses = Pauses(None)
                self.n_breaks += 1
            LOG.info("detached: %s; attaching again", error)
            self._caller.endpoints.move_on()
            await pauses.pause(error)

    async def _attach(self) -> PathSieveError:
        """One stream, to its end; the passing error that ended it."""
        endpoint = self._caller.endpoints.current
        self._stream = AttachStream(endpoint, self._start, dict(enumerate(self._names)), self)
        try:
            error = _farewell(await self._stream.run(), endpoint.address)
        except grpc.aio.AioRpcError as failed:
            error = error_of_call(failed, endpoint.address)
        except Unavailable as silent:
            error = silent
        if not self._comes_back(error):
            raise error
        return error

    def _comes_back(self, error: PathSieveError) -> bool:
        """Once attached, also after a fault, and while the server has not noticed that our last stream is gone."""
        broken = isinstance(error, ServerFault | AlreadyAttached) and self._is_attached
        return self._is_leaving or is_passing(error) or broken

    def _ended(self, running: asyncio.Task[None]) -> None:
        self._open_ones.discard(self)
        self._news.set()
        if not running.cancelled():
            running.exception()  # looked at here, told by whoever iterates


def _farewell(goodbye: Goodbye, address: str) -> PathSieveError:
    """What a goodbye means for us: to come back, or not."""
    reason = GoodbyeReason.Name(goodbye.reason).removeprefix("GOODBYE_REASON_")
    if goodbye.reason in (GoodbyeReason.GOODBYE_REASON_UNSPECIFIED, GoodbyeReason.GOODBYE_REASON_DRAINING):
        return Unavailable(goodbye.message or f"{address} ended the stream", {"address": address}, reason)
    if goodbye.reason == GoodbyeReason.GOODBYE_REASON_UNAUTHENTICATED:
        return Unauthenticated(goodbye.message or "the token is no longer valid", {}, reason)
    return Detached(goodbye.message or f"the server ended the stream: {reason}", {}, reason)
