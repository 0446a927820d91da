"""One stream of documents: many batches on the way at once, and results as they are durable.

    read ──▶ a task a batch: publish ──▶ answer ──▶ write         the writer sends all that is answered by then
      │
      └─ end of requests, and all is answered ──▶ OK

Draining is said once; then what is on the way is answered, and the client has a moment to end the stream. A document
that is refused has a problem for a result, and the stream goes on. What ends a stream before its time: more than was
granted, a token that is no longer valid, a client that goes away.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

from pathsieve.v1.document_pb2 import Document
from pathsieve.v1.publish_service_pb2 import PublishStreamRequest, PublishStreamResponse
from server.errors import ServerError
from server.rpc.intake import Intake, result_of
from server.rpc.publish_credit import Credit

__all__ = ["PublishStream"]

FAREWELL = 2.0
"""Seconds that a client has to end its stream when it was told that the server stops and all is answered."""


class PublishStream:
    """What one stream has sent and has yet to be told."""

    def __init__(
        self,
        intake: Intake,
        tenant: str,
        requests: AsyncIterator[PublishStreamRequest],
        context: Any,
        window: tuple[int, int],
    ) -> None:
        self._intake = intake
        self._tenant = tenant
        self._requests = requests
        self._context = context
        self._credit = Credit(*window)
        self._answer = PublishStreamResponse(credit_documents=window[0], credit_bytes=window[1])
        self._has_news = asyncio.Event()
        self._has_news.set()
        self._batches: set[asyncio.Task[None]] = set()
        self._n_documents = 0
        self._is_ended = False
        self._failure: BaseException | None = None

    async def run(self, draining: asyncio.Event, revoked: "asyncio.Future[None]") -> None:
        """Serve the stream to its end."""
        revoked.add_done_callback(self._take_failure)
        helpers = [asyncio.create_task(self._read()), asyncio.create_task(self._drain(draining))]
        for helper in helpers:
            helper.add_done_callback(self._take_failure)
        try:
            await self._write()
        finally:
            revoked.remove_done_callback(self._take_failure)
            for task in (*helpers, *self._batches):
                task.cancel()

    def _take_failure(self, done: "asyncio.Future[None]") -> None:
        if not done.cancelled() and done.exception() is not None:
            self._failure = done.exception()
            self._has_news.set()

    async def _read(self) -> None:
        """Start a batch for each request."""
        async for request in self._requests:
            n_bytes = sum(message.ByteSize() for message in request.documents)
            self._credit.spend(len(request.documents), n_bytes)
            self._start(request.documents, n_bytes)
        self._end()

    def _start(self, messages: Sequence[Document], n_bytes: int) -> None:
        batch = asyncio.create_task(self._publish(messages, self._n_documents, n_bytes))
        self._n_documents += len(messages)
        self._batches.add(batch)
        batch.add_done_callback(self._finish)

    async def _publish(self, messages: Sequence[Document], first_index: int, n_bytes: int) -> None:
        try:
            results = await self._intake.publish(self._tenant, messages, first_index)
        except ServerError as error:  # of the whole batch, as when the server is stopping
            results = [result_of(index, error) for index in range(first_index, first_index + len(messages))]
        self._answer.results.extend(results)
        self._credit.restore(len(messages), n_bytes)
        self._answer.credit_documents += len(messages)
        self._answer.credit_bytes += n_bytes

    def _finish(self, batch: "asyncio.Task[None]") -> None:
        self._batches.discard(batch)
        self._has_news.set()
        self._take_failure(batch)

    async def _drain(self, draining: asyncio.Event) -> None:
        """When the server stops, say so; a client that does not end the stream does not hold us up."""
        await draining.wait()
        self._answer.draining = True
        self._has_news.set()
        await asyncio.gather(*self._batches, return_exceptions=True)
        await asyncio.sleep(FAREWELL)
        self._end()

    def _end(self) -> None:
        self._is_ended = True
        self._has_news.set()

    async def _write(self) -> None:
        """Send what there is to tell, until there will be no more."""
        while not self._is_ended or self._batches or self._answer.ByteSize():
            await self._has_news.wait()
            self._has_news.clear()
            if self._failure is not None:
                raise self._failure
            if self._answer.ByteSize():
                answer, self._answer = self._answer, PublishStreamResponse()
                await self._context.write(answer)
