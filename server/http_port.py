"""The port for people and machines that look after the server; it serves no documents.

    /healthz   200 while the process lives
    /readyz    200 when it serves; 503 while it loads or stops, with how far it is, or has lost its share of a cluster
    /metrics   for Prometheus
    /varz      everything that is known, in JSON: settings with origins and without secrets, engines, store, streams

It binds to loopback by default, because it asks nobody who they are. It runs in the same loop as everything else.
"""

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from server.addresses import address_of
from server.errors import CannotStart
from server.metrics import CONTENT_TYPE_LATEST, Metrics
from server.readiness import Readiness

__all__ = ["HttpPort", "application"]

LOG = logging.getLogger("pathsieve.http")


def application(readiness: Readiness, metrics: Metrics, variables: Callable[[], dict[str, Any]]) -> Starlette:
    """The four pages."""

    async def healthz(request: Request) -> Response:
        return PlainTextResponse("alive\n")

    async def readyz(request: Request) -> Response:
        progress = readiness.progress
        status = 200 if readiness.is_ready else 503
        told = {"phase": readiness.stage, "what": progress.what, "done": progress.done, "total": progress.total}
        return JSONResponse(told, status)

    async def metrics_page(request: Request) -> Response:
        return Response(metrics.text(), media_type=CONTENT_TYPE_LATEST)

    async def varz(request: Request) -> Response:
        return JSONResponse(variables())

    pages = {"/healthz": healthz, "/readyz": readyz, "/metrics": metrics_page, "/varz": varz}
    return Starlette(routes=[Route(path, page) for path, page in pages.items()])


class HttpPort:
    """The pages on a socket of their own."""

    def __init__(self, pages: Starlette, host: str, port: int) -> None:
        self._socket = _bound(host, port)
        self.address = address_of(host, self._socket.getsockname()[1])
        config = uvicorn.Config(pages, log_config=None, access_log=False, lifespan="off", timeout_graceful_shutdown=1)
        self._server = _QuietServer(config)
        self._serving: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Serve from now on."""
        self._serving = asyncio.create_task(self._server.serve(sockets=[self._socket]))
        LOG.info("HTTP on %s", self.address)

    async def stop(self) -> None:
        """Answer no more."""
        self._server.should_exit = True
        if self._serving is not None:
            await self._serving
        self._socket.close()


class _QuietServer(uvicorn.Server):
    """Leaves the signals to the daemon."""

    def capture_signals(self) -> Any:
        return contextlib.nullcontext()


def _bound(host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port)[0][0]
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise CannotStart(f"cannot listen on {address_of(host, port)} for HTTP: {error.strerror}") from error
