"""One stream of documents to a server: what is sent, what is granted, what is answered.

    queue ──▶ batch ──▶ sent ──▶ answered
                │         └────▶ still here when the stream has ended: to be sent again
                └ up to 64 documents, 1 MiB, and what the server has granted

The sender takes what is in the queue. It sends at once while few are on the way; when many are, it waits a moment for
a batch to fill. So at light load no document is held up, and at full load many travel together.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import grpc

from pathsieve.endpoints import Endpoint
from pathsieve.errors import DocumentRefused, LimitExceeded, Unavailable
from pathsieve.results import Published
from pathsieve.statuses import error_of_problem, is_passing
from pathsieve.v1 import document_pb2
from pathsieve.v1.publish_service_pb2 import PublishResult, PublishStreamRequest, PublishStreamResponse

__all__ = ["Entry", "PublishStream"]

BATCH_DOCUMENTS, BATCH_BYTES = 64, 1 << 20
"""To send a message costs about as much as to send 60 documents in one."""

FEW = 16
"""So many on the way are light load: at half of what a server can do, about 5 are. With 1 instead, the median from
publish to notification was 4.7 ms, not 2.4 ms, at the same throughput."""

LINGER, FAREWELL = 0.002, 2.0
"""Seconds to wait for a batch to fill, and for the end of a stream when all is answered."""


@dataclass(slots=True, eq=False)
class Entry:
    """A document on its way."""

    message: document_pb2.Document
    size: int
    result: Published | None = None


class PublishStream:
    """Sends what is in `queue` until `is_finished` and all is answered, the server stops, or the stream breaks."""

    def __init__(
        self,
        endpoint: Endpoint,
        queue: deque[Entry],
        news: asyncio.Event,
        is_finished: Callable[[], bool],
        on_answers: Callable[[list[Entry]], None],
    ) -> None:
        self._queue = queue
        self._news = news
        self._is_finished = is_finished
        self._on_answers = on_answers
        self._call: grpc.aio.StreamStreamCall[PublishStreamRequest, PublishStreamResponse]
        self._call = endpoint.publish.PublishStream(metadata=endpoint.metadata)
        self._credit_documents = self._credit_bytes = 0
        self._n_sent = 0
        self._is_draining = False
        self._silence = asyncio.timeout(None)
        self.sent: dict[int, Entry] = {}

    async def run(self, timeout: float) -> None:
        """Send and read; `on_answers` gets what is answered. No answer for `timeout` seconds breaks the stream."""
        reading = asyncio.create_task(self._read(timeout))
        sending = asyncio.create_task(self._send(timeout))
        try:
            async with self._silence:
                await asyncio.wait([reading, sending], return_when=asyncio.FIRST_COMPLETED)
                if sending.done():
                    await sending
                await reading
        except TimeoutError:
            if self.sent:
                raise Unavailable(f"no answer to {len(self.sent)} documents in {timeout:g} s") from None
        finally:
            await _stopped(reading, sending)
            self._call.cancel()

    # -- reading -----------------------------------------------------------------------------------

    async def _read(self, timeout: float) -> None:
        async for response in self._call:
            self._credit_documents += response.credit_documents
            self._credit_bytes += response.credit_bytes
            self._is_draining |= response.draining
            self._take_answers(response.results)
            self._watch(timeout)
            self._news.set()
            if self._is_draining and not self.sent:
                return

    def _take_answers(self, results: Iterable[PublishResult]) -> None:
        """Answered are those that were taken or refused. One that could not be taken now breaks the stream."""
        answered: list[Entry] = []
        for result in results:
            published = _published(result)
            if published.error and is_passing(published.error):
                self._on_answers(answered)
                raise published.error
            entry = self.sent.pop(result.index)
            entry.result = published if published.id else replace(published, id=entry.message.id)
            answered.append(entry)
        self._on_answers(answered)

    def _watch(self, timeout: float) -> None:
        """Answers are expected in time while some are missing, and the end of the stream when all is done."""
        now = asyncio.get_running_loop().time()
        done = self._is_finished() and not self._queue
        self._silence.reschedule(now + timeout if self.sent else now + FAREWELL if done else None)

    # -- sending -----------------------------------------------------------------------------------

    async def _send(self, timeout: float) -> None:
        while not (self._is_finished() and not self._queue and not self.sent):
            if self._may_send():
                await self._send_batch(timeout)
            elif not self._refuse_too_large():
                self._news.clear()
                await self._news.wait()
        await self._call.done_writing()

    async def _send_batch(self, timeout: float) -> None:
        """Send; a stream that has ended is told by `_read`, with the reason."""
        if len(self.sent) >= FEW and len(self._queue) < BATCH_DOCUMENTS:
            await asyncio.sleep(LINGER)
        request = PublishStreamRequest(documents=[entry.message for entry in self._cut()])
        self._watch(timeout)
        with contextlib.suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):
            await self._call.write(request)

    def _may_send(self) -> bool:
        return bool(self._queue) and not self._is_draining and self._fits(self._queue[0], 0, 0)

    def _refuse_too_large(self) -> bool:
        """With nothing on the way all credit is here: a document that is larger will never fit. Was there one?"""
        if not self._queue or self.sent or not 0 < self._credit_bytes < self._queue[0].size:
            return False
        entry, allowed = self._queue.popleft(), self._credit_bytes
        facts = {"limit": "credit_bytes", "allowed": str(allowed), "found": str(entry.size)}
        message = f"a document of {entry.size:,} bytes is more than the server takes at once: {allowed:,}"
        entry.result = Published(entry.message.id, error=LimitExceeded(message, facts))
        self._on_answers([entry])
        return True

    def _cut(self) -> list[Entry]:
        """The next batch, from now on sent."""
        batch: list[Entry] = []
        n_bytes = 0
        while self._queue and len(batch) < BATCH_DOCUMENTS and n_bytes < BATCH_BYTES:
            if not self._fits(self._queue[0], len(batch), n_bytes):
                break
            batch.append(self._queue.popleft())
            n_bytes += batch[-1].size
        self._credit_documents -= len(batch)
        self._credit_bytes -= n_bytes
        self.sent.update(enumerate(batch, self._n_sent))
        self._n_sent += len(batch)
        return batch

    def _fits(self, entry: Entry, n_documents: int, n_bytes: int) -> bool:
        return self._credit_documents > n_documents and self._credit_bytes >= n_bytes + entry.size


async def _stopped(*tasks: asyncio.Task[None]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _published(result: PublishResult) -> Published:
    error = error_of_problem(result.problem, DocumentRefused) if result.HasField("problem") else None
    return Published(result.document_id, result.matches, result.duplicate, error)
