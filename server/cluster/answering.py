"""What a replica answers its peers: which of its subscriptions want these documents.

batch ──▶ the revision it asks for is reached ──▶ holdings ──▶ numbers, and for which tokens they speak
outcome ──▶ filters of streams here hear of the documents that were accepted, and only of those
"""

from collections import OrderedDict
from collections.abc import Sequence

import numpy as np

from pathsieve.v1.peer_service_pb2 import MatchAnswer, MatchBatch, MatchOutcome
from server.cluster.following import Following
from server.cluster.holdings import Holdings
from server.cluster.token_bits import to_bytes
from server.deliveries import EPHEMERAL, Deliveries
from server.documents import Document
from server.log.number_codes import pack_ascending
from server.rpc.translate import document_from

__all__ = ["Answering"]

MOST_WAITING = 1024
"""Batches whose outcome is awaited, on one stream; who asked and then died never tells."""

Waiting = dict[int, tuple[Document, np.ndarray]]


class Answering:
    """Answers the batches of one stream."""

    def __init__(self, holdings: Holdings, following: Following, deliveries: Deliveries) -> None:
        self._holdings = holdings
        self._following = following
        self._deliveries = deliveries
        self._waiting: OrderedDict[int, Waiting] = OrderedDict()

    async def answer(self, batch: MatchBatch) -> MatchAnswer:
        documents = [document_from(message) for message in batch.documents]
        await self._following.reached(batch.revision)
        loaded, match = await self._holdings.match(batch.tenant, documents)
        answer = MatchAnswer(batch=batch.batch, tokens=to_bytes(loaded))
        waiting: Waiting = {}
        for place, found in enumerate(match.found):
            if not isinstance(found, np.ndarray):
                answer.refused.append(place)
                answer.numbers.append(b"")
                continue
            n_durable = int(found.searchsorted(EPHEMERAL))
            answer.numbers.append(pack_ascending(found[:n_durable]))
            if n_durable < len(found):
                waiting[place] = documents[place], found[n_durable:]
        if waiting:
            answer.wants_outcome.extend(waiting)
            self._wait_for(batch.batch, waiting)
        return answer

    def _wait_for(self, batch: int, waiting: Waiting) -> None:
        self._waiting[batch] = waiting
        if len(self._waiting) > MOST_WAITING:
            self._waiting.popitem(last=False)

    def settle(self, outcomes: Sequence[MatchOutcome]) -> None:
        """Documents were accepted: streams whose filters want them hear of it."""
        for outcome in outcomes:
            waiting = self._waiting.pop(outcome.batch, {})
            for place in outcome.accepted:
                if place in waiting:
                    self._deliveries.dispatch_ephemeral(*waiting[place])
