"""A match log, cursors and dead letters as plain lists and sets: the obvious, slow way.

Delivery is tested on these, and they are what the real ones must agree with.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from server.deliveries.leases import size_of
from server.documents import Document
from server.store.dead_letters import DeadLetter

MOST_NUMBERS = 4096


@dataclass(slots=True)
class MemoryRecord:
    """One document and who wants it."""

    position: int
    document: Document
    numbers: np.ndarray
    sequences: np.ndarray


class MemoryLog:
    """All records in a list."""

    def __init__(self) -> None:
        self.records: list[MemoryRecord] = []
        self.heads = np.zeros(MOST_NUMBERS, np.int64)
        self.on_append: Callable[[Sequence[MemoryRecord]], None] = lambda records: None
        self.before_read: Callable[[], None] = lambda: None
        self.n_reads = 0

    @property
    def position(self) -> int:
        return len(self.records)

    def put(self, document: Document, *numbers: int) -> MemoryRecord:
        """Append and dispatch, at once."""
        wanted = np.array(sorted(numbers), np.int64)
        self.heads[wanted] += 1
        record = MemoryRecord(self.position + 1, document, wanted, self.heads[wanted])
        self.records.append(record)
        self.on_append([record])
        return record

    async def append(self, entries: Sequence[tuple[str, Document, np.ndarray]]) -> list[MemoryRecord]:
        return [self.put(document, *numbers.tolist()) for _, document, numbers in entries]

    async def read(
        self, number: int, first_sequence: int, max_messages: int, max_bytes: int
    ) -> list[tuple[int, Document]]:
        self.n_reads += 1
        found: list[tuple[int, Document]] = []
        for sequence, document in self._of(number):
            if sequence >= first_sequence and len(found) < max_messages:
                max_bytes -= size_of(document)
                if found and max_bytes < 0:
                    break
                found.append((sequence, document))
        return found

    async def read_from(
        self, numbers: np.ndarray, position: int, max_records: int, max_bytes: int
    ) -> tuple[list[MemoryRecord], int]:
        self.n_reads += 1
        self.before_read()
        found: list[MemoryRecord] = []
        for record in self.records[position:]:
            mine = np.isin(record.numbers, numbers)
            if mine.any():
                max_bytes -= size_of(record.document)
                if len(found) == max_records or (found and max_bytes < 0):
                    return found, record.position - 1
                found.append(replace(record, numbers=record.numbers[mine], sequences=record.sequences[mine]))
        return found, self.position

    async def sequence_at(self, number: int, time: float) -> int:
        later = (sequence for sequence, document in self._of(number) if document.publish_time >= time)
        return next(later, int(self.heads[number]) + 1)

    def _of(self, number: int) -> list[tuple[int, Document]]:
        """All of one subscription: sequence and document."""
        documents = [record.document for record in self.records if number in record.numbers]
        return list(enumerate(documents, 1))


class MemoryCursors:
    """Every sequence that is done, in a set for each number."""

    def __init__(self, log: MemoryLog) -> None:
        self._log = log
        self.done: defaultdict[int, set[int]] = defaultdict(set)
        self._attempts: defaultdict[tuple[int, int], int] = defaultdict(int)
        self._digest_times: dict[int, float] = {}
        self.n_flushes = 0

    @property
    def floors(self) -> np.ndarray:
        return np.array([self.floor(number) for number in range(MOST_NUMBERS)], np.int64)

    def floor(self, number: int) -> int:
        """All up to this one are done."""
        sequence = 0
        while sequence + 1 in self.done.get(number, ()):
            sequence += 1
        return sequence

    def acknowledge(
        self, numbers: np.ndarray, sequences: np.ndarray, positions: np.ndarray | int | None = None
    ) -> None:
        for number, sequence in zip(numbers.tolist(), sequences.tolist(), strict=True):
            assert 0 < sequence <= self._log.heads[number]
            self.done[number].add(sequence)
            self._attempts.pop((number, sequence), None)

    def acknowledge_through(self, numbers: np.ndarray, sequences: np.ndarray) -> None:
        for number, sequence in zip(numbers.tolist(), sequences.tolist(), strict=True):
            self.done[number].update(range(1, min(sequence, int(self._log.heads[number])) + 1))

    def is_done(self, number: int, sequence: int) -> bool:
        return sequence in self.done[number]

    def undone(self, numbers: np.ndarray, sequences: np.ndarray) -> np.ndarray:
        pairs = zip(numbers.tolist(), sequences.tolist(), strict=True)
        return np.array([not self.is_done(*pair) for pair in pairs], np.bool_)

    def has_backlog(self, numbers: np.ndarray) -> np.ndarray:
        return np.array([self.backlog(np.array([number])) > 0 for number in numbers.tolist()], np.bool_)

    def positions(self, numbers: np.ndarray) -> np.ndarray:
        return np.array([self._position(number) for number in numbers.tolist()], np.int64)

    def attempts(self, number: int, sequence: int) -> int:
        return self._attempts.get((number, sequence), 0)

    def count_attempt(self, number: int, sequence: int) -> int:
        self._attempts[number, sequence] += 1
        return self._attempts[number, sequence]

    def digest_time(self, number: int) -> float:
        return self._digest_times.get(number, 0.0)

    def set_digest_time(self, number: int, time: float) -> None:
        self._digest_times[number] = time

    def seek(self, number: int, next_sequence: int) -> None:
        self.done[number] = set(range(1, next_sequence))

    def forget(self, number: int) -> None:
        self.seek(number, int(self._log.heads[number]) + 1)

    async def flush(self) -> None:
        self.n_flushes += 1

    def backlog(self, numbers: np.ndarray) -> int:
        return sum(int(self._log.heads[number]) - len(self.done[number]) for number in numbers.tolist())

    def _position(self, number: int) -> int:
        """Before the first record that is not done."""
        floor = self.floor(number)
        mine = [record.position for record in self._log.records if number in record.numbers]
        return mine[floor] - 1 if floor < len(mine) else self._log.position


class MemoryDeadLetters:
    """Dead letters in a list."""

    def __init__(self) -> None:
        self.letters: list[DeadLetter] = []
        self.failures: list[Exception] = []

    async def add(self, letters: Sequence[DeadLetter]) -> None:
        if self.failures:
            raise self.failures.pop(0)
        self.letters.extend(letters)

    async def page(self, number: int, after_sequence: int, limit: int) -> Sequence[DeadLetter]:
        mine = [letter for letter in self.letters if letter.number == number and letter.sequence > after_sequence]
        return sorted(mine, key=lambda letter: letter.sequence)[:limit]
