"""Which subscriptions want some documents? Answered here, by the engines of this process.

    documents of one tenant ──▶ a thread ──▶ StandingFilters ──▶ numbers of each, ascending

`server.cluster.matching` gives the same answer for several replicas that share the subscriptions.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

from server.documents import Document
from sievefilters import Matched, StandingFilters

__all__ = ["EngineMatching", "Match", "Matching"]

logger = logging.getLogger("pathsieve.matching")

ENOUGH_TO_SHARE = 16
"""Fewer documents are matched by one thread: to wake others, and to wait for them, takes longer than the work. At half
load, where two or three wait, a batch took 3.0 ms shared, and 1.4 ms alone."""


def nobody(accepted: Sequence[int]) -> None:
    """Nobody wants to know."""


@dataclass(frozen=True, slots=True)
class Match:
    """What was found for each document; `tell` is to be called with the places of those that were accepted."""

    found: Sequence[Matched | BaseException]
    tell: Callable[[Sequence[int]], None] = nobody


class Matching(Protocol):
    """Whoever can tell which subscriptions want documents."""

    async def match(self, tenant: str, documents: Sequence[Document]) -> Match: ...
    def close(self) -> None: ...


class EngineMatching:
    """The engines of this process, one batch at a time. `cpu_seconds` is what one thread has used for it."""

    def __init__(
        self,
        filters_of: Callable[[str], StandingFilters],
        threads: int = 2,
        on_match: Callable[[float, int], None] = lambda seconds, n_documents: None,
    ) -> None:
        self.cpu_seconds = 0.0
        self.n_documents = 0
        self._filters_of = filters_of
        self._threads = threads
        self._on_match = on_match
        self._matcher = ThreadPoolExecutor(1, thread_name_prefix="pathsieve-match")

    async def match(self, tenant: str, documents: Sequence[Document]) -> Match:
        if not documents:
            return Match([])
        matching = asyncio.get_running_loop().run_in_executor(self._matcher, self._match, tenant, documents)
        started = time.perf_counter()
        await asyncio.wait([matching])
        self._on_match(time.perf_counter() - started, len(documents))
        error = matching.exception()
        if error is None:
            return Match(matching.result())
        # A fault of ours: it must not stop the documents behind these.
        logger.error("matching %d documents failed", len(documents), exc_info=error)
        return Match([error] * len(documents))

    def _match(self, tenant: str, documents: Sequence[Document]) -> list[Matched]:
        """In the thread."""
        started = time.thread_time()
        threads = self._threads if len(documents) >= ENOUGH_TO_SHARE else 1
        found = self._filters_of(tenant).match_many(documents, threads)
        self.cpu_seconds += time.thread_time() - started
        self.n_documents += len(documents)
        return found

    def close(self) -> None:
        self._matcher.shutdown()
