"""Group commit: one thread takes all operations that wait, commits them together, and answers them in order.

    run ──▶ waiting ──▶ Committer: one transaction ──▶ landed, in order ──▶ futures, in order
            bounded     in the writer's thread         on the loop          on the loop

While one group is being synced to disk, the next one gathers. So the more there is to do, the more shares one sync.
"""

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from server.errors import StoreUnavailable
from server.store.committer import Committer, Outcome
from server.store.jobs import Handler, Job, Operation, run_each

__all__ = ["Commit", "Writer"]

logger = logging.getLogger("pathsieve.store")

LARGEST_GROUP = 1024


@dataclass(frozen=True, slots=True)
class Commit:
    """One group that went through, for the metrics."""

    seconds: float
    operations: int


class Writer:
    """The only one that writes. Its methods are called on the event loop."""

    def __init__(
        self,
        committer: Committer,
        *,
        deadline: float = 30.0,
        max_waiting: int = 10_000,
        on_commit: Callable[[Commit], None] | None = None,
    ) -> None:
        self.deadline = deadline
        self.max_waiting = max_waiting
        self.on_commit = on_commit
        self._committer = committer
        self._waiting: deque[Job] = deque()
        self._wake = threading.Condition()
        self._closing = False
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._work, name="pathsieve-writer", daemon=True)
        self._thread.start()

    async def run(self, operation: Operation) -> Any:
        """Run an operation in the next transaction; when this returns, it is durable."""
        return await self.run_together(run_each, operation)

    async def run_together(self, handler: Handler, payload: Any, landed: Callable[[Any], Any] | None = None) -> Any:
        """Like `run`; but all payloads of one handler that wait in a row are run by one call of it.

        `landed` turns the result into what the caller gets. It is called on the loop, in the order of the commits,
        for all jobs of a group before any of their callers goes on, and even if its caller has given up.
        """
        job = Job(handler, payload, landed, self._loop.create_future())
        self._enqueue(job)
        job.timer = self._loop.call_later(self.deadline, job.time_is_up, self.deadline)
        return await job.future

    def _enqueue(self, job: Job) -> None:
        with self._wake:
            if self._closing:
                raise StoreUnavailable("it is being closed")
            if len(self._waiting) >= self.max_waiting:
                raise StoreUnavailable(f"{len(self._waiting):,} operations wait already")
            self._waiting.append(job)
            self._wake.notify()

    async def close(self) -> None:
        """Finish what waits, and stop. What the database does not take within the deadline is given up."""
        with self._wake:
            self._closing = True
            self._wake.notify()
        await asyncio.to_thread(self._thread.join, self.deadline)
        self._committer.stopping.set()
        await asyncio.to_thread(self._thread.join, 1.0)
        if self._thread.is_alive():
            logger.warning("the store does not answer; what it was asked to write is left to it")

    def _work(self) -> None:
        while group := self._take_group():
            started = time.perf_counter()
            outcomes = self._committer.write(group)
            commit = Commit(time.perf_counter() - started, len(group))
            self._loop.call_soon_threadsafe(self._answer, outcomes, commit)
        self._committer.close()

    def _take_group(self) -> list[Job]:
        """What waits, once something does; nothing when it is time to stop."""
        with self._wake:
            self._wake.wait_for(lambda: self._waiting or self._closing)
            return [self._waiting.popleft() for _ in range(min(len(self._waiting), LARGEST_GROUP))]

    def _answer(self, outcomes: list[Outcome], commit: Commit) -> None:
        """On the loop: first everything that follows from the commit, then those who wait for it."""
        answers = [_landed(outcome) for outcome in outcomes]
        for (job, _, _), (result, error) in zip(outcomes, answers, strict=True):
            if error is None:
                job.succeed(result)
            else:
                job.fail(error)
        if self.on_commit is not None:
            self.on_commit(commit)


def _landed(outcome: Outcome) -> tuple[Any, Exception | None]:
    job, result, error = outcome
    if error is not None:
        return None, error
    try:
        return job.settle(result), None
    except Exception as problem:
        logger.exception("what follows from a commit failed; the commit stands")
        return None, problem
