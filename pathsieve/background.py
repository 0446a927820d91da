"""One event loop in a thread of its own, for callers that have none.

All clients without `async` share it: gRPC wakes every loop of a process for each event, so a process should have few.
"""

import asyncio
import functools
import os
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

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
        """The result of a coroutine; whoever is interrupted while waiting for it also gives it up."""
        if threading.current_thread() is self._thread:
            work.close()
            raise RuntimeError("a Client cannot be used on its own event loop; use AsyncClient there")
        future = asyncio.run_coroutine_threadsafe(work, self.loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise


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
