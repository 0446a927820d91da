"""One group of jobs, one transaction, and an outcome for each, whatever the database does meanwhile.

    run all of them ──▶ commit ──▶ their results
         │                │
         ├── REFUSED ─────┤                 undone; each runs again behind a savepoint, and only the bad ones fail
         ├── UNAVAILABLE ─┤                 undone; all fail with StoreUnavailable, nothing was written
         └── LOST         └── LOST          connect again, with growing pauses
               │                │
          run them again     did it land? ── yes ──▶ their results
                                └── no ──▶ run them again

A commit that is cut off may have landed. Each transaction writes its batch number to this writer's own row, so the
next connection tells: either the row has the number, or the transaction never was.
"""

import logging
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any

from server.errors import StoreError, StoreUnavailable
from server.store.databases import Connection, Database, Trouble
from server.store.jobs import Job

__all__ = ["Committer", "Outcome"]

logger = logging.getLogger("pathsieve.store")

FIRST_PAUSE = 0.02
LONGEST_PAUSE = 1.0
FORGOTTEN_AFTER = 30 * 86400.0

Outcome = tuple[Job, Any, Exception | None]
Run = Callable[[Connection, Sequence[Job]], list[Outcome]]


class Committer:
    """The writer's connection, used by one thread at a time. Setting `stopping` ends every wait."""

    def __init__(self, database: Database, clock: Callable[[], float] = time.time) -> None:
        self.stopping = threading.Event()
        self._database = database
        self._name = uuid.uuid4().hex
        self._batch = 0
        self._pause = FIRST_PAUSE
        self._uncertain: list[Outcome] | None = None
        self._connection: Connection | None = self._connect()
        now = clock()
        self._connection.execute("DELETE FROM writers WHERE opened < ?", (now - FORGOTTEN_AFTER,))
        self._connection.execute("INSERT INTO writers (writer, batch, opened) VALUES (?, 0, ?)", (self._name, now))

    def write(self, jobs: Sequence[Job]) -> list[Outcome]:
        """Commit the jobs, and return what became of each.

        Left out are those whose callers were told meanwhile that nothing was written.
        """
        run: Run = _run_together
        while jobs := [job for job in jobs if job.take()]:
            if self.stopping.is_set() and self._connection is None:
                return _all_failed(jobs, StoreUnavailable("it was closed before it answered"))
            if self._connection is None and not self._reconnect():
                _put_back(jobs)
                self._wait()
                continue
            try:
                return self._attempt(run, jobs)
            except Exception as error:
                trouble = self._database.trouble(error)
                logger.debug("a transaction of %s operations is %s", len(jobs), trouble.value, exc_info=True)
                if trouble is Trouble.LOST:
                    logger.warning("the connection to the store was lost: %s", error)
                    outcomes = self._after_loss(jobs)
                else:
                    self._undo()
                    final = trouble is Trouble.UNAVAILABLE or run == self._run_alone
                    outcomes = _all_failed(jobs, _told(error, trouble)) if final else None
                    run = self._run_alone
            if outcomes is not None:
                return outcomes
        return []

    def _attempt(self, run: Run, jobs: Sequence[Job]) -> list[Outcome]:
        connection = self._connection
        assert connection is not None
        self._batch += 1
        self._uncertain = None
        connection.begin()
        outcomes = run(connection, jobs)
        self._uncertain = outcomes
        connection.commit("UPDATE writers SET batch = ? WHERE writer = ?", (self._batch, self._name))
        self._pause = FIRST_PAUSE
        return outcomes

    def _run_alone(self, connection: Connection, jobs: Sequence[Job]) -> list[Outcome]:
        """Each job behind a savepoint, so that what it did can be undone alone."""
        outcomes: list[Outcome] = []
        for job in jobs:
            connection.execute("SAVEPOINT alone")
            try:
                outcomes.append((job, job.handler(connection, [job.payload])[0], None))
            except Exception as error:
                if self._database.trouble(error) is not Trouble.REFUSED:
                    raise
                logger.debug("an operation failed alone", exc_info=True)
                connection.execute("ROLLBACK TO SAVEPOINT alone")
                outcomes.append((job, None, error))
            connection.execute("RELEASE SAVEPOINT alone")
        return outcomes

    def _after_loss(self, jobs: Sequence[Job]) -> list[Outcome] | None:
        """The outcomes, if the commit landed; None if the jobs are to be run again."""
        self._hang_up()
        uncertain = self._uncertain
        while uncertain is not None:
            if self._reconnect() and (last_batch := self._last_batch()) is not None:
                if last_batch == self._batch:
                    return uncertain
                break
            if self.stopping.is_set():
                return _all_failed(jobs, StoreUnavailable("it was closed before it answered", outcome_unknown=True))
            self._wait()
        _put_back(jobs)
        self._wait()
        return None

    def _last_batch(self) -> int | None:
        """The newest batch of ours that landed; None if the connection is lost again before it tells."""
        assert self._connection is not None
        try:
            return int(self._connection.execute("SELECT batch FROM writers WHERE writer = ?", (self._name,))[0][0])
        except self._database.errors as error:
            logger.info("the store did not tell whether the last commit landed: %s", error)
            self._hang_up()
            return None

    def _connect(self) -> Connection:
        connection = self._database.connect()
        try:
            self._database.claim(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _reconnect(self) -> bool:
        problems: tuple[type[Exception], ...] = (StoreError, *self._database.errors)
        try:
            self._connection = self._connect()
        except problems as error:
            logger.info("the store does not take a connection: %s", error)
            return False
        logger.info("connected to the store again")
        return True

    def _wait(self) -> None:
        self.stopping.wait(self._pause)
        self._pause = min(2 * self._pause, LONGEST_PAUSE)

    def _undo(self) -> None:
        assert self._connection is not None
        try:
            self._connection.rollback()
        except self._database.errors as error:
            logger.warning("a transaction could not be undone, so its connection is closed: %s", error)
            self._hang_up()

    def _hang_up(self) -> None:
        connection, self._connection = self._connection, None
        if connection is None:
            return
        try:
            connection.close()
        except self._database.errors as error:
            logger.info("a connection to the store could not be closed: %s", error)

    def close(self) -> None:
        """Sign off and hang up."""
        try:
            if self._connection is not None:
                self._connection.execute("DELETE FROM writers WHERE writer = ?", (self._name,))
        except self._database.errors as error:
            logger.info("the store could not be signed off from: %s", error)
        self._hang_up()
        self._database.release()


def _run_together(connection: Connection, jobs: Sequence[Job]) -> list[Outcome]:
    """All jobs as they come; those in a row that have the same handler are run by one call of it."""
    outcomes: list[Outcome] = []
    for handler, in_a_row in groupby(jobs, key=lambda job: job.handler):
        together = list(in_a_row)
        results = handler(connection, [job.payload for job in together])
        outcomes += [(job, result, None) for job, result in zip(together, results, strict=True)]
    return outcomes


def _put_back(jobs: Sequence[Job]) -> None:
    for job in jobs:
        job.put_back()


def _all_failed(jobs: Sequence[Job], error: Exception) -> list[Outcome]:
    return [(job, None, error) for job in jobs]


def _told(error: Exception, trouble: Trouble) -> Exception:
    return StoreUnavailable(str(error)) if trouble is Trouble.UNAVAILABLE else error
