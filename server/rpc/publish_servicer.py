"""PublishService: documents in."""

from collections.abc import AsyncIterator, Callable
from typing import Any

from pathsieve.v1 import publish_service_pb2 as wire
from pathsieve.v1.publish_service_pb2_grpc import PublishServiceServicer
from server.broker import Broker
from server.errors import LimitExceeded
from server.readiness import Readiness
from server.rpc.gate import caller
from server.rpc.intake import Intake
from server.rpc.open_streams import OpenStreams
from server.rpc.publish_stream import PublishStream
from server.rpc.stage_stream import StageStream
from server.settings import Limits, Publishing
from server.staging import Part

__all__ = ["PublishServicer"]

ENVELOPE = 1 << 16
"""What a document may weigh beside its XML and still fit the window of a stream."""


class PublishServicer(PublishServiceServicer):
    """Translates for the broker, which is there once the server is ready."""

    def __init__(
        self,
        broker: Callable[[], Broker],
        limits: Limits,
        publishing: Publishing,
        readiness: Readiness,
        streams: OpenStreams,
    ) -> None:
        self._broker = broker
        self._intake = Intake(broker, limits.max_document_bytes)
        self._max_batch = limits.max_batch_documents
        self._window = (publishing.stream_credit_documents, _window_bytes(limits, publishing))
        self._readiness = readiness
        self._streams = streams

    async def Publish(self, request: wire.PublishRequest, context: Any) -> wire.PublishResponse:
        if len(request.documents) > self._max_batch:
            hint = "send several requests, or use PublishStream"
            raise LimitExceeded("max_batch_documents", self._max_batch, len(request.documents), hint)
        return wire.PublishResponse(results=await self._intake.publish(caller().tenant, request.documents))

    async def PublishStream(  # type: ignore[override]  # writes to the context
        self, request_iterator: AsyncIterator[wire.PublishStreamRequest], context: Any
    ) -> None:
        with self._streams.admit(caller()) as revoked:
            stream = PublishStream(self._intake, caller().tenant, request_iterator, context, self._window)
            await stream.run(self._readiness.draining, revoked)

    async def StageDocuments(self, request_iterator: Any, context: Any) -> wire.StageDocumentsResponse:
        return await StageStream(self._broker(), self._intake, caller().tenant).run(request_iterator)

    async def CommitBatch(self, request: wire.CommitBatchRequest, context: Any) -> wire.CommitBatchResponse:
        parts = [Part(part.partition, part.attempt) for part in request.parts]
        sizes = [part.documents if part.HasField("documents") else None for part in request.parts]
        committed = await self._broker().commit(caller().tenant, request.query, request.batch, parts, sizes)
        return wire.CommitBatchResponse(
            documents=committed.documents, matches=committed.matches, repeated_commit=committed.repeated
        )

    async def AbortBatch(self, request: wire.AbortBatchRequest, context: Any) -> wire.AbortBatchResponse:
        await self._broker().abort(caller().tenant, request.query, request.batch)
        return wire.AbortBatchResponse()


def _window_bytes(limits: Limits, publishing: Publishing) -> int:
    """The largest document must fit, or it would wait for ever."""
    wanted = min(publishing.stream_credit_bytes, limits.max_outstanding_bytes_per_stream)
    return max(wanted, limits.max_document_bytes + ENVELOPE)
