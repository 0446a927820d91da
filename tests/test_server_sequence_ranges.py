"""Ranges of sequences behave like a set of them."""

from hypothesis import given
from hypothesis import strategies as st

from server.log.sequence_ranges import SequenceRanges

sequences = st.lists(st.integers(1, 30), max_size=40)


@given(sequences)
def test_ranges_hold_what_a_set_would(added: list[int]) -> None:
    ranges, plain = SequenceRanges(), set[int]()
    for sequence in added:
        assert ranges.add(sequence) is (sequence not in plain)
        plain.add(sequence)
    assert [each for each in range(32) if each in ranges] == sorted(plain)
    assert len(ranges) == len(plain)
    assert all(last + 1 < first for (_, last), (first, _) in zip(ranges.pairs(), ranges.pairs()[1:], strict=False))
    assert SequenceRanges(ranges.pairs()).pairs() == ranges.pairs()


@given(sequences, st.integers(0, 31))
def test_a_floor_takes_along_what_follows_it(added: list[int], floor: int) -> None:
    ranges = SequenceRanges()
    for sequence in added:
        ranges.add(sequence)
    reached = floor
    while reached + 1 in added:
        reached += 1
    assert ranges.advance(floor) == reached
    assert [each for each in range(32) if each in ranges] == sorted({each for each in added if each > reached})
    assert len(ranges) == len({each for each in added if each > reached})
