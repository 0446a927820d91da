"""From documents that come in to matches that are durable.

    publish ──▶ seen before? ──▶ waiting ──▶ match, in a thread ──▶ append to the match log ──▶ results
                   │ yes                      all that waits of         one commit              ephemeral streams
                   └──▶ acknowledged          one tenant, together                              are told

Two tasks work hand in hand: while one batch is being made durable, the next is being matched. Batches stay in order,
so what one publisher sends in order gets its sequence numbers in that order. A document is acknowledged when all that
it matched is durable; if the store cannot take it, it is refused, and may be sent again. If the store was too slow to
say whether it took it, who sent it is told so at once, and a repetition waits until it is known.
"""

import asyncio
import logging
import time
import uuid
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from server.deliveries import EPHEMERAL
from server.documents import Document
from server.errors import Draining, ServerError, StoreUnavailable
from server.filters import Matched, TenantFilters
from server.log.match_log import MatchLog, Record
from server.repetitions import Repetitions, key_of
from server.store.jobs import Operation
from server.store.published import PublishedIds

__all__ = ["Outcome", "Published", "Publishing", "PublishingCounts", "PublishingSettings"]

logger = logging.getLogger("pathsieve.publishing")

ENOUGH_TO_SHARE = 16
"""Fewer documents are matched by one thread: to wake others, and to wait for them, takes longer than the work. At half
load, where two or three wait, a batch took 3.0 ms shared, and 1.4 ms alone."""


@dataclass(frozen=True, slots=True)
class PublishingSettings:
    """`batch_documents` are matched together; more than `most_waiting_bytes` wait outside."""

    batch_documents: int = 256
    most_waiting_bytes: int = 64 << 20
    threads: int = 2
    repetition_window: float = 600.0
    most_repetitions: int = 1_000_000


@dataclass(frozen=True, slots=True)
class Published:
    """A document was accepted: how many subscriptions want it, or that it had come before."""

    document_id: str
    matches: int = 0
    duplicate: bool = False


Outcome = Published | BaseException
Also = Callable[[int, int], Operation]


@dataclass
class PublishingCounts:
    """Since the server started."""

    accepted: int = 0
    refused: int = 0
    duplicates: int = 0
    matches: int = 0


class EphemeralStreams(Protocol):
    def dispatch_ephemeral(self, document: Document, numbers: np.ndarray) -> None: ...


@dataclass(eq=False)
class _Request:
    """Documents of one tenant that came together, and what has become of them so far."""

    tenant: str
    documents: list[Document]
    keys: list[bytes | None]
    outcomes: list[Outcome | None]
    waiting: list[int] = field(default_factory=list)
    repeated: "list[tuple[int, asyncio.Future[Outcome]]]" = field(default_factory=list)
    n_bytes: int = 0
    also: Also | None = None
    done: "asyncio.Future[None]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())


Batch = tuple[list[_Request], list[Matched]]
_Arrival = tuple[_Request, int, Matched]


class Publishing:
    """The way of documents through the server. All methods belong to the event loop."""

    def __init__(
        self,
        filters_of: Callable[[str], TenantFilters],
        log: MatchLog,
        streams: EphemeralStreams,
        settled: Callable[[], Awaitable[None]],
        settings: PublishingSettings | None = None,
        clock: Callable[[], float] = time.time,
        on_match: Callable[[float, int], None] = lambda seconds, n_documents: None,
    ) -> None:
        self.settings = settings or PublishingSettings()
        self.counts = PublishingCounts()
        self.repetitions: Repetitions[Outcome] = Repetitions(
            self.settings.repetition_window, self.settings.most_repetitions, clock
        )
        self._filters_of = filters_of
        self._log = log
        self._streams = streams
        self._settled = settled
        self._clock = clock
        self._on_match = on_match
        self._requests: deque[_Request] = deque()
        self._waiting_bytes = 0
        self._room = asyncio.Condition()
        self._arrived = asyncio.Event()
        self._matched: asyncio.Queue[Batch] = asyncio.Queue(maxsize=2)
        self._matcher = ThreadPoolExecutor(1, thread_name_prefix="pathsieve-match")
        self._tasks: set[asyncio.Task[None]] = set()
        self._uncertain: dict[int, Document] = {}
        self._unfinished = 0
        self._is_draining = False

    async def remember(self, published: PublishedIds) -> None:
        """Read from the store which documents came within the window."""
        chunks = [chunk async for chunk in published.since(self._clock() - self.settings.repetition_window)]
        recent = (document for chunk in reversed(chunks) for document in reversed(chunk))
        self.repetitions.load((key_of(one.tenant, one.source, one.id), one.publish_time) for one in recent)

    def start(self) -> None:
        self._run(self._match_batches())
        self._run(self._finish_batches())

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def drain(self) -> None:
        """Take no more; return when all that was taken is finished."""
        self._is_draining = True
        async with self._room:
            await self._room.wait_for(lambda: not self._unfinished)

    async def close(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._matcher.shutdown()

    async def publish(self, tenant: str, documents: Sequence[Document], also: Also | None = None) -> list[Outcome]:
        """What becomes of each document, in order: accepted and durable, or why not.

        `also` is told how many documents there are and how many matches, and what it returns is done in the same
        transaction: if that fails, the documents fail.
        """
        await self._wait_for_room(sum(len(document.xml) for document in documents))
        request = self._admit(tenant, documents)
        request.also = also
        self._requests.append(request)
        self._arrived.set()
        # The caller may be cancelled; what was admitted goes on, and others may wait for it.
        await asyncio.shield(request.done)
        for position, first in request.repeated:
            request.outcomes[position] = self._repeated(request.documents[position], await asyncio.shield(first))
        return request.outcomes  # type: ignore[return-value]

    def _admit(self, tenant: str, documents: Sequence[Document]) -> _Request:
        """Stamp the documents, and see which are new. A repetition of one in flight has no outcome yet."""
        now = self._clock()
        request = _Request(tenant, [], [], [])
        request.n_bytes = sum(len(document.xml) for document in documents)
        for position, document in enumerate(documents):
            document_id = document.id or uuid.uuid4().hex
            key = key_of(tenant, document.source, document_id) if document.id else None
            request.documents.append(replace(document, id=document_id, publish_time=now))
            request.keys.append(key)
            request.outcomes.append(None)
            if key is not None and self.repetitions.is_done(key):
                request.outcomes[position] = self._repeated(document)
            elif key is not None and (first := self.repetitions.in_flight(key)) is not None:
                request.repeated.append((position, first))
            else:
                request.waiting.append(position)
                if key is not None:
                    self.repetitions.begin(key)
        self._unfinished += 1
        return request

    def _repeated(self, document: Document, first: Outcome | None = None) -> Outcome:
        """What becomes of a repetition: it is acknowledged, unless the first one has failed."""
        if isinstance(first, BaseException):
            return first
        self.counts.duplicates += 1
        return Published(document.id, duplicate=True)

    async def _wait_for_room(self, n_bytes: int) -> None:
        """Wait until what waits is little enough; a request larger than all the room waits for all of it."""
        most = max(0, self.settings.most_waiting_bytes - n_bytes)
        if self._waiting_bytes > most:
            async with self._room:
                await self._room.wait_for(lambda: self._waiting_bytes <= most)
        if self._is_draining:
            raise Draining
        self._waiting_bytes += n_bytes

    async def _match_batches(self) -> None:
        while True:
            await self._arrived.wait()
            batch = self._next_batch()
            if not self._requests:
                self._arrived.clear()
            documents = [request.documents[position] for request in batch for position in request.waiting]
            matched = await self._match(batch[0].tenant, documents)
            await self._matched.put((batch, matched))

    async def _match(self, tenant: str, documents: Sequence[Document]) -> list[Matched]:
        if not documents:
            return []
        threads = self.settings.threads if len(documents) >= ENOUGH_TO_SHARE else 1
        matching = asyncio.get_running_loop().run_in_executor(
            self._matcher, self._filters_of(tenant).match_many, documents, threads
        )
        started = time.perf_counter()
        await asyncio.wait([matching])
        self._on_match(time.perf_counter() - started, len(documents))
        error = matching.exception()
        if error is None:
            return matching.result()
        # A fault of ours: it must not stop the documents behind these.
        logger.error("matching %d documents failed", len(documents), exc_info=error)
        return [error] * len(documents)  # type: ignore[list-item]

    def _next_batch(self) -> list[_Request]:
        """The oldest requests, as long as they are of one tenant and not too many documents."""
        batch = [self._requests.popleft()]
        room = self.settings.batch_documents - len(batch[0].waiting)
        while self._requests and self._requests[0].tenant == batch[0].tenant:
            room -= len(self._requests[0].waiting)
            if room < 0:
                break
            batch.append(self._requests.popleft())
        return batch

    async def _finish_batches(self) -> None:
        while True:
            batches = [await self._matched.get()]
            while not self._matched.empty():
                batches.append(self._matched.get_nowait())
            await self._finish(batches)

    async def _finish(self, batches: Sequence[Batch]) -> None:
        """Make batches durable in one commit, then tell everybody."""
        arrivals = [arrival for requests, matched in batches for arrival in _arrivals(requests, matched)]
        failure = await self._append(arrivals, _operations(batches))
        for request, position, found in arrivals:
            self._settle(request, position, found, failure)
        if isinstance(failure, StoreUnavailable) and failure.outcome_unknown:
            self._run(self._resolve(arrivals, failure))
        for requests, _ in batches:
            for request in requests:
                self._unfinished -= 1
                self._waiting_bytes -= request.n_bytes
                request.done.set_result(None)
        async with self._room:
            self._room.notify_all()

    async def _append(self, arrivals: Sequence[_Arrival], also: Sequence[Operation]) -> BaseException | None:
        """Append all durable matches to the log; why not, if the store cannot take them."""
        entries = [
            (request.tenant, request.documents[position], _durable(found))
            for request, position, found in arrivals
            if _is_durable(found)
        ]
        if not entries and not also:
            return None
        appending = asyncio.ensure_future(self._log.append(entries, also))
        await asyncio.wait([appending])
        error = appending.exception()
        if error is not None and not isinstance(error, ServerError):
            logger.error("appending %d documents failed", len(entries), exc_info=error)
        return error

    def _settle(self, request: _Request, position: int, found: Matched, failure: BaseException | None) -> None:
        """The outcome of one document. Streams are told of what is accepted, and only then."""
        outcome: Outcome
        if isinstance(found, BaseException):
            outcome = found
        elif failure is not None and (_is_durable(found) or request.also is not None):
            outcome = failure
        else:
            outcome = Published(request.documents[position].id, len(found))
            ephemeral = found[_n_durable(found) :]
            if len(ephemeral):
                self._streams.dispatch_ephemeral(request.documents[position], ephemeral)
        self._count(outcome)
        request.outcomes[position] = outcome
        if isinstance(outcome, StoreUnavailable) and outcome.outcome_unknown:
            self._uncertain[id(request.documents[position])] = request.documents[position]
        else:
            self._finish_repetition(request, position, outcome)

    def _finish_repetition(self, request: _Request, position: int, outcome: Outcome) -> None:
        key = request.keys[position]
        if key is not None:
            self.repetitions.finish(key, outcome, isinstance(outcome, Published))

    def landed(self, records: Iterable[Record]) -> None:
        """Records have become durable, whether or not somebody still waits for them."""
        if self._uncertain:
            for record in records:
                self._uncertain.pop(id(record.document), None)

    async def _resolve(self, arrivals: Sequence[_Arrival], failure: StoreUnavailable) -> None:
        """Find out what the store has taken after all, and tell those who repeat it."""
        await self._settled()
        for request, position, _ in arrivals:
            document = request.documents[position]
            if request.outcomes[position] is failure:
                has_landed = self._uncertain.pop(id(document), None) is None
                outcome: Outcome = Published(document.id) if has_landed else failure
                self._finish_repetition(request, position, outcome)

    def _count(self, outcome: Outcome) -> None:
        if isinstance(outcome, Published):
            self.counts.accepted += 1
            self.counts.matches += outcome.matches
        else:
            self.counts.refused += 1


def _arrivals(requests: Sequence[_Request], matched: Sequence[Matched]) -> list[_Arrival]:
    """Each document of a batch with what it matched."""
    places = [(request, position) for request in requests for position in request.waiting]
    return [(request, position, found) for (request, position), found in zip(places, matched, strict=True)]


def _operations(batches: Sequence[Batch]) -> list[Operation]:
    """What else is to be done in the transaction."""
    operations = []
    for requests, matched in batches:
        arrivals = _arrivals(requests, matched)
        for request in requests:
            if request.also is not None:
                found = [len(one) for whose, _, one in arrivals if whose is request and isinstance(one, np.ndarray)]
                operations.append(request.also(len(found), sum(found)))
    return operations


def _n_durable(found: np.ndarray) -> int:
    return int(found.searchsorted(EPHEMERAL))


def _durable(found: Matched) -> np.ndarray:
    assert isinstance(found, np.ndarray)
    return found[: _n_durable(found)]


def _is_durable(found: Matched) -> bool:
    return isinstance(found, np.ndarray) and len(found) > 0 and int(found[0]) < EPHEMERAL
