"""One event loop in a thread of its own, for callers that have none.

All clients without `async` share it: gRPC wakes every loop of a process for each event, so a process should have few.
"""

import asyncio
import functools
import os
import threading
from collections.abc import Coroutine
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

__all__ = ["Background", "background"]

Result = TypeVar("Result")


class Background:
    """Runs coroutines for other threads."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.loop.set_exception_handler(_report)
        self._thread = threading.Thread(target=self.loop.run_forever, name="pathsieve", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """The result of a coroutine; whoever is interrupted while waiting for it also gives it up.

        Ctrl-C may come between any two instructions. So nothing here holds a lock that is Python's to give back, as
        `concurrent.futures.Future` does: interrupted there, it raises RuntimeError or leaves the loop waiting for ever.
        """
        if threading.current_thread() is self._thread:
            work.close()
            raise RuntimeError("a Client cannot be used on its own event loop; use AsyncClient there")
        errand = _Errand(self.loop, work)
        try:
            self.loop.call_soon_threadsafe(errand.begin)
            task = errand.done.get()
        except BaseException:
            self.loop.call_soon_threadsafe(errand.give_up)
            raise
        return task.result()


class _Errand(Generic[Result]):
    """A coroutine on its way through the loop; `begin` and `give_up` are called there."""

    def __init__(self, loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, Result]) -> None:
        self.done: SimpleQueue[asyncio.Task[Result]] = SimpleQueue()
        self._loop = loop
        self._work = work
        self._task: asyncio.Task[Result] | None = None

    def begin(self) -> None:
        self._task = self._loop.create_task(self._work)
        self._task.add_done_callback(self._ended)

    def give_up(self) -> None:
        if self._task is None:
            self._work.close()
        else:
            self._task.cancel()

    def _ended(self, task: asyncio.Task[Result]) -> None:
        if not task.cancelled():
            task.exception()  # or else asyncio reports one that nobody waits for any more
        self.done.put(task)


def background() -> Background:
    """The one of this process, started when it is first needed. A forked process needs another: threads stay behind."""
    return _background_of(os.getpid())


@functools.cache
def _background_of(process_id: int) -> Background:
    return Background()


def _report(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Report a failed callback, but not that another loop of the process was quicker to take an event of gRPC's.

    gRPC wakes all loops through one socket; those that find it empty fail with BlockingIOError, which is harmless.
    """
    is_grpc = "PollerCompletionQueue" in repr(context.get("handle"))
    if not (is_grpc and isinstance(context.get("exception"), BlockingIOError)):
        loop.default_exception_handler(context)
