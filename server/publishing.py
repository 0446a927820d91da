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
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from server.deliveries import EPHEMERAL
from server.documents import Document
from server.errors import Draining, NoOwner, ServerError, StoreUnavailable
from server.log.match_log import Entry, MatchLog, Record
from server.matching import Match, Matching
from server.repetitions import Repetitions, key_of
from server.store.jobs import Operation
from server.store.published import PublishedIds
from sievefilters import Matched

__all__ = ["Append", "Outcome", "Published", "Publishing", "PublishingCounts", "PublishingSettings", "appending_to"]

logger = logging.getLogger("pathsieve.publishing")


@dataclass(frozen=True, slots=True)
class PublishingSettings:
    """`batch_documents` are matched together; more than `most_waiting_bytes` wait outside."""

    batch_documents: int = 256
    most_waiting_bytes: int = 64 << 20
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
Append = Callable[[Sequence[Entry], Sequence[bytes | None], Sequence[Operation]], Awaitable[Sequence[bool]]]
"""Makes entries durable, with their keys and with what else is to be done; tells which of them are new."""


def appending_to(log: MatchLog) -> Append:
    """For a server that stands alone: it knows by itself what has come before."""

    async def append(
        entries: Sequence[Entry], keys: Sequence[bytes | None], also: Sequence[Operation]
    ) -> Sequence[bool]:
        await log.append(entries, also)
        return [True] * len(entries)

    return append


@dataclass
class PublishingCounts:
    """Since the server started. `unavailable` may be sent again; `refused` are the documents' own fault."""

    accepted: int = 0
    refused: int = 0
    unavailable: int = 0
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


Found = Matched | BaseException
Batch = tuple[list[_Request], Match]
_Arrival = tuple[_Request, int, Found]


class Publishing:
    """The way of documents through the server. All methods belong to the event loop."""

    def __init__(
        self,
        matching: Matching,
        append: Append,
        streams: EphemeralStreams,
        settled: Callable[[], Awaitable[None]],
        settings: PublishingSettings | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.settings = settings or PublishingSettings()
        self.counts = PublishingCounts()
        self.repetitions: Repetitions[Outcome] = Repetitions(
            self.settings.repetition_window, self.settings.most_repetitions, clock
        )
        self._matching = matching
        self._append_to_log = append
        self._streams = streams
        self._settled = settled
        self._clock = clock
        self._requests: deque[_Request] = deque()
        self._waiting_bytes = 0
        self._room = asyncio.Condition()
        self._arrived = asyncio.Event()
        self._matched: asyncio.Queue[Batch] = asyncio.Queue(maxsize=2)
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
        self._matching.close()

    async def publish(self, tenant: str, documents: Sequence[Document], also: Also | None = None) -> list[Outcome]:
        """What becomes of each document, in order: accepted and durable, or why not.

        `also` is told how many documents there are and how many matches, and what it returns is done in the same
        transaction. Then it is all or nothing: if that fails, or one of the documents, all of them fail.
        """
        await self._wait_for_room(sum(len(document.xml) for document in documents))
        if also is not None:
            await self._not_in_flight(tenant, documents)
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

    async def _not_in_flight(self, tenant: str, documents: Sequence[Document]) -> None:
        """Wait for others who publish the same documents just now: whether they fail must be known before."""
        keys = [key_of(tenant, document.source, document.id) for document in documents if document.id]
        while firsts := [first for key in keys if (first := self.repetitions.in_flight(key)) is not None]:
            await asyncio.wait(firsts)

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
            await self._matched.put((batch, await self._matching.match(batch[0].tenant, documents)))

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
        arrivals = _all_or_nothing([arrival for requests, match in batches for arrival in _arrivals(requests, match)])
        failure, repeated = await self._append(arrivals, _operations(batches))
        for place, (request, position, found) in enumerate(arrivals):
            self._settle(request, position, found, failure, place in repeated)
        for requests, match in batches:
            match.tell(_accepted(requests))
        if isinstance(failure, StoreUnavailable) and failure.outcome_unknown:
            self._run(self._resolve(arrivals, failure))
        for requests, _ in batches:
            for request in requests:
                self._unfinished -= 1
                self._waiting_bytes -= request.n_bytes
                request.done.set_result(None)
        async with self._room:
            self._room.notify_all()

    async def _append(
        self, arrivals: Sequence[_Arrival], also: Sequence[Operation]
    ) -> tuple[BaseException | None, set[int]]:
        """Append all durable matches to the log; why not, if the store cannot take them, and which it had already."""
        places = [place for place, (_, _, found) in enumerate(arrivals) if _is_durable(found)]
        if not places and not also:
            return None, set()
        wanted = [arrivals[place] for place in places]
        entries = [(request.tenant, request.documents[at], _durable(found)) for request, at, found in wanted]
        keys = [request.keys[at] for request, at, _ in wanted]
        appending = asyncio.ensure_future(self._append_to_log(entries, keys, also))
        await asyncio.wait([appending])
        error = appending.exception()
        if error is None:
            return None, {place for place, is_new in zip(places, appending.result(), strict=True) if not is_new}
        if not isinstance(error, ServerError):
            logger.error("appending %d documents failed", len(entries), exc_info=error)
        return error, set()

    def _settle(
        self, request: _Request, position: int, found: Found, failure: BaseException | None, is_repeated: bool
    ) -> None:
        """The outcome of one document. Streams are told of what is accepted, and only then."""
        outcome: Outcome
        if isinstance(found, BaseException):
            outcome = found
        elif is_repeated:
            outcome = self._repeated(request.documents[position])
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
        if isinstance(outcome, Published) and outcome.duplicate:
            return
        if isinstance(outcome, Published):
            self.counts.accepted += 1
            self.counts.matches += outcome.matches
        elif isinstance(outcome, StoreUnavailable | NoOwner):
            self.counts.unavailable += 1
        else:
            self.counts.refused += 1


def _places(requests: Sequence[_Request]) -> list[tuple[_Request, int]]:
    return [(request, position) for request in requests for position in request.waiting]


def _arrivals(requests: Sequence[_Request], match: Match) -> list[_Arrival]:
    """Each document of a batch with what it matched."""
    found = zip(_places(requests), match.found, strict=True)
    return [(request, position, numbers) for (request, position), numbers in found]


def _all_or_nothing(arrivals: list[_Arrival]) -> list[_Arrival]:
    """What fails of a request that has more to do in the transaction fails all of it."""
    failed = {request: found for request, _, found in arrivals if request.also and isinstance(found, BaseException)}
    for request in failed:
        request.also = None
    return [(request, position, failed.get(request, found)) for request, position, found in arrivals]


def _accepted(requests: Sequence[_Request]) -> list[int]:
    """The places, in the batch, of documents that were accepted and are new."""
    outcomes = (request.outcomes[position] for request, position in _places(requests))
    return [place for place, outcome in enumerate(outcomes) if isinstance(outcome, Published) and not outcome.duplicate]


def _operations(batches: Sequence[Batch]) -> list[Operation]:
    """What else is to be done in the transaction."""
    operations = []
    for requests, match in batches:
        arrivals = _arrivals(requests, match)
        for request in requests:
            if request.also is not None:
                found = [len(one) for whose, _, one in arrivals if whose is request and isinstance(one, np.ndarray)]
                operations.append(request.also(len(found), sum(found)))
    return operations


def _n_durable(found: np.ndarray) -> int:
    return int(found.searchsorted(EPHEMERAL))


def _durable(found: Found) -> np.ndarray:
    assert isinstance(found, np.ndarray)
    return found[: _n_durable(found)]


def _is_durable(found: Found) -> bool:
    return isinstance(found, np.ndarray) and len(found) > 0 and int(found[0]) < EPHEMERAL
