"""ZooKeeper on an event loop: every call has a deadline, and no thread ever waits for an answer that may not come.

    CONNECTED ── no answer ──▶ SUSPENDED ── answers again ──▶ CONNECTED        the same session: nothing was lost
        ▲                          │
        └──── a new session ── LOST ◀── the session has expired: its ephemeral nodes are gone

kazoo waits for ever when no server answers, so only its calls that return at once are used, and their results are
awaited here for `deadline` seconds. Even those would wait, for room in a pipe to kazoo's thread, which takes nothing
out of it without a server: so nothing is asked unless the state is CONNECTED, never more than `AT_ONCE` calls at a
time, and the pipe refuses what does not fit. A write that was given up may still land; whoever made it reads before it
decides. kazoo's failed transaction does not raise, so every result of it is looked at. Its watches are gone after each
break, so whoever has some reads everything again when the state is CONNECTED once more.
"""

import asyncio
import logging
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any

from kazoo.client import KazooClient, KazooState
from kazoo.exceptions import BadVersionError, KazooException, NodeExistsError, NoNodeError, RolledBackError
from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.retry import KazooRetry

from server.errors import CannotStart, ServerError

__all__ = ["Create", "Delete", "Session", "SetData", "ZooKeeper", "ZooKeeperUnavailable"]

logger = logging.getLogger("pathsieve.cluster")

STOP_SECONDS = 5.0
AT_ONCE = 128
"""Calls without an answer; the pipe between them and kazoo's thread holds 277 on Linux."""


class Session(Enum):
    CONNECTED = "connected"
    SUSPENDED = "suspended"
    LOST = "lost"


STATES = {
    KazooState.CONNECTED: Session.CONNECTED,
    KazooState.SUSPENDED: Session.SUSPENDED,
    KazooState.LOST: Session.LOST,
}


class ZooKeeperUnavailable(ServerError):  # noqa: N818  passes
    """It has not answered in time, or has refused; what was to be written may or may not have been."""


class Create:
    """A step of a transaction: a node that goes with the session."""

    def __init__(self, path: str, value: bytes) -> None:
        self.path, self.value = path, value

    def add_to(self, transaction: Any) -> None:
        transaction.create(self.path, self.value, ephemeral=True)


class SetData:
    """A step: new data, if the node still has this version."""

    def __init__(self, path: str, value: bytes, version: int) -> None:
        self.path, self.value, self.version = path, value, version

    def add_to(self, transaction: Any) -> None:
        transaction.set_data(self.path, self.value, version=self.version)


class Delete:
    """A step: the node goes."""

    def __init__(self, path: str) -> None:
        self.path = path

    def add_to(self, transaction: Any) -> None:
        transaction.delete(self.path)


class Handler(SequentialThreadingHandler):
    """kazoo's threads, with a pipe to them that nobody ever waits for: a call that finds it full fails."""

    def create_socket_pair(self) -> tuple[socket.socket, socket.socket]:
        reading, writing = super().create_socket_pair()
        writing.setblocking(False)
        return reading, writing


@dataclass(frozen=True)
class Watch:
    """Brings a change from kazoo's thread to the loop.

    kazoo keeps a set of them for each node until one fires, so those that call the same thing must be equal:
    somebody who reads a quiet node again and again would fill the memory otherwise.
    """

    loop: asyncio.AbstractEventLoop
    on_change: Callable[[], None]

    def __call__(self, event: Any) -> None:
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self.on_change)


class ZooKeeper:
    """One session after the other. Listeners are called on the loop with each new state."""

    def __init__(self, hosts: str, session_timeout: float = 6.0, deadline: float | None = None) -> None:
        self.hosts = hosts
        self.state = Session.LOST
        self.on_state: list[Callable[[Session], None]] = []
        self._deadline = deadline or session_timeout
        self._loop = asyncio.get_running_loop()
        self._connected = asyncio.Event()
        self._room = asyncio.Semaphore(AT_ONCE)
        retry = KazooRetry(max_tries=-1, delay=0.05, backoff=2, max_delay=1.0)
        self._client = KazooClient(hosts, timeout=session_timeout, connection_retry=retry, handler=Handler())
        self._client.add_listener(self._heard)

    async def start(self, seconds: float = 15.0) -> None:
        """Connect; `CannotStart` if nobody answers for so long."""
        self._client.start_async()
        try:
            async with asyncio.timeout(seconds):
                await self._connected.wait()
        except TimeoutError:
            await self.stop()
            raise CannotStart(
                f"no ZooKeeper answers at {self.hosts} within {seconds:g} s (cluster.zookeeper)"
            ) from None

    async def stop(self) -> None:
        """End the session: its ephemeral nodes go at once."""
        stopping = self._loop.run_in_executor(None, self._stop)
        done, _ = await asyncio.wait([stopping], timeout=STOP_SECONDS)
        if not done or stopping.exception() is not None:
            logger.warning("the session with ZooKeeper could not be ended; it expires by itself")

    def _stop(self) -> None:
        self._client.stop()
        self._client.close()

    def _heard(self, state: str) -> None:
        """In a thread of kazoo's."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._enter, STATES[state])

    def _enter(self, state: Session) -> None:
        if state is self.state:
            return
        logger.info("the session with ZooKeeper is %s", state.value)
        self.state = state
        if state is Session.CONNECTED:
            self._connected.set()
        for listener in list(self.on_state):
            listener(state)

    async def get(self, path: str, on_change: Callable[[], None] | None = None) -> tuple[bytes, Any] | None:
        """Data and stat of a node, None if there is none; `on_change` is called on the loop, once."""
        watch = self._watch(on_change)
        try:
            found: tuple[bytes, Any] = await self._answer(
                lambda: self._client.get_async(path, watch=watch), NoNodeError
            )
        except NoNodeError:
            return None
        return found

    async def children(self, path: str, on_change: Callable[[], None] | None = None) -> list[str]:
        watch = self._watch(on_change)
        found: list[str] = await self._answer(lambda: self._client.get_children_async(path, watch=watch))
        return found

    async def ensure(self, path: str, value: bytes = b"") -> None:
        """Have a lasting node; one that is there is left as it is."""
        try:
            await self._answer(lambda: self._client.create_async(path, value, makepath=True), NodeExistsError)
        except NodeExistsError:
            return

    async def create(self, path: str, value: bytes) -> bool:
        """A node that goes with the session; False if there is one already."""
        try:
            await self._answer(lambda: self._client.create_async(path, value, ephemeral=True), NodeExistsError)
        except NodeExistsError:
            return False
        return True

    async def set(self, path: str, value: bytes, version: int) -> bool:
        """New data, if the node still has this version: whether it had."""
        try:
            await self._answer(
                lambda: self._client.set_async(path, value, version=version), NoNodeError, BadVersionError
            )
        except (NoNodeError, BadVersionError):
            return False
        return True

    async def delete(self, path: str) -> None:
        try:
            await self._answer(lambda: self._client.delete_async(path), NoNodeError)
        except NoNodeError:
            return

    async def multi(self, steps: Sequence[Create | SetData | Delete]) -> bool:
        """All steps, or none: whether it was all. Somebody else may have been quicker."""
        transaction = self._client.transaction()
        for step in steps:
            step.add_to(transaction)
        results = await self._answer(transaction.commit_async)
        failures = [result for result in results if isinstance(result, Exception)]
        causes = [failure for failure in failures if not isinstance(failure, RolledBackError)]
        if causes:
            logger.debug("a transaction of %d steps was refused: %r", len(steps), causes[0])
        return not failures

    def _watch(self, on_change: Callable[[], None] | None) -> Watch | None:
        return None if on_change is None else Watch(self._loop, on_change)

    async def _answer(self, ask: Callable[[], Any], *expected: type[KazooException]) -> Any:
        """What a call of kazoo's comes to, within the deadline; of its errors only those that are `expected`."""
        future: asyncio.Future[Any] = self._loop.create_future()
        try:
            async with asyncio.timeout(self._deadline), self._room:  # wait_for of 3.11 may swallow a cancellation
                self._must_be_connected()
                ask().rawlink(partial(self._settle, future))
                return await future
        except TimeoutError:
            raise ZooKeeperUnavailable(f"ZooKeeper has not answered within {self._deadline:g} s") from None
        except expected:
            raise
        except KazooException as error:
            raise ZooKeeperUnavailable(f"ZooKeeper does not do it now: {error!r}") from error

    def _must_be_connected(self) -> None:
        if self.state is not Session.CONNECTED:
            raise ZooKeeperUnavailable(f"the session with ZooKeeper is {self.state.value}")

    def _settle(self, future: "asyncio.Future[Any]", result: Any) -> None:
        """In a thread of kazoo's."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(_settle, future, result)


def _settle(future: "asyncio.Future[Any]", result: Any) -> None:
    if future.done():
        return
    if result.exception is None:
        future.set_result(result.value)
    else:
        future.set_exception(result.exception)
