"""Many documents, answered in the order in which they were put in, whatever becomes of the connection.

    put ──▶ queue ──▶ PublishStream ──▶ take: results in order
              ▲            │
              └────────────┘ the stream broke: what was not answered goes first on the next one

A document is QUEUED, then SENT, then ANSWERED; from SENT it may go back to QUEUED. It has an id, so the server knows it
if it had arrived after all. `put`, `take` and `finish` may be called from another thread than the loop's, by one
caller: what they change is theirs, or a deque.
"""

import asyncio
from collections import deque

import grpc

from pathsieve.calls import Caller, Pauses
from pathsieve.errors import Cancelled, PathSieveError, Unavailable
from pathsieve.publish_stream import Entry, PublishStream
from pathsieve.results import Published
from pathsieve.statuses import error_of_call, is_passing
from pathsieve.v1 import document_pb2

__all__ = ["Pipeline"]

WINDOW_DOCUMENTS, WINDOW_BYTES = 4096, 64 << 20
"""How much may wait for its answer; beyond it `is_full`."""


class Pipeline:
    """Documents go in by `put`, results come out by `take`."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self._loop = asyncio.get_running_loop()
        self._entries: deque[Entry] = deque()
        self._queue: deque[Entry] = deque()
        self._n_put = self._bytes_put = self._n_done = self._bytes_done = 0
        self._is_finished = False
        self._error: BaseException | None = None
        self._send_news, self._result_news = asyncio.Event(), asyncio.Event()
        self._running = asyncio.create_task(self._run())
        self._running.add_done_callback(self._ended)

    # -- in any thread -----------------------------------------------------------------------------

    def put(self, message: document_pb2.Document) -> None:
        """Publish a document, after those before it."""
        entry = Entry(message, message.ByteSize())
        self._entries.append(entry)
        self._n_put += 1
        self._bytes_put += entry.size
        self._queue.append(entry)
        if len(self._queue) == 1:
            self._loop.call_soon_threadsafe(self._send_news.set)

    def finish(self) -> None:
        """There are no more documents."""
        self._is_finished = True
        self._loop.call_soon_threadsafe(self._send_news.set)
        self._loop.call_soon_threadsafe(self._result_news.set)

    def take(self) -> list[Published]:
        """The results that are there, in the order of `put`."""
        ready: list[Published] = []
        while self._entries and (result := self._entries[0].result):
            self._entries.popleft()
            ready.append(result)
        return ready

    @property
    def is_full(self) -> bool:
        """Whether so much waits for its answer that one should wait for `room`."""
        n_bytes = self._bytes_put - self._bytes_done
        return self._n_put - self._n_done >= WINDOW_DOCUMENTS or n_bytes >= WINDOW_BYTES

    # -- on the loop -------------------------------------------------------------------------------

    async def room(self) -> None:
        """Wait until there is room for more."""
        while self.is_full:
            await self._next_result()

    async def results(self) -> list[Published]:
        """Wait for results; none means that all have been given out."""
        while not (ready := self.take()):
            if self._is_finished and not self._entries:
                return []
            await self._next_result()
        return ready

    def fail(self, error: BaseException) -> None:
        """Whoever waits for results gets this error instead."""
        self._error = self._error or error
        self._result_news.set()

    async def aclose(self) -> None:
        """Give up what is on its way."""
        self._running.cancel()
        await asyncio.wait([self._running])

    async def _next_result(self) -> None:
        if self._error:
            raise self._error
        self._result_news.clear()
        await self._result_news.wait()

    def _ended(self, running: asyncio.Task[None]) -> None:
        error = Cancelled("the client is closed") if running.cancelled() else running.exception()
        if error:
            self.fail(error)

    async def _run(self) -> None:
        pauses = Pauses(self._caller.patience)
        while await self._has_work():
            n_done = self._n_done
            error = await self._stream()
            if self._n_done > n_done:
                pauses.reset()
            if error:
                self._caller.endpoints.move_on()
                await pauses.pause(error)

    async def _has_work(self) -> bool:
        while not self._queue and not self._is_finished:
            self._send_news.clear()
            await self._send_news.wait()
        return bool(self._queue)

    async def _stream(self) -> PathSieveError | None:
        """One stream, to its end; a passing error, if that ended it."""
        endpoint = self._caller.endpoints.current
        stream = PublishStream(endpoint, self._queue, self._send_news, lambda: self._is_finished, self._take_answers)
        try:
            await stream.run(self._caller.timeout)
        except grpc.aio.AioRpcError as failed:
            error = error_of_call(failed, endpoint.address)
        except PathSieveError as refused:
            error = refused
        else:
            error = Unavailable(f"{endpoint.address} ended the stream", {"address": endpoint.address})
        self._queue.extendleft(reversed(stream.sent.values()))
        if not self._queue:
            return None
        if not is_passing(error):
            raise error
        return error

    def _take_answers(self, answered: list[Entry]) -> None:
        self._n_done += len(answered)
        self._bytes_done += sum(entry.size for entry in answered)
        self._result_news.set()
