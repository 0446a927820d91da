"""Rows of one partition to a server, in one of two ways.

    exactly-once    rows ─▶ chunks of `batchDocs` ─▶ stage, each under an attempt of its own ─▶ parts
                                                                  driver: commit(the parts of all partitions)
    at-least-once   rows ─▶ publish_many, as fast as the server takes them

A chunk that could not be staged is staged again under another number: what is left of the first try, should it still be
on its way, cannot come in between. One that is too much at once, in bytes or in time, is handed over in halves.

Where documents have no ids, at-least-once makes them: of what is in a document, and the how manieth such document it is
in its partition. So the same rows have the same ids when a task is repeated, in whatever order they come.
"""

import hashlib
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from pathsieve import Client, Document
from pathsieve.documents import to_document
from pathsieve.errors import DeadlineExceeded, LimitExceeded, PathSieveError
from pathsieve.statuses import is_passing
from pyspark_pathsieve.malformed import Malformed
from pyspark_pathsieve.patience import Patience
from pyspark_pathsieve.places import Place, new_attempt
from pyspark_pathsieve.rows import Row

__all__ = ["Part", "Publishing", "Staging"]

CHUNK_BYTES = 16 << 20
"""A chunk has `batchDocs` documents, or fewer if they are so large: two of them are in memory at a time."""


class Part(NamedTuple):
    """What was staged under one number."""

    partition: int
    attempt: int
    documents: int


class Staging:
    """Hands over chunks; `parts` are those that have arrived whole."""

    def __init__(self, client: Client, place: Place, chunk_docs: int, timeout: float, patience: Patience) -> None:
        self.parts: list[Part] = []
        self._begun: list[int] = []
        self._client = client
        self._place = place
        self._chunk_docs = chunk_docs
        self._timeout = timeout
        self._patience = patience

    def deliver(self, rows: Iterable[Row], malformed: Malformed) -> int:
        """Stage all rows; how many documents are good."""
        for chunk in _chunks(_sound(rows, malformed), self._chunk_docs):
            self._stage(chunk, malformed)
        return sum(part.documents for part in self.parts)

    def forget(self) -> None:
        """Drop what was staged: an empty try at a part replaces what it had."""
        for attempt in self._begun:
            self._client.stage(*self._place.batch_key, [], partition=self._place.partition, attempt=attempt, timeout=10)

    def _stage(self, chunk: Sequence[Row], malformed: Malformed) -> None:
        try:
            refused = self._patience.calling(lambda: self._try(chunk), lambda error: self._is_worth_it(error, chunk))
        except (LimitExceeded, DeadlineExceeded) as too_much:
            if is_passing(too_much):
                raise
            if len(chunk) > 1:
                middle = len(chunk) // 2
                self._stage(chunk[:middle], malformed)
                self._stage(chunk[middle:], malformed)
            elif isinstance(too_much, LimitExceeded):
                malformed.take(chunk[0], too_much)
            else:
                raise
        else:
            for place, reason in refused.items():
                malformed.take(chunk[place], reason)

    def _is_worth_it(self, error: PathSieveError, chunk: Sequence[Row]) -> bool:
        """Whether to try the same again: a chunk that took too long is halved first."""
        return is_passing(error) or (isinstance(error, DeadlineExceeded) and len(chunk) == 1)

    def _try(self, chunk: Sequence[Row]) -> dict[int, PathSieveError]:
        """Stage a chunk under a new number; the places of those that are refused, and why."""
        attempt = new_attempt()
        self._begun.append(attempt)
        documents = [row.document for row in chunk]
        place = self._place
        staged = self._client.stage(
            *place.batch_key, documents, partition=place.partition, attempt=attempt, timeout=self._timeout
        )
        self.parts.append(Part(place.partition, attempt, staged.staged))
        return dict(staged.refused)


class Publishing:
    """Publishes at once."""

    def __init__(self, client: Client, place: Place) -> None:
        self._client = client
        self._seed = f"{place.query}/{place.batch}/{place.partition}".encode()
        self._seen: Counter[bytes] = Counter()

    def deliver(self, rows: Iterable[Row], malformed: Malformed) -> int:
        """Publish all rows; how many documents are good."""
        waiting: deque[Row] = deque()
        n_good = 0
        for result in self._client.publish_many(self._documents(_sound(rows, malformed), waiting)):
            row = waiting.popleft()
            if result.error:
                malformed.take(row, result.error)
            else:
                n_good += 1
        return n_good

    def forget(self) -> None:
        """What is published stays published."""

    def _documents(self, rows: Iterable[Row], waiting: deque[Row]) -> Iterator[Document]:
        for row in rows:
            waiting.append(row)
            yield row.document if row.document.id else self._with_id(row.document)

    def _with_id(self, document: Document) -> Document:
        content = to_document(document).SerializeToString(deterministic=True)
        digest = hashlib.blake2b(content, digest_size=16, key=hashlib.blake2b(self._seed).digest()).digest()
        self._seen[digest] += 1
        return _identified(document, f"{digest.hex()}-{self._seen[digest]}")


def _identified(document: Document, document_id: str) -> Document:
    return Document(
        document.xml,
        id=document_id,
        source=document.source,
        attributes=document.attributes,
        headers=document.headers,
    )


def _sound(rows: Iterable[Row], malformed: Malformed) -> Iterator[Row]:
    """Those that make a document."""
    for row in rows:
        if row.problem:
            malformed.take(row, row.problem)
        else:
            yield row


def _chunks(rows: Iterable[Row], most: int) -> Iterator[list[Row]]:
    chunk: list[Row] = []
    n_bytes = 0
    for row in rows:
        chunk.append(row)
        n_bytes += len(row.document.xml)
        if len(chunk) == most or n_bytes >= CHUNK_BYTES:
            yield chunk
            chunk, n_bytes = [], 0
    if chunk:
        yield chunk
