"""One stream of messages from a server: who is attached, what came, what is said about it.

    start ──▶ first response: attached ──▶ messages, heartbeats ──▶ goodbye, or it breaks
        └───▶ first response: elsewhere, which is the only one

The server is heard from at least every `HEARTBEAT` seconds; when it is silent for three times as long, the
connection is taken for dead.
"""

import asyncio
import contextlib
import logging
from typing import Protocol

import grpc

from pathsieve.endpoints import Endpoint
from pathsieve.errors import Unavailable
from pathsieve.messages import Message
from pathsieve.outbox import Outbox
from pathsieve.v1.delivery_service_pb2 import AttachRequest, AttachResponse, Elsewhere, Goodbye, Heartbeat, Start
from pathsieve.window import Window

__all__ = ["HEARTBEAT", "AttachStream"]

HEARTBEAT = 10.0
SILENCE = 3 * HEARTBEAT

LOG = logging.getLogger("pathsieve.attach")


class Listener(Protocol):
    """Whoever wants to know what a stream brings; `late`: something was said about a message after the end."""

    def attached(self) -> None: ...
    def arrived(self, messages: list[Message]) -> None: ...
    def late(self) -> None: ...


class AttachStream:
    """The origin of messages: what is said about them goes back on it, as long as it is open.

    `heartbeat` is the last one: how much waits on the server.
    """

    def __init__(self, endpoint: Endpoint, start: Start, names: dict[int, str], listener: Listener) -> None:
        self.names = names
        self.is_open = True
        self.is_attached = False
        self.heartbeat = Heartbeat()
        self._listener = listener
        self._outbox = Outbox()
        self._window = Window(start.credit)
        self._start = start
        self._call: grpc.aio.StreamStreamCall[AttachRequest, AttachResponse]
        self._call = endpoint.delivery.Attach(metadata=endpoint.metadata)
        self._silence = asyncio.timeout(SILENCE)

    # -- for messages, in any thread ---------------------------------------------------------------

    def ack(self, message_id: int) -> None:
        if not self._is_late("acknowledged", message_id):
            self._outbox.ack(message_id)

    def nack(self, message_id: int, delay: float | None) -> None:
        if not self._is_late("returned", message_id):
            self._outbox.nack(message_id, delay)

    def extend(self, message_id: int, seconds: float) -> None:
        if not self._is_late("extended", message_id):
            self._outbox.extend(message_id, seconds)

    def took(self, n_bytes: int) -> None:
        granted = self._window.took(n_bytes)
        if granted and self.is_open:
            self._outbox.grant(*granted)

    def _is_late(self, done: str, message_id: int) -> bool:
        if not self.is_open:
            self._listener.late()
            LOG.debug("message %s was %s after its stream had ended; it is delivered again", message_id, done)
        return not self.is_open

    # -- on the loop -------------------------------------------------------------------------------

    def leave(self) -> None:
        """Send what has been said, and end the stream; what is said from now on is late."""
        self.is_open = False
        self._outbox.close()

    async def run(self) -> Goodbye | Elsewhere:
        """Read to the end; what the server said when it ended the stream, an empty goodbye if it said nothing."""
        reading = asyncio.create_task(self._read())
        writing = asyncio.create_task(self._write())
        try:
            async with self._silence:
                await asyncio.wait([reading, writing], return_when=asyncio.FIRST_COMPLETED)
                if writing.done():
                    await writing
                return await reading
        except TimeoutError:
            raise Unavailable(f"nothing heard for {SILENCE:g} s") from None
        finally:
            self.is_open = False
            reading.cancel()
            writing.cancel()
            await asyncio.gather(reading, writing, return_exceptions=True)
            self._call.cancel()

    async def _read(self) -> Goodbye | Elsewhere:
        async for response in self._call:
            self._silence.reschedule(asyncio.get_running_loop().time() + SILENCE)
            if response.WhichOneof("kind") == "goodbye":
                return response.goodbye
            if response.WhichOneof("kind") == "elsewhere":
                return response.elsewhere
            self._pass_on(response)
        return Goodbye()

    def _pass_on(self, response: AttachResponse) -> None:
        kind = response.WhichOneof("kind")
        if kind == "slots":
            slots = zip(response.slots.slots, response.slots.names, strict=True)
            self.names.update((slot, name) for slot, name in slots if name)  # an ephemeral filter has none
        if not self.is_attached:
            self.is_attached = True
            self._listener.attached()
        if kind == "messages":
            self._listener.arrived([Message(message, self) for message in response.messages.messages])
        elif kind == "heartbeat":
            self.heartbeat = response.heartbeat

    async def _write(self) -> None:
        """Start, then pass on what is said; that the stream has ended is told by `_read`, with the reason."""
        with contextlib.suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):
            await self._call.write(AttachRequest(start=self._start))
            while requests := await self._outbox.requests():
                for request in requests:
                    await self._call.write(request)
            await self._call.done_writing()
