"""The server as a process: ports first, then the subscriptions, then it serves; and in the end nothing is lost.

    start ──▶ ports are open, health is answered ──▶ the store is read, with progress ──▶ ready
    stop  ──▶ NOT_SERVING, new calls refused ──▶ what is in flight is finished, streams get their goodbye
          ──▶ ports closed ──▶ store flushed and closed

`Daemon` is for those who have an event loop (tests have); `server.daemon.serve` makes a process of it.
"""

import asyncio
import contextlib
import json
import logging
import os
import time
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from importlib.metadata import version
from types import TracebackType
from typing import TYPE_CHECKING, Any

from pathsieve.v1.cluster_service_pb2_grpc import add_ClusterServiceServicer_to_server
from pathsieve.v1.delivery_service_pb2_grpc import add_DeliveryServiceServicer_to_server
from pathsieve.v1.peer_service_pb2_grpc import add_PeerServiceServicer_to_server
from pathsieve.v1.publish_service_pb2_grpc import add_PublishServiceServicer_to_server
from pathsieve.v1.subscription_service_pb2_grpc import add_SubscriptionServiceServicer_to_server
from server.assembly import Observers, open_broker
from server.broker import Broker
from server.broker_settings import broker_settings
from server.errors import Loading, StoreUnavailable
from server.exposure import check_exposure, guard_of
from server.http_port import HttpPort, application
from server.metrics import Metrics
from server.observation import DeliveryCounts, Observer
from server.rates import Rates
from server.readiness import Phase, Progress, Readiness
from server.rpc.cluster_servicer import ClusterServicer
from server.rpc.delivery_servicer import DeliveryServicer
from server.rpc.gate import Gate
from server.rpc.listener import Listener
from server.rpc.open_streams import OpenStreams
from server.rpc.peer_servicer import PeerServicer
from server.rpc.publish_servicer import PublishServicer
from server.rpc.subscription_servicer import SubscriptionServicer
from server.settings import Settings
from server.warmup import warm_up

if TYPE_CHECKING:
    from server.cluster.answering import Answering
    from server.cluster.replica import Replica

__all__ = ["Daemon"]

LOG = logging.getLogger("pathsieve.daemon")

LOOK_AT_TOKENS, LOOK_AT_HEALTH, LOOK_AT_BACKLOG, TELL_PROGRESS = 1.0, 0.5, 10.0, 2.0
"""Seconds between looks, and between lines of the log while it loads."""


class Daemon:
    """A server in this event loop.

    async with Daemon(settings) as daemon:
        await daemon.ready()
        … daemon.address, daemon.http_address
    """

    def __init__(self, settings: Settings, on_progress: Callable[[Progress], None] | None = None) -> None:
        self.settings = settings
        self.version = version("pathsieve")
        self.readiness = Readiness()
        self.metrics = Metrics(self.version)
        self.guard = guard_of(settings)
        self.attached, self.publishing = OpenStreams(self.guard), OpenStreams(self.guard)
        self.address = self.http_address = ""
        self._counts = DeliveryCounts()
        self._observer = Observer(self._counts, lambda: len(self.attached))
        self.metrics.observe = self._observer.observe
        self._gate = Gate(self.guard, self.readiness, Rates(settings.limits.requests_per_second))
        self._broker: Broker | None = None
        self.replica: Replica | None = None
        self._listener: Listener | None = None
        self._http: HttpPort | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._started = time.time()
        self._told = time.monotonic()
        self.readiness.on_progress(on_progress or (lambda progress: None))

    def broker(self) -> Broker:
        """The core, once it is there."""
        if self._broker is None:
            raise Loading(str(self.readiness.progress))
        return self._broker

    async def start(self) -> None:
        """Open the ports and begin to load; `CannotStart` if a port or a file is not to be had."""
        check_exposure(self.settings)
        listen, limits = self.settings.listen, self.settings.limits
        self._listener = Listener(self._gate, limits, self._services())
        self.address = await self._listener.start(listen.host, listen.port, self.settings.security)
        if self.settings.http.enabled:
            pages = application(self.readiness, self.metrics, self.variables)
            self._http = HttpPort(pages, self.settings.http.host, self.settings.http.port)
            self.http_address = self._http.address
            await self._http.start()
        LOG.info("gRPC on %s", self.address)
        looks = self._look_at_tokens(), self._look_at_health(self._listener), self._look_at_backlog()
        self._tasks = [asyncio.create_task(task) for task in (self._load(), *looks)]

    async def ready(self) -> None:
        """Return when it serves; what loading has failed with, if it has."""
        await self._tasks[0]

    async def drain(self) -> None:
        """Take no more calls, finish those in flight, and say goodbye to streams."""
        self.readiness.enter(Phase.DRAINING)
        if self._listener is not None:
            await self._listener.tell(False)
        if self._tasks and not self._tasks[0].done():
            return
        LOG.info("draining: %s attached streams", len(self.attached))
        if self.replica is not None:
            await self.replica.hand_over(self.settings.drain_seconds / 2)
        if self._broker is not None:
            await self._broker.drain()
        await self._gate.until_idle()

    async def close(self) -> None:
        """Close ports and store, whatever is still in flight."""
        self.readiness.enter(Phase.STOPPED)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self.replica is not None:
            await self.replica.stop()
        if self._listener is not None:
            await self._listener.stop()
        if self._http is not None:
            await self._http.stop()
        if self._broker is not None:
            await self._broker.close()
        self._remove_ready_file()
        LOG.info("stopped")

    async def __aenter__(self) -> "Daemon":
        try:
            await self.start()
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.drain(), self.settings.drain_seconds)
        await self.close()

    def variables(self) -> dict[str, Any]:
        """Everything that is known, without secrets."""
        rows = self.settings.rows()
        return {
            "version": self.version,
            "pid": os.getpid(),
            "uptime_seconds": round(time.time() - self._started, 3),
            "phase": self.readiness.phase.value,
            "grpc": self.address,
            "http": self.http_address,
            "calls": self._gate.n_calls,
            "streams": {"attached": len(self.attached), "publishing": len(self.publishing)},
            "observed": asdict(self.metrics.observe()),
            "cluster": self.replica.variables() if self.replica else None,
            "engines": self._observer.engines(),
            "settings": {key: {"value": value, "origin": origin} for key, value, origin in rows},
        }

    def reload_tokens(self) -> None:
        """Read the token file again if it has changed, and end the streams of those who are no longer in it."""
        self.guard.reload()
        self.attached.check()
        self.publishing.check()

    def _services(self) -> list[Callable[[Any], None]]:
        settings = self.settings
        secret = settings.cluster.secret.get_secret_value()
        publish = PublishServicer(self.broker, settings.limits, settings.publishing, self.readiness, self.publishing)
        return [
            partial(add_SubscriptionServiceServicer_to_server, SubscriptionServicer(self.broker)),
            partial(add_PublishServiceServicer_to_server, publish),
            partial(add_DeliveryServiceServicer_to_server, DeliveryServicer(self.broker, self.attached)),
            partial(
                add_ClusterServiceServicer_to_server,
                ClusterServicer(lambda: self.replica, self.readiness.draining),
            ),
            partial(add_PeerServiceServicer_to_server, PeerServicer(self._answering, secret)),
        ]

    async def _load(self) -> None:
        started = time.monotonic()
        observers = Observers(
            on_match=self._observe_match,
            on_commit=lambda commit: self.metrics.store_commit_seconds.observe(commit.seconds),
            counters=self._counts.counters(),
        )
        self.readiness.advance(Progress("kernels"))
        await asyncio.to_thread(warm_up)
        await self._open(observers)
        self._observer.broker = self._broker
        self.readiness.enter(Phase.READY)
        if self._listener is not None:
            await self._listener.tell(True)
        self._write_ready_file()
        LOG.info("ready: %s in %.1f s", self.readiness.progress, time.monotonic() - started)

    async def _open(self, observers: Observers) -> None:
        """Open the store and load what is ours: everything, or our share of it."""
        if not self.settings.cluster.zookeeper:
            self._broker = await open_broker(broker_settings(self.settings), observers)
            await self._broker.load(self._advance)
            return
        from server.cluster.process import open_process  # a server that stands alone needs none of it

        self._broker, self.replica = await open_process(self.settings, self.address, observers, self.metrics)
        self._observer.cluster = self.replica.observe
        self.readiness.takes_part = self.replica.takes_part
        await self._broker.load(self._advance)
        self.readiness.advance(Progress("tokens"))
        await self.replica.start()

    def _answering(self) -> "Answering | None":
        return self.replica.answering() if self.replica is not None else None

    def _advance(self, n_loaded: int, n_all: int) -> None:
        progress = Progress("subscriptions", n_loaded, n_all)
        self.readiness.advance(progress)
        if time.monotonic() - self._told >= TELL_PROGRESS:
            self._told = time.monotonic()
            LOG.info("loading: %s", progress)

    def _observe_match(self, seconds: float, n_documents: int) -> None:
        self.metrics.match_seconds.observe(seconds / n_documents, n_documents)

    async def _look_at_tokens(self) -> None:
        while True:
            await asyncio.sleep(LOOK_AT_TOKENS)
            self.reload_tokens()

    async def _look_at_health(self, listener: Listener) -> None:
        """A replica that was put out of the cluster, and has its share again, is told of by nobody."""
        while True:
            await asyncio.sleep(LOOK_AT_HEALTH)
            await listener.tell(self.readiness.is_ready)

    async def _look_at_backlog(self) -> None:
        while True:
            await asyncio.sleep(LOOK_AT_BACKLOG)
            try:
                await self._observer.look_at_backlog()
            except StoreUnavailable as error:
                LOG.warning("the age of the backlog is not known: %s", error)

    def _write_ready_file(self) -> None:
        path = self.settings.listen.ready_file
        if path is not None:
            beside = path.with_name(f"{path.name}.{os.getpid()}")
            beside.write_text(json.dumps({"grpc": self.address, "http": self.http_address, "pid": os.getpid()}))
            beside.replace(path)

    def _remove_ready_file(self) -> None:
        if self.settings.listen.ready_file is not None:
            self.settings.listen.ready_file.unlink(missing_ok=True)
