"""A closed segment: which positions has a number, without looking at all records.

    part, by record            index, by number
    1: 4 7 9             ──▶   4   first sequence 12   positions 1
    2: 7 8                     7   first sequence  3   positions 1 2
                               8 ...

The index is cut into chunks of 16,384 numbers, so that one subscription's backlog is read without the rest: of a
million subscriptions and two million matches, a chunk is 100 KB of 6 MB. It is built by counting, not by sorting, in
a thread and without the GIL.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from server.log.number_codes import pack, pack_ascending, unpack, unpack_ascending
from server.log.parts import Part
from sievecore.jit import builder

__all__ = ["CHUNK_NUMBERS", "SegmentChunk", "SegmentIndex", "part_of_chunks", "warm_up"]

CHUNK_NUMBERS = 16_384
LENGTHS = struct.Struct("<QQQQQ")


@builder
def _count(numbers, n):
    """How often each number below n occurs."""
    counts = np.zeros(n, np.int64)
    for number in numbers:
        counts[number] += 1
    return counts


@builder
def _file(starts, numbers, sequences, ends):
    """The row of each match, ordered by number and then by row, and the first sequence of each number.

    `ends` comes in as where each number's rows begin and goes out as where they end.
    """
    rows = np.empty(len(numbers), np.int64)
    first_sequences = np.zeros(len(ends), np.int64)
    for row in range(len(starts) - 1):
        for match in range(starts[row], starts[row + 1]):
            number = numbers[match]
            rows[ends[number]] = row
            ends[number] += 1
            if not first_sequences[number]:
                first_sequences[number] = sequences[match]
    return rows, first_sequences


@dataclass(frozen=True, slots=True)
class SegmentChunk:
    """Of some numbers, ascending: `counts` rows each, one number after the other in `rows`."""

    numbers: np.ndarray
    counts: np.ndarray
    first_sequences: np.ndarray
    rows: np.ndarray

    @property
    def last_sequences(self) -> np.ndarray:
        """The sequence of each number in its last record of the segment."""
        return self.first_sequences + self.counts - 1

    @property
    def memory(self) -> int:
        return self.numbers.nbytes + self.counts.nbytes + self.first_sequences.nbytes + self.rows.nbytes

    def find(self, number: int) -> tuple[np.ndarray, int]:
        """The rows of a number's records in the segment, and its sequence in the first; no rows if it has none."""
        place = int(np.searchsorted(self.numbers, number))
        if place == len(self.numbers) or self.numbers[place] != number:
            return self.rows[:0], 0
        start = int(self.counts[:place].sum())
        return self.rows[start : start + int(self.counts[place])], int(self.first_sequences[place])

    def to_bytes(self) -> bytes:
        codes = (pack_ascending(self.numbers), pack(self.counts), pack(self.first_sequences), pack(self.rows))
        return LENGTHS.pack(len(self.numbers), *(len(code) for code in codes)) + b"".join(codes)

    @classmethod
    def from_bytes(cls, code: bytes) -> "SegmentChunk":
        n_numbers, *lengths = LENGTHS.unpack_from(code)
        ends = np.cumsum([LENGTHS.size, *lengths]).tolist()
        numbers, counts, first_sequences, rows = (code[start:end] for start, end in pairwise(ends))
        n_rows = unpack(counts, n_numbers)
        return cls(
            unpack_ascending(numbers), n_rows, unpack(first_sequences, n_numbers), unpack(rows, int(n_rows.sum()))
        )


class SegmentIndex(SegmentChunk):
    """The index of a whole segment: a chunk of all numbers."""

    __slots__ = ()

    @classmethod
    def build(cls, part: Part) -> "SegmentIndex":
        all_counts = _count(part.numbers, int(part.numbers.max(initial=0)) + 1)
        begins = np.cumsum(all_counts) - all_counts
        rows, first_sequences = _file(part.starts, part.numbers, part.sequences, begins)
        numbers = np.flatnonzero(all_counts)
        return cls(numbers, all_counts[numbers], first_sequences[numbers], rows)

    def chunks(self) -> Iterator[tuple[int, SegmentChunk]]:
        """The pieces, and which numbers each is about: `CHUNK_NUMBERS` from its number times `CHUNK_NUMBERS` on."""
        ends = np.cumsum(self.counts)
        for chunk in np.unique(self.numbers // CHUNK_NUMBERS).tolist():
            start, end = np.searchsorted(self.numbers, (chunk * CHUNK_NUMBERS, (chunk + 1) * CHUNK_NUMBERS)).tolist()
            first_row = int(ends[start - 1]) if start else 0
            yield (
                chunk,
                SegmentChunk(
                    self.numbers[start:end],
                    self.counts[start:end],
                    self.first_sequences[start:end],
                    self.rows[first_row : int(ends[end - 1])],
                ),
            )


def warm_up() -> None:
    """Compile the kernels, or load them, before the first segment is closed."""
    part = Part(1)
    part.add(np.array([1]), np.array([1]), 0.0, 0)
    SegmentIndex.build(part)


def part_of_chunks(first_position: int, n_records: int, chunks: list[SegmentChunk]) -> Part:
    """A segment by record again. Chunks in the order of their numbers, some or all of them."""
    rows = np.concatenate([chunk.rows for chunk in chunks]) if chunks else np.empty(0, np.int64)
    order = np.argsort(rows.astype(np.uint16) if n_records <= 1 << 16 else rows, kind="stable")
    numbers = [np.repeat(chunk.numbers, chunk.counts) for chunk in chunks]
    sequences = [_sequences(chunk) for chunk in chunks]
    starts = np.zeros(n_records + 1, np.int64)
    np.cumsum(np.bincount(rows, minlength=n_records), out=starts[1:])
    joined = (np.concatenate(arrays)[order] if arrays else np.empty(0, np.int64) for arrays in (numbers, sequences))
    return Part.of_segment(first_position, starts, *joined)


def _sequences(chunk: SegmentChunk) -> np.ndarray:
    begins = np.cumsum(chunk.counts) - chunk.counts
    return np.repeat(chunk.first_sequences - begins, chunk.counts) + np.arange(len(chunk.rows))
