"""Batches of documents that are published at one stroke, once, however often they are tried.

    (tenant, query, batch) ─┬─ part 0, attempt 0 ── documents        stage: durable, delivered to nobody
                            └─ part 1, attempt 3 ── documents
    commit ─▶ match the documents of the winning parts ─▶ one transaction: their matches, and that it is committed

A document is looked at when it is staged, so that whoever sends it learns what is wrong with it. It meets the
subscriptions that there are when the batch is committed. The same commit again has no effect and the same answer.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from server.documents import Document
from server.errors import InvalidRequest, StoreUnavailable
from server.publishing import Publishing
from server.store import Store
from server.store.jobs import Operation
from server.store.staging import AlreadyCommitted, Batch, Part
from sievefilters import StandingFilters

__all__ = ["Batch", "Committed", "Part", "Staging"]

N_LOCKS = 64


@dataclass(frozen=True, slots=True)
class Committed:
    """What a batch came to. `repeated` says that it had been committed before."""

    documents: int
    matches: int
    repeated: bool = False


class Staging:
    """Batches on their way in. `checker` has no subscriptions: it only tells which documents are good."""

    def __init__(self, store: Store, publishing: Publishing, checker: StandingFilters) -> None:
        self._store = store
        self._table = store.staging
        self._publishing = publishing
        self._checker = checker
        self._locks = [asyncio.Lock() for _ in range(N_LOCKS)]
        self._uncertain: set[Batch] = set()

    async def stage(
        self, batch: Batch, part: Part, documents: Sequence[Document], first_place: int
    ) -> Sequence[tuple[int, Exception]]:
        """Keep documents of a part, the first of which is number `first_place`; those that are refused, and why.

        The first ones, at place 0, replace what an earlier try at this part has left.
        """
        _check(batch)
        looked_at = await asyncio.to_thread(self._checker.match_many, documents)
        refused = [(place, found) for place, found in enumerate(looked_at) if isinstance(found, Exception)]
        wrong = {place for place, _ in refused}
        good = [document for place, document in enumerate(documents) if place not in wrong]
        await self._table.stage(batch, part, good, first_place)
        return refused

    async def commit(self, batch: Batch, parts: Sequence[Part], sizes: Sequence[int | None] = ()) -> Committed:
        """Publish the winning parts of a batch, once; others are dropped.

        `sizes` says how many documents parts must have, so that none is missing unnoticed. Who gives up waiting does
        not stop it: whoever asks again waits for the first one.
        """
        _check(batch)
        return await asyncio.shield(self._commit_alone(batch, parts, sizes))

    async def _commit_alone(self, batch: Batch, parts: Sequence[Part], sizes: Sequence[int | None]) -> Committed:
        async with self._locks[hash(batch) % N_LOCKS]:
            if batch in self._uncertain:
                await self._store.settled()
                self._uncertain.discard(batch)
            before = await self._table.result(batch)
            if before is not None:
                return Committed(before["documents"], before["matches"], repeated=True)
            documents = await self._table.staged(batch, parts, sizes)
            return await self._publish(batch, documents)

    async def _publish(self, batch: Batch, documents: Sequence[Document]) -> Committed:
        committed = Committed(0, 0)

        def mark(n_documents: int, n_matches: int) -> Operation:
            nonlocal committed
            committed = Committed(n_documents, n_matches)
            return self._table.committing(batch, {"documents": n_documents, "matches": n_matches})

        outcomes = await self._publishing.publish(batch.tenant, documents, also=mark)
        for outcome in outcomes:
            if isinstance(outcome, AlreadyCommitted):  # by another replica, a moment ago
                return Committed(outcome.result["documents"], outcome.result["matches"], repeated=True)
            if isinstance(outcome, BaseException):
                if isinstance(outcome, StoreUnavailable) and outcome.outcome_unknown:
                    self._uncertain.add(batch)
                raise outcome
        return committed

    async def abort(self, batch: Batch) -> None:
        """Forget what was staged of a batch that is not committed."""
        _check(batch)
        await self._table.abort(batch)


def _check(batch: Batch) -> None:
    if not batch.query:
        raise InvalidRequest("query", "expected the name of the query that the batch belongs to")
