"""The log's memory: the newest sequence of everyone, and the records that no closed segment holds yet.

    closed segments        sealed parts        open part
    ───────────────▶│◀───────────────────────────────────▶│ position
                 closed           in memory            newest

States of a stretch of records, each entered once:

    OPEN ── large enough, or old ──▶ SEALED ── index durable ──▶ CLOSED ── retention ──▶ EXPIRED
    grows                            being indexed               read by its index       gone
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from server.documents import Document
from server.log.parts import Part
from server.log.recent_records import RecentRecords, Record
from server.log.rows import PAGE, LogState, Segment

__all__ = ["LogTail", "SegmentLimits"]


NO_DOCUMENT = Document("")


@dataclass(frozen=True, slots=True)
class SegmentLimits:
    """The open part is sealed when it has reached one of these."""

    records: int = 8192
    matches: int = 2_000_000
    bytes: int = 64 << 20


class LogTail:
    """What is known of the log without asking the store. Only the event loop changes it."""

    def __init__(self, state: LogState, limits: SegmentLimits, recent_bytes: int) -> None:
        self.heads = np.zeros(PAGE, np.int64)
        self.position = state.closed
        self.closed = state.closed
        self.segments = state.segments
        self.parts = [Part(state.closed + 1)]
        self.recent = RecentRecords(recent_bytes)
        self.before_record: Callable[[int, np.ndarray, np.ndarray], None] | None = None
        self._limits = limits

    def ensure(self, number: int) -> None:
        """Make room for a number."""
        if number >= len(self.heads):
            n_pages = max(number // PAGE + 1, 2 * len(self.heads) // PAGE)
            grown = np.zeros(n_pages * PAGE, np.int64)
            grown[: len(self.heads)] = self.heads
            self.heads = grown

    def head(self, number: int) -> int:
        """The newest sequence of a number."""
        return int(self.heads[number]) if number < len(self.heads) else 0

    def add(self, document: Document, numbers: np.ndarray) -> Record:
        """The next record, which is durable."""
        sequences = self._count(numbers)
        record = Record(self.position, document, numbers, sequences)
        self.parts[-1].add(numbers, sequences, document.publish_time, len(document.xml))
        self.recent.add(record)
        return record

    def replay(self, numbers: np.ndarray, publish_time: float, n_bytes: int) -> Record:
        """The next record, found at the start or of no interest here, without its document."""
        sequences = self._count(numbers)
        self.parts[-1].add(numbers, sequences, publish_time, n_bytes)
        return Record(self.position, NO_DOCUMENT, numbers, sequences)

    def _count(self, numbers: np.ndarray) -> np.ndarray:
        if len(numbers):
            self.ensure(int(numbers[-1]))
        self.position += 1
        before = self.heads[numbers]
        sequences = before + 1
        self.heads[numbers] = sequences
        if self.before_record is not None:
            self.before_record(self.position, numbers, before)
        return sequences

    @property
    def is_full(self) -> bool:
        part = self.parts[-1]
        return bool(
            part.n_records >= self._limits.records
            or part.n_matches >= self._limits.matches
            or part.n_bytes >= self._limits.bytes
        )

    def seal(self) -> None:
        """OPEN → SEALED, and a new open part."""
        self.parts.append(Part(self.position + 1))

    def close_first(self, segment: Segment) -> None:
        """SEALED → CLOSED for the oldest part."""
        self.parts.pop(0)
        self.segments.append(segment)
        self.closed = segment.last_position

    def closed_elsewhere(self, closed: int, segments: Sequence[Segment]) -> None:
        """Another replica has closed segments up to a position, of which these are still there."""
        self.segments.extend(segments)
        self.closed = closed
        waiting = [part.after(self.closed) for part in self.parts if part.last_position > self.closed]
        self.parts = waiting or [Part(self.position + 1)]

    def expire_first(self) -> None:
        """CLOSED → EXPIRED for the oldest segment."""
        self.segments.pop(0)

    def find(self, number: int, after: int) -> tuple[np.ndarray, np.ndarray]:
        """The positions in memory, after one, of a number's records, and its sequences there."""
        found = [part.find(number, after) for part in self.parts if part.last_position > after]
        if not found:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        positions, sequences = zip(*found, strict=True)
        return np.concatenate(positions), np.concatenate(sequences)

    def part_after(self, position: int) -> Part | None:
        """The part in memory that holds the record after a position, if one does."""
        return next((part for part in self.parts if part.last_position > position), None)

    def segments_after(self, position: int) -> Sequence[Segment]:
        """The closed segments that hold records after a position."""
        return self.segments[bisect_right(self.segments, position, key=lambda segment: segment.last_position) :]
