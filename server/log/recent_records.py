"""The newest records with their documents, for readers at the tail: as many as fit into some bytes.

oldest ──▶ │ 41 │ 42 │ 44 │ 47 │ ◀── newest      a replica keeps only those that somebody here listens for
"""

from dataclasses import dataclass

import numpy as np

from server.documents import Document

__all__ = ["RecentRecords", "Record"]

OVERHEAD = 600


@dataclass(slots=True)
class Record:
    """A document and who wants it: numbers, ascending, and the sequence that each has here."""

    position: int
    document: Document
    numbers: np.ndarray
    sequences: np.ndarray

    @property
    def memory(self) -> int:
        return len(self.document.xml) + self.numbers.nbytes + self.sequences.nbytes + OVERHEAD


class RecentRecords:
    """The newest records, bounded by `max_bytes`."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.n_bytes = 0
        self._records: dict[int, Record] = {}

    def __len__(self) -> int:
        return len(self._records)

    def add(self, record: Record) -> None:
        self._records[record.position] = record
        self.n_bytes += record.memory
        while self.n_bytes > self.max_bytes:
            oldest = next(iter(self._records))
            self.n_bytes -= self._records.pop(oldest).memory

    def get(self, position: int) -> Record | None:
        """The record at a position, if it is recent."""
        return self._records.get(position)

    def clear(self) -> None:
        """Forget them; they are read from the store then."""
        self._records.clear()
        self.n_bytes = 0
