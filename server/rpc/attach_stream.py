"""One attached stream: what the deliveries have to say goes out, acks and credit come in.

    reader:  ack, nack, extend, credit ──▶ attachment
    writer:  attachment.next() ──▶ slots, messages, heartbeat … goodbye ──▶ OK

    the client ends its side    all acks before that count, then OK
    the token is revoked        a goodbye, then UNAUTHENTICATED
    a request that is wrong     its status
    the client goes away        what it holds is delivered again

An idle stream is this handler, waiting for `next()`, and its reader.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from pathsieve.v1.delivery_service_pb2 import AttachRequest
from server.deliveries import Attachment, EphemeralAttachment, Goodbye, GoodbyeReason
from server.errors import InvalidRequest, Unauthenticated
from server.rpc.delivery_events import credit_from, response_of
from server.rpc.translate import seconds_from

__all__ = ["AttachStream"]

FAREWELL = 1.0
"""Seconds for acks that are on their way when the goodbye is said."""


class ClientLeft(Exception):  # noqa: N818  no error: the client has ended its side
    """There will be no more requests."""


class AttachStream:
    """Stands between a stream and its attachment."""

    def __init__(
        self, attachment: Attachment | EphemeralAttachment, requests: AsyncIterator[AttachRequest], context: Any
    ) -> None:
        self._attachment = attachment
        self._requests = requests
        self._context = context

    async def run(self, revoked: "asyncio.Future[None]") -> None:
        """Serve the stream to its end."""
        revoked.add_done_callback(self._revoke)
        reader = asyncio.create_task(self._read())
        try:
            goodbye = await self._write()
            await asyncio.wait([reader], timeout=FAREWELL)
        except ClientLeft:
            return
        finally:
            revoked.remove_done_callback(self._revoke)
            reader.cancel()
        if goodbye.reason is GoodbyeReason.UNAUTHENTICATED:
            raise Unauthenticated(goodbye.message, why="revoked")

    async def _write(self) -> Goodbye:
        while True:
            event = await self._attachment.next()
            await self._context.write(response_of(event))
            if isinstance(event, Goodbye):
                return event

    async def _read(self) -> None:
        """Take requests; the end of them, or a wrong one, ends the stream through the attachment."""
        try:
            async for request in self._requests:
                self._take(request)
            self._attachment.fail(ClientLeft())
        except Exception as error:  # noqa: BLE001  raised by the attachment's next()
            self._attachment.fail(error)

    def _take(self, request: AttachRequest) -> None:
        kind = request.WhichOneof("kind")
        if kind == "ack":
            self._attachment.ack(request.ack.message_ids)
        elif kind == "credit":
            self._attachment.grant(*credit_from(request.credit, "credit"))
        elif kind == "nack":
            delay = seconds_from(request.nack.delay) if request.nack.HasField("delay") else None
            self._attachment.nack(request.nack.message_ids, delay)
        elif kind == "extend":
            self._attachment.extend(request.extend.message_ids, seconds_from(request.extend.deadline))
        else:
            raise InvalidRequest("kind", f"expected ack, nack, extend or credit after the start, found {kind}")

    def _revoke(self, revoked: "asyncio.Future[None]") -> None:
        if not revoked.cancelled() and revoked.exception() is not None:
            self._attachment.goodbye(GoodbyeReason.UNAUTHENTICATED)
