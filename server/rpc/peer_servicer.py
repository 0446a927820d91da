"""PeerService: what replicas of one cluster ask each other. Whoever does not know their secret is refused."""

import asyncio
import hmac
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any

import grpc

from pathsieve.v1.peer_service_pb2 import MatchAnswer, MatchBatch, MatchStreamRequest, MatchStreamResponse
from pathsieve.v1.peer_service_pb2_grpc import PeerServiceServicer
from server.cluster.peer_link import SECRET_KEY

if TYPE_CHECKING:
    from server.cluster.answering import Answering

__all__ = ["PeerServicer"]

CREDIT_BYTES = 64 << 20


class PeerServicer(PeerServiceServicer):
    """Each stream is answered by an `Answering` of its own; None while this replica cannot answer yet."""

    def __init__(self, answering: "Callable[[], Answering | None]", secret: str) -> None:
        self._answering = answering
        self._secret = secret.encode()

    async def MatchStream(  # type: ignore[override]  # writes to the context
        self, request_iterator: AsyncIterator[MatchStreamRequest], context: Any
    ) -> None:
        given = dict(context.invocation_metadata() or ()).get(SECRET_KEY, "")
        if not hmac.compare_digest(given.encode(), self._secret):
            await context.abort(grpc.StatusCode.UNAUTHENTICATED, "expected the cluster's secret (cluster.secret)")
        answering = self._answering()
        if answering is None:
            await context.abort(grpc.StatusCode.UNAVAILABLE, "this replica is not ready to match")
            return
        await _Stream(answering, context).run(request_iterator)


class _Stream:
    """One peer's batches, answered in any order; what is answered by then goes out together.

    A batch that cannot be answered ends the stream: the peer then asks elsewhere, or again.
    """

    def __init__(self, answering: "Answering", context: Any) -> None:
        self._answering = answering
        self._context = context
        self._answers: asyncio.Queue[tuple[MatchAnswer, int]] = asyncio.Queue()

    async def run(self, requests: AsyncIterator[MatchStreamRequest]) -> None:
        await self._context.write(MatchStreamResponse(credit_bytes=CREDIT_BYTES))
        async with asyncio.TaskGroup() as tasks:
            working = {tasks.create_task(self._write())}
            async for request in requests:
                self._answering.settle(request.outcomes)
                for batch in request.batches:
                    working.add(task := tasks.create_task(self._answer(batch)))
                    task.add_done_callback(working.discard)
            for task in list(working):  # nobody listens any more
                task.cancel()

    async def _answer(self, batch: MatchBatch) -> None:
        answer = await self._answering.answer(batch)
        self._answers.put_nowait((answer, batch.ByteSize()))

    async def _write(self) -> None:
        while True:
            ready = [await self._answers.get()]
            while not self._answers.empty():
                ready.append(self._answers.get_nowait())
            credit = sum(n_bytes for _, n_bytes in ready)
            await self._context.write(MatchStreamResponse(answers=[answer for answer, _ in ready], credit_bytes=credit))
