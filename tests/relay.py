"""A gRPC relay between a client and a server that holds calls where a test says so.

    client ──▶ relay ──▶ server
                 └── before["CommitBatch"], after["CommitBatch"]: awaited with the number of the call, from 1

So a test sees from outside how far a client has come, and can end it just there.
"""

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Self

import grpc

__all__ = ["Relay"]

STREAM_IN, STREAM_BOTH = {"StageDocuments"}, {"PublishStream"}

Hold = Callable[[int], Awaitable[None]]


class Relay(grpc.GenericRpcHandler):
    """Passes messages on as bytes."""

    def __init__(self, target: str) -> None:
        self.before: dict[str, Hold] = {}
        self.after: dict[str, Hold] = {}
        self.calls: Counter[str] = Counter()
        self._target = target

    async def __aenter__(self) -> Self:
        self._channel = grpc.aio.insecure_channel(self._target)
        self._server = grpc.aio.server()
        self._server.add_generic_rpc_handlers([self])
        self.address = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        await self._server.start()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._server.stop(0)
        await self._channel.close()

    def service(self, details: Any) -> Any:
        path = details.method
        name = path.rpartition("/")[2]

        async def unary(request: bytes, context: Any) -> bytes:
            return await self._held(name, lambda: self._channel.unary_unary(path)(request))

        async def stream_in(requests: AsyncIterator[bytes], context: Any) -> bytes:
            return await self._held(name, lambda: self._channel.stream_unary(path)(requests))

        async def stream_both(requests: AsyncIterator[bytes], context: Any) -> AsyncIterator[bytes]:
            async for response in self._channel.stream_stream(path)(requests):
                yield response

        if name in STREAM_IN:
            return grpc.stream_unary_rpc_method_handler(stream_in)  # type: ignore[arg-type]
        if name in STREAM_BOTH:
            return grpc.stream_stream_rpc_method_handler(stream_both)  # type: ignore[arg-type]
        return grpc.unary_unary_rpc_method_handler(unary)  # type: ignore[arg-type]

    async def _held(self, name: str, call: Callable[[], Awaitable[bytes]]) -> bytes:
        self.calls[name] += 1
        number = self.calls[name]
        if name in self.before:
            await self.before[name](number)
        answer = await call()
        if name in self.after:
            await self.after[name](number)
        return answer
