"""One stream to one replica, and what has become of it.

    OPENING ──▶ ATTACHED ──▶ ENDED     with the error that says why, and whether to come back
       └────────────────────▶ ENDED    told elsewhere (`placements`), refused, or nobody there

What was not acknowledged when it ends is delivered again, on another stream. So messages that nobody has looked at yet
are forgotten then.
"""

import asyncio
from collections.abc import Sequence
from typing import Protocol

import grpc

from pathsieve.attach_stream import AttachStream
from pathsieve.endpoints import Endpoint
from pathsieve.errors import Detached, PathSieveError, Unauthenticated, Unavailable, WrongReplica
from pathsieve.messages import Message, Origin
from pathsieve.statuses import error_of_call
from pathsieve.v1.delivery_service_pb2 import Elsewhere, Goodbye, GoodbyeReason, Placement, Start

__all__ = ["Branch", "Receiver"]

FAREWELL = 2.0
"""Seconds that the server has to take the last acknowledgements when we leave."""


class Receiver(Protocol):
    """Whoever has several branches."""

    def arrived(self, messages: list[Message]) -> None: ...
    def late(self) -> None: ...
    def gone(self, origin: Origin) -> None: ...
    def changed(self) -> None: ...


class Branch:
    """Runs by itself; `error` says that, and why, it has ended."""

    def __init__(self, endpoint: Endpoint, start: Start, labels: Sequence[str], receiver: Receiver) -> None:
        self.address = endpoint.address
        self.names = frozenset(start.subscriptions)
        self.stream = AttachStream(endpoint, start, dict(enumerate(labels)), self)
        self.placements: list[Placement] | None = None
        self.error: Exception | None = None
        self._receiver = receiver
        self._running = asyncio.create_task(self._run())

    @property
    def is_opening(self) -> bool:
        return self.error is None and not self.stream.is_attached

    async def leave(self) -> None:
        """Send what has been said about messages, and end it."""
        self.stream.leave()
        await asyncio.wait([self._running], timeout=FAREWELL)
        self._running.cancel()
        await asyncio.wait([self._running])

    # -- for the stream ----------------------------------------------------------------------------

    def attached(self) -> None:
        self._receiver.changed()

    def arrived(self, messages: list[Message]) -> None:
        self._receiver.arrived(messages)

    def late(self) -> None:
        self._receiver.late()

    # -- its end -----------------------------------------------------------------------------------

    async def _run(self) -> None:
        try:
            self.error = await self._end()
        except Exception as fault:  # noqa: BLE001  a fault of ours is told by whoever iterates
            self.error = fault
        finally:
            self._receiver.gone(self.stream)
            self._receiver.changed()

    async def _end(self) -> PathSieveError:
        try:
            last = await self.stream.run()
        except grpc.aio.AioRpcError as failed:
            return error_of_call(failed, self.address)
        except Unavailable as silent:
            return silent
        if isinstance(last, Elsewhere):
            self.placements = list(last.placements)
            return WrongReplica(f"{self.address} does not deliver this now", {"address": ""})
        return _farewell(last, self.address)


def _farewell(goodbye: Goodbye, address: str) -> PathSieveError:
    """What a goodbye means for us: to come back, or not."""
    reason = GoodbyeReason.Name(goodbye.reason).removeprefix("GOODBYE_REASON_")
    if goodbye.reason in (GoodbyeReason.GOODBYE_REASON_UNSPECIFIED, GoodbyeReason.GOODBYE_REASON_DRAINING):
        return Unavailable(goodbye.message or f"{address} ended the stream", {"address": address}, reason)
    if goodbye.reason == GoodbyeReason.GOODBYE_REASON_MOVED:
        return WrongReplica(goodbye.message or f"{address} delivers only a part of it now", {"address": ""}, reason)
    if goodbye.reason == GoodbyeReason.GOODBYE_REASON_UNAUTHENTICATED:
        return Unauthenticated(goodbye.message or "the token is no longer valid", {}, reason)
    return Detached(goodbye.message or f"the server ended the stream: {reason}", {}, reason)
