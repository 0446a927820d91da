"""What happened, written down while it happens and judged afterwards against the oracle.

    subscribed   a subscription was acknowledged, before which publish
    sent         a document left for the server (again, perhaps)
    accepted     the server acknowledged it
    delivered    a subscription got it, under a sequence number

Whatever was killed in between, afterwards must hold, for every subscription:

    complete     every accepted document that it wants and that was sent after it was subscribed, was delivered
    exact        nothing was delivered that it does not want, and nothing that was never sent
    gap-free     its sequence numbers are 1, 2, 3, ... to the last
    one each     a sequence number always means the same document, and a document has one sequence number
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from server.documents import Document
from server.subscriptions import Filter
from tests.server_oracle import wants

__all__ = ["History"]


@dataclass
class History:
    """All that was seen from outside, in one order."""

    filters: dict[str, Filter] = field(default_factory=dict)
    documents: dict[str, Document] = field(default_factory=dict)
    first_sent: dict[str, int] = field(default_factory=dict)
    subscribed_at: dict[str, int] = field(default_factory=dict)
    accepted: set[str] = field(default_factory=set)
    deliveries: dict[str, list[tuple[int, str]]] = field(default_factory=lambda: defaultdict(list))
    _delivered: set[tuple[str, str]] = field(default_factory=set)
    _undelivered: set[tuple[str, str]] = field(default_factory=set)
    _clock: int = 0

    def _tick(self) -> int:
        self._clock += 1
        return self._clock

    def subscribed(self, name: str, filter: Filter) -> None:
        self.filters[name] = filter
        self.subscribed_at[name] = self._tick()

    def sent(self, document: Document) -> None:
        if document.id not in self.documents:
            self.documents[document.id] = document
            self.first_sent[document.id] = self._tick()

    def was_accepted(self, document_id: str) -> None:
        self.accepted.add(document_id)
        self._undelivered |= {
            (name, document_id)
            for name in self.filters
            if self._is_owed(name, document_id) and (name, document_id) not in self._delivered
        }

    def delivered(self, name: str, sequence: int, document_id: str) -> None:
        self.deliveries[name].append((sequence, document_id))
        self._delivered.add((name, document_id))
        self._undelivered.discard((name, document_id))

    @property
    def is_complete(self) -> bool:
        """Has everything arrived that is owed? Kept up as things happen, so that it may be asked often."""
        return not self._undelivered

    def _is_owed(self, name: str, document_id: str) -> bool:
        """Must the subscription get the document, once that is accepted?"""
        is_later = self.first_sent[document_id] > self.subscribed_at[name]
        return is_later and wants(self.filters[name], self.documents[document_id])

    def owed(self, name: str) -> set[str]:
        """Documents that the subscription must have got."""
        return {document_id for document_id in self.accepted if self._is_owed(name, document_id)}

    def faults(self) -> list[str]:
        """Everything that is wrong, in words."""
        return [fault for name in sorted(self.filters) for fault in self._faults_of(name)]

    def _faults_of(self, name: str) -> Iterator[str]:
        got = self.deliveries[name]
        for document_id in sorted(self.owed(name) - {document_id for _, document_id in got}):
            yield f"{name} never got {document_id}, which was accepted"
        for document_id in sorted({document_id for _, document_id in got}):
            if document_id not in self.documents:
                yield f"{name} got {document_id}, which was never sent"
            elif not wants(self.filters[name], self.documents[document_id]):
                yield f"{name} got {document_id}, which it does not want"
        yield from _double(name, got)
        sequences = sorted({sequence for sequence, _ in got})
        if sequences != list(range(1, len(sequences) + 1)):
            yield f"{name} has gaps in its sequence numbers: {_gaps(sequences)}"


def _double(name: str, got: list[tuple[int, str]]) -> Iterator[str]:
    """Sequence numbers of two documents, documents of two sequence numbers."""
    documents, sequences = defaultdict(set), defaultdict(set)
    for sequence, document_id in got:
        documents[sequence].add(document_id)
        sequences[document_id].add(sequence)
    for sequence, found in documents.items():
        if len(found) > 1:
            yield f"{name} got different documents under {sequence}: {sorted(found)}"
    for document_id, numbers in sequences.items():
        if len(numbers) > 1:
            yield f"{name} got {document_id} under several sequence numbers: {sorted(numbers)}"


def _gaps(sequences: list[int]) -> list[int]:
    return sorted(set(range(1, sequences[-1] + 1)) - set(sequences))[:10] if sequences else []
