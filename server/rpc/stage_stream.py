"""A part of a batch, staged as it comes.

    first message: query, batch, part ──┐
    documents of any message ───────────┴──▶ broker, message by message ──▶ how many are staged, and those refused

A part that is sent again from its beginning replaces what had come before.
"""

from collections.abc import AsyncIterator, Sequence

from pathsieve.v1.publish_service_pb2 import PublishResult, StageDocumentsRequest, StageDocumentsResponse
from server.broker import Broker
from server.documents import Document
from server.errors import InvalidRequest
from server.rpc.intake import Intake, result_of
from server.staging import Part

__all__ = ["StageStream"]


class StageStream:
    """One attempt at one partition."""

    def __init__(self, broker: Broker, intake: Intake, tenant: str) -> None:
        self._broker = broker
        self._intake = intake
        self._tenant = tenant
        self._n_documents = 0
        self._refused: list[PublishResult] = []

    async def run(self, requests: AsyncIterator[StageDocumentsRequest]) -> StageDocumentsResponse:
        """Serve the stream to its end."""
        first: StageDocumentsRequest | None = None
        async for request in requests:
            first = first or _checked(request)
            await self._stage(first, self._intake.read(request.documents))
        if first is None:
            raise InvalidRequest("query", "expected a message with query, batch and part, found none")
        return StageDocumentsResponse(staged=self._n_documents - len(self._refused), refused=self._refused)

    async def _stage(self, first: StageDocumentsRequest, read: Sequence[Document | Exception]) -> None:
        places = [place for place, item in enumerate(read) if isinstance(item, Document)]
        documents = [item for item in read if isinstance(item, Document)]
        part = Part(first.part.partition, first.part.attempt)
        bad = await self._broker.stage(self._tenant, first.query, first.batch, part, documents, self._n_documents)
        refused = {place: item for place, item in enumerate(read) if isinstance(item, Exception)}
        refused |= {places[place]: error for place, error in bad}
        self._refused += [result_of(self._n_documents + place, refused[place]) for place in sorted(refused)]
        self._n_documents += len(read)


def _checked(request: StageDocumentsRequest) -> StageDocumentsRequest:
    if not request.HasField("part"):
        raise InvalidRequest("part", "expected partition and attempt in the first message, found none")
    return request
