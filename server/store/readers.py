"""Reading: a few connections of their own, each used by one thread at a time, never blocked by the writer.

    read(operation) ──▶ a thread ──▶ an idle connection, or a new one ──▶ one transaction, one state of the store

A connection that turns out to be dead is replaced once; a second failure is the caller's `StoreUnavailable`.
"""

import asyncio
import logging
import queue
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from server.errors import StoreError, StoreUnavailable
from server.store.databases import Connection, Database, Trouble

__all__ = ["Readers"]

logger = logging.getLogger("pathsieve.store")

Result = TypeVar("Result")


class Readers:
    """A small pool of reading connections."""

    def __init__(self, database: Database, n_threads: int = 4, deadline: float = 30.0) -> None:
        self.deadline = deadline
        self._database = database
        self._closed = False
        self._idle: queue.SimpleQueue[Connection] = queue.SimpleQueue()
        self._threads = ThreadPoolExecutor(n_threads, thread_name_prefix="pathsieve-reader")

    async def read(self, operation: Callable[[Connection], Result]) -> Result:
        """What `operation` returns, run in a thread and in a transaction that sees one state of the store."""
        if self._closed:
            raise StoreUnavailable("it is being closed")
        work = asyncio.get_running_loop().run_in_executor(self._threads, self._run, operation)
        work.add_done_callback(_look_at)
        done, _ = await asyncio.wait([work], timeout=self.deadline)
        if not done:
            raise StoreUnavailable(f"no answer within {self.deadline:g} s")
        return work.result()

    async def close(self) -> None:
        """Take no more reads; those under way end by themselves."""
        self._closed = True
        self._threads.shutdown(wait=False, cancel_futures=True)
        await asyncio.to_thread(self._close_idle)

    def _close_idle(self) -> None:
        while (connection := self._idle_one()) is not None:
            connection.close()

    def _idle_one(self) -> Connection | None:
        try:
            return self._idle.get_nowait()
        except queue.Empty:
            return None

    def _run(self, operation: Callable[[Connection], Result]) -> Result:
        try:
            return self._run_on(self._idle_one() or self._database.connect(), operation)
        except Exception as error:
            trouble = self._database.trouble(error)
            if trouble is Trouble.REFUSED:
                raise
            logger.info("a read failed: %s, %s", trouble.value, error)
            if trouble is Trouble.UNAVAILABLE:
                raise StoreUnavailable(str(error)) from error
        return self._run_again(operation)

    def _run_again(self, operation: Callable[[Connection], Result]) -> Result:
        """On a new connection; the idle ones may be as dead as the last."""
        self._close_idle()
        try:
            return self._run_on(self._database.connect(), operation)
        except StoreError as error:
            raise StoreUnavailable(error.reason) from error
        except Exception as error:
            if self._database.trouble(error) is Trouble.REFUSED:
                raise
            raise StoreUnavailable(str(error)) from error

    def _run_on(self, connection: Connection, operation: Callable[[Connection], Result]) -> Result:
        """Give the connection back if it is still good, else close it."""
        try:
            connection.begin_reading()
            result = operation(connection)
            connection.commit()
        except BaseException:
            connection.close()
            raise
        self._idle.put(connection)
        if self._closed:
            self._close_idle()
        return result


def _look_at(work: "asyncio.Future[Result]") -> None:
    """An error counts as seen even if its caller has gone."""
    if not work.cancelled() and (error := work.exception()) is not None:
        logger.debug("a read failed: %s", error)
