"""The newest records with their documents, for readers at the tail: as many as fit into some bytes.

oldest ──▶ │ 41 │ 42 │ 43 │ 44 │ ◀── newest      positions have no gaps, so a record is found by its position
"""

from collections import deque
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
        self._records: deque[Record] = deque()

    def __len__(self) -> int:
        return len(self._records)

    def add(self, record: Record) -> None:
        self._records.append(record)
        self.n_bytes += record.memory
        while self.n_bytes > self.max_bytes:
            self.n_bytes -= self._records.popleft().memory

    def get(self, position: int) -> Record | None:
        """The record at a position, if it is recent."""
        if not self._records:
            return None
        place = position - self._records[0].position
        return self._records[place] if 0 <= place < len(self._records) else None

    def clear(self) -> None:
        """Forget them; they are read from the store then."""
        self._records.clear()
        self.n_bytes = 0
