"""What one may do with documents: publish one or many, or stage parts of a batch and commit it once."""

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Mapping, Sequence
from uuid import uuid4

import grpc

from pathsieve.calls import Caller, Pauses
from pathsieve.documents import Document, to_document
from pathsieve.errors import DocumentRefused
from pathsieve.pipeline import Pipeline
from pathsieve.results import Committed, Published, Staged
from pathsieve.statuses import error_of_call, error_of_problem, is_passing
from pathsieve.v1 import document_pb2
from pathsieve.v1 import publish_service_pb2 as pb
from pathsieve.values import AttributeValue

__all__ = ["AnyDocument", "PublishCalls", "StagedPart"]

AnyDocument = Document | bytes | str
"""A document, or just its XML."""

StagedPart = tuple[int, int] | tuple[int, int, int]
"""Partition, attempt, and how many documents it must have."""

BATCH_DOCUMENTS, BATCH_BYTES = 64, 1 << 20


class PublishCalls:
    """Publish documents. One without an id gets one here, so that the server recognises it when it is sent again."""

    _caller: Caller

    def __init__(self) -> None:
        super().__init__()
        self._prefix = uuid4().hex
        self._counter = itertools.count(1)

    async def publish(
        self,
        document: AnyDocument = b"",
        *,
        id: str = "",
        source: str = "",
        attributes: Mapping[str, AttributeValue] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Published:
        """Publish one document; when this returns, what it matched is durable."""
        if not isinstance(document, Document):
            document = Document(document, id=id, source=source, attributes=attributes, headers=headers)
        elif id or source or attributes or headers:
            raise TypeError("a Document has its own id, source, attributes and headers; give them there")
        request = pb.PublishRequest(documents=[self.message_of(document)])
        pauses = Pauses(self._caller.patience)
        while True:
            response = await self._caller.unary(lambda endpoint: endpoint.publish.Publish, request)
            (result,) = response.results
            if not result.HasField("problem"):
                return Published(result.document_id, result.matches, result.duplicate)
            error = error_of_problem(result.problem, DocumentRefused)
            if not is_passing(error):
                raise error
            self._caller.endpoints.move_on()
            await pauses.pause(error)

    async def publish_many(
        self, documents: Iterable[AnyDocument] | AsyncIterable[AnyDocument]
    ) -> AsyncIterator[Published]:
        """Publish many, fast: one result for each, in order. A refused one has an `error` and does not stop the others.

        Documents travel in batches, many at a time, as the server has room. After a broken connection those that were
        not answered are sent again, and none is delivered twice.
        """
        async with contextlib.aclosing(await self.open_pipeline()) as pipeline:
            feeding = asyncio.create_task(self._feed(pipeline, documents))
            try:
                while ready := await pipeline.results():
                    for result in ready:
                        yield result
            finally:
                feeding.cancel()
                await asyncio.wait([feeding])

    async def _feed(self, pipeline: Pipeline, documents: Iterable[AnyDocument] | AsyncIterable[AnyDocument]) -> None:
        try:
            async for document in _each(documents):
                pipeline.put(self.message_of(document))
                if pipeline.is_full:
                    await pipeline.room()
            pipeline.finish()
        except Exception as error:  # noqa: BLE001  whoever waits for results gets it
            pipeline.fail(error)

    async def open_pipeline(self) -> Pipeline:
        return Pipeline(self._caller)

    def message_of(self, document: AnyDocument) -> document_pb2.Document:
        """A document as it travels, with an id."""
        given = document if isinstance(document, Document) else Document(document)
        return to_document(given, "" if given.id else f"{self._prefix}-{next(self._counter)}")

    async def stage(
        self,
        query: str,
        batch: int,
        documents: Iterable[AnyDocument],
        *,
        partition: int = 0,
        attempt: int = 0,
        timeout: float | None = None,
    ) -> Staged:
        """Hand in a part of a batch: what one attempt at one partition has to publish. `commit` publishes it.

        It is not repeated by itself, because what is left of the first try might come in between: repeat it with
        another attempt, which goes to the next server. By default it may take as long as it takes.
        """
        endpoint = self._caller.endpoints.current
        head = pb.StageDocumentsRequest(query=query, batch=batch, part=pb.Part(partition=partition, attempt=attempt))
        try:
            parts = self._parts(head, documents)
            call = endpoint.publish.StageDocuments(parts, timeout=timeout, metadata=endpoint.metadata)
            response = await call
        except grpc.aio.AioRpcError as failed:
            self._caller.endpoints.move_on()
            raise error_of_call(failed, endpoint.address) from None
        refused = {result.index: error_of_problem(result.problem, DocumentRefused) for result in response.refused}
        return Staged(response.staged, refused)

    async def _parts(
        self, head: pb.StageDocumentsRequest, documents: Iterable[AnyDocument]
    ) -> AsyncIterator[pb.StageDocumentsRequest]:
        yield head
        for batch in _batches(map(self.message_of, documents)):
            yield pb.StageDocumentsRequest(documents=batch)

    async def commit(self, query: str, batch: int, parts: Iterable[StagedPart]) -> Committed:
        """Publish the staged parts of a batch, given as (partition, attempt), once: again, it has no effect.

        With (partition, attempt, documents) nothing is published, and `InvalidRequest` says so, unless so many
        documents are staged there.
        """
        request = pb.CommitBatchRequest(query=query, batch=batch, parts=map(_part, parts))
        response = await self._caller.unary(lambda endpoint: endpoint.publish.CommitBatch, request)
        return Committed(response.documents, response.matches, response.repeated_commit)

    async def abort(self, query: str, batch: int) -> None:
        """Forget what was staged of a batch that is not committed."""
        request = pb.AbortBatchRequest(query=query, batch=batch)
        await self._caller.unary(lambda endpoint: endpoint.publish.AbortBatch, request)


async def _each(documents: Iterable[AnyDocument] | AsyncIterable[AnyDocument]) -> AsyncIterator[AnyDocument]:
    if isinstance(documents, AsyncIterable):
        async for document in documents:
            yield document
    else:
        for place, document in enumerate(documents, start=1):
            yield document
            if place % BATCH_DOCUMENTS == 0:
                await asyncio.sleep(0)  # the stream gets its turn


def _part(part: StagedPart) -> pb.Part:
    partition, attempt, *documents = part
    return pb.Part(partition=partition, attempt=attempt, documents=documents[0] if documents else None)


def _batches(messages: Iterable[document_pb2.Document]) -> Iterable[Sequence[document_pb2.Document]]:
    batch: list[document_pb2.Document] = []
    n_bytes = 0
    for message in messages:
        batch.append(message)
        n_bytes += message.ByteSize()
        if len(batch) == BATCH_DOCUMENTS or n_bytes >= BATCH_BYTES:
            yield batch
            batch, n_bytes = [], 0
    if batch:
        yield batch
