"""One operation on its way through the writer.

                     taken                 committed
    WAITING ───────────────────▶ RUNNING ─────────────▶ DONE       the caller has its result, or its error
       │  ▲                        │  │
       │  └── not landed, again ───┘  │ time is up
       │ time is up                   ▼
       ▼                          ABANDONED      the caller was told that the outcome is unknown; if it turns out that
    CANCELLED                                    it did not land, it is not run again
    the caller was told, and it is certain

The loop's thread and the writer's thread both move a job, so each step is taken under the job's lock.
"""

import asyncio
import threading
from collections.abc import Callable, Sequence
from enum import Enum, auto
from typing import Any

from server.errors import StoreUnavailable
from server.store.databases import Connection

__all__ = ["Handler", "Job", "Operation", "run_each"]

Operation = Callable[[Connection], Any]
Handler = Callable[[Connection, Sequence[Any]], Sequence[Any]]
"""Runs the payloads of several jobs at once, and returns the result of each."""


class State(Enum):
    WAITING = auto()
    RUNNING = auto()
    DONE = auto()
    CANCELLED = auto()
    ABANDONED = auto()


class Job:
    """A payload, who runs it, and who waits for it."""

    __slots__ = ("_lock", "_state", "future", "handler", "landed", "payload", "timer")

    def __init__(
        self, handler: Handler, payload: Any, landed: Callable[[Any], Any] | None, future: "asyncio.Future[Any]"
    ) -> None:
        self.handler = handler
        self.payload = payload
        self.landed = landed
        self.future = future
        self.timer: asyncio.TimerHandle | None = None
        self._state = State.WAITING
        self._lock = threading.Lock()

    def take(self) -> bool:
        """WAITING → RUNNING, if the caller has not been turned away meanwhile."""
        with self._lock:
            if self._state is State.WAITING:
                self._state = State.RUNNING
            return self._state is State.RUNNING

    def put_back(self) -> None:
        """RUNNING → WAITING: it is certain that it did not land."""
        with self._lock:
            if self._state is State.RUNNING:
                self._state = State.WAITING

    def time_is_up(self, seconds: float) -> None:
        """On the loop: tell the caller what is known."""
        with self._lock:
            waiting = self._state is State.WAITING
            self._state = State.CANCELLED if waiting else State.ABANDONED
        if not self.future.done():
            reason = f"no answer within {seconds:g} s"
            self.future.set_exception(StoreUnavailable(reason, outcome_unknown=not waiting))

    def settle(self, result: Any) -> Any:
        """On the loop: it has landed, whether or not the caller still waits; what the caller gets."""
        self._end()
        return result if self.landed is None else self.landed(result)

    def succeed(self, result: Any) -> None:
        if not self.future.done():
            self.future.set_result(result)

    def fail(self, error: BaseException) -> None:
        self._end()
        if not self.future.done():
            self.future.set_exception(error)

    def _end(self) -> None:
        with self._lock:
            self._state = State.DONE
        if self.timer is not None:
            self.timer.cancel()


def run_each(connection: Connection, operations: Sequence[Operation]) -> Sequence[Any]:
    """The handler of plain operations: one after the other."""
    return [operation(connection) for operation in operations]
