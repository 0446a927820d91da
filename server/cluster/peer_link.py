"""One replica's stream to another: documents there, answers back, as much on the way as the other grants.

    CLOSED ── ask ──▶ OPEN ── it breaks ──▶ CLOSED          all that was asked fails with `PeerLost`
                        └──── close ─────▶ ENDED

Who asked then looks who owns the tokens now, and asks there.
"""

import asyncio
import contextlib
import logging
import time
from collections import deque

import grpc

from pathsieve.v1.peer_service_pb2 import MatchAnswer, MatchBatch, MatchOutcome, MatchStreamRequest, MatchStreamResponse
from pathsieve.v1.peer_service_pb2_grpc import PeerServiceStub
from server.errors import ServerError

__all__ = ["SECRET_KEY", "PeerLink", "PeerLost"]

logger = logging.getLogger("pathsieve.cluster")

SECRET_KEY = "pathsieve-peer"
PAUSE = 0.2
OPTIONS = (
    ("grpc.max_send_message_length", -1),
    ("grpc.max_receive_message_length", -1),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 500),
    ("grpc.max_reconnect_backoff_ms", 1000),
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    ("grpc.use_local_subchannel_pool", 1),
)


class PeerLost(ServerError):
    """The stream to a peer has broken, or could not be opened. No client ever sees this."""


class PeerLink:
    """The way to one peer."""

    def __init__(self, address: str, credentials: grpc.ChannelCredentials | None, secret: str) -> None:
        self.address = address
        self._metadata = ((SECRET_KEY, secret),)
        if credentials is None:
            self._channel = grpc.aio.insecure_channel(address, options=OPTIONS)
        else:
            self._channel = grpc.aio.secure_channel(address, credentials, options=OPTIONS)
        self._stub = PeerServiceStub(self._channel)
        self._asked: dict[int, tuple[asyncio.Future[MatchAnswer], float]] = {}
        self._outgoing: deque[MatchBatch] = deque()
        self._outcomes: deque[MatchOutcome] = deque()
        self._credit = 0
        self._n_batches = 0
        self._has_work = asyncio.Event()
        self._running: asyncio.Task[None] | None = None
        self._not_before = 0.0
        self._is_heard = True

    @property
    def lag(self) -> float:
        """For how many seconds the oldest batch has waited for its answer."""
        oldest = min((asked for _, asked in self._asked.values()), default=None)
        return 0.0 if oldest is None else time.monotonic() - oldest

    async def ask(self, batch: MatchBatch) -> MatchAnswer:
        """The answer to a batch, which gets its number here; `PeerLost` if there will be none."""
        self._n_batches += 1
        number = batch.batch = self._n_batches
        answer: asyncio.Future[MatchAnswer] = asyncio.get_running_loop().create_future()
        self._asked[number] = answer, time.monotonic()
        self._outgoing.append(batch)
        self._has_work.set()
        self._open()
        try:
            return await answer
        finally:
            self._asked.pop(number, None)

    def tell(self, outcome: MatchOutcome) -> None:
        """Say what has become of the documents of a batch."""
        self._outcomes.append(outcome)
        self._has_work.set()

    async def close(self) -> None:
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)
        self._fail("it is being closed")
        await self._channel.close()

    def _open(self) -> None:
        if self._running is None or self._running.done():
            self._running = asyncio.create_task(self._run())

    async def _run(self) -> None:
        """One stream, from its first batch until it breaks."""
        await asyncio.sleep(self._not_before - time.monotonic())
        reason = "it has ended the stream"
        call = self._stub.MatchStream(metadata=self._metadata)
        writing = asyncio.create_task(self._write(call))
        try:
            async for response in call:
                self._take(response)
        except grpc.aio.AioRpcError as error:
            reason = error.details() or error.code().name
        finally:
            writing.cancel()
            call.cancel()
            self._not_before = time.monotonic() + PAUSE
            self._fail(reason)

    def _fail(self, reason: str) -> None:
        if self._is_heard and self._asked:  # said once, and not at each attempt
            logger.info("the peer at %s is lost: %s", self.address, reason)
            self._is_heard = False
        self._credit = 0
        self._outgoing.clear()
        self._outcomes.clear()
        for answer, _ in self._asked.values():
            if not answer.done():
                answer.set_exception(PeerLost(f"the peer at {self.address} is lost: {reason}"))

    def _take(self, response: MatchStreamResponse) -> None:
        self._is_heard = True
        self._credit += response.credit_bytes
        self._has_work.set()
        for answer in response.answers:
            waiting = self._asked.get(answer.batch)
            if waiting is not None and not waiting[0].done():
                waiting[0].set_result(answer)

    async def _write(self, call: "grpc.aio.StreamStreamCall[MatchStreamRequest, MatchStreamResponse]") -> None:
        """Send what there is and what is granted; how the stream ended is told by its reader."""
        with contextlib.suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):
            while True:
                await self._has_work.wait()
                self._has_work.clear()
                while (request := self._next_request()) is not None:
                    await call.write(request)

    def _next_request(self) -> MatchStreamRequest | None:
        request = MatchStreamRequest()
        while self._outcomes:
            request.outcomes.append(self._outcomes.popleft())
        while self._outgoing and self._credit > 0:
            batch = self._outgoing.popleft()
            if batch.batch in self._asked:  # else nobody waits for it any more
                self._credit -= batch.ByteSize()
                request.batches.append(batch)
        return request if request.batches or request.outcomes else None
