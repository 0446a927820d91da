"""A segment's index says of each number what its records say, chunk by chunk, coded and back."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.log.parts import Part
from server.log.segments import CHUNK_NUMBERS, SegmentChunk, SegmentIndex, part_of_chunks

pytestmark = pytest.mark.kernels

some_numbers = st.sampled_from([1, 2, 5, CHUNK_NUMBERS - 1, CHUNK_NUMBERS, 5 * CHUNK_NUMBERS + 3])
records = st.lists(st.lists(some_numbers, unique=True, max_size=6).map(sorted), max_size=20)
FIRST = 100


def part_of(wanted: list[list[int]], heads: int = 10) -> Part:
    part, sequences = Part(FIRST), dict[int, int]()
    for row, numbers in enumerate(wanted):
        for number in numbers:
            sequences[number] = sequences.get(number, heads) + 1
        current = np.array([sequences[number] for number in numbers], np.int64)
        part.add(np.array(numbers, np.int64), current, float(row), 1)
    return part


def coded_chunks(part: Part) -> dict[int, SegmentChunk]:
    chunks = SegmentIndex.build(part).chunks()
    return {chunk: SegmentChunk.from_bytes(entries.to_bytes()) for chunk, entries in chunks}


@given(records)
def test_each_number_has_the_rows_of_its_records(wanted: list[list[int]]) -> None:
    chunks = coded_chunks(part_of(wanted))
    for number in {number for numbers in wanted for number in numbers}:
        rows, first_sequence = chunks[number // CHUNK_NUMBERS].find(number)
        assert (rows.tolist(), first_sequence) == ([r for r, numbers in enumerate(wanted) if number in numbers], 11)
    for chunk in chunks.values():
        assert chunk.find(3)[0].tolist() == []


@given(records)
def test_a_segment_comes_back_as_the_part_it_was(wanted: list[list[int]]) -> None:
    part = part_of(wanted)
    again = part_of_chunks(FIRST, part.n_records, list(coded_chunks(part).values()))
    for name in ("starts", "numbers", "sequences"):
        assert getattr(again, name).tolist() == getattr(part, name).tolist()


@given(records)
def test_the_last_sequences_are_the_heads_at_the_end(wanted: list[list[int]]) -> None:
    index = SegmentIndex.build(part_of(wanted))
    counts = [sum(number in numbers for numbers in wanted) for number in index.numbers.tolist()]
    assert index.last_sequences.tolist() == [10 + count for count in counts]


@given(records, st.sets(some_numbers), st.integers(FIRST - 2, FIRST + 20), st.integers(1, 5))
def test_a_part_finds_the_records_of_wanted_numbers(
    wanted: list[list[int]], numbers: set[int], after: int, limit: int
) -> None:
    part, mask = part_of(wanted), np.zeros(6 * CHUNK_NUMBERS, np.bool_)
    mask[list(numbers)] = True
    expected = [FIRST + row for row, each in enumerate(wanted) if numbers & set(each) and FIRST + row > after][:limit]
    if after < part.last_position:
        assert part.positions_of(mask, after, limit) == expected
    for position in expected:
        assert set(part.narrowed(position, mask)[0].tolist()) == numbers & set(wanted[position - FIRST])
