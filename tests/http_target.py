"""A real HTTP server that remembers what it was sent and answers as it was told; it listens on a free port."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route


@dataclass(frozen=True)
class Received:
    """One request."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def sequences(self) -> list[int]:
        return [message["sequence"] for message in self.json["messages"]]

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class HttpTarget:
    """Answers are used up in order; then every answer is 200. A number of seconds is a pause before the answer."""

    def __init__(self) -> None:
        self.received: list[Received] = []
        self.answers: list[tuple[int, dict[str, str]]] = []
        self.refuses: set[int] = set()
        self.hold = asyncio.Event()
        self.hold.set()
        self.n_open = 0
        self.most_open = 0
        self.url = ""

    async def answer(self, request: Request) -> Response:
        received = Received(request.url.path, dict(request.headers), await request.body())
        self.received.append(received)
        self.n_open += 1
        self.most_open = max(self.most_open, self.n_open)
        await self.hold.wait()
        self.n_open -= 1
        if self.refuses.intersection(received.sequences):
            return Response(status_code=500)
        status, headers = self.answers.pop(0) if self.answers else (200, {})
        return Response(status_code=status, headers=headers)


@asynccontextmanager
async def http_target(**options: Any) -> AsyncIterator[HttpTarget]:
    """A server that runs while the block does; `options` are those of uvicorn."""
    target = HttpTarget()
    app = Starlette(routes=[Route("/{path:path}", target.answer, methods=["POST"])])
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_config=None, lifespan="off", **options))
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    target.url = f"http://127.0.0.1:{port}/hook"
    try:
        yield target
    finally:
        server.should_exit = True
        await serving
