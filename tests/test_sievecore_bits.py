"""Machine instructions do what their names say, for every bit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sievecore.bits import count_bits, lowest_bit, prefetch
from sievecore.jit import kernel

pytestmark = pytest.mark.kernels

words = st.integers(0, 2**64 - 1)


@kernel
def lowest_of(word):
    return lowest_bit(word)


@kernel
def count_of(word):
    return count_bits(word)


@kernel
def total_with_prefetch(numbers, distance):
    total = 0
    for i in range(len(numbers)):
        prefetch(numbers, i + distance)
        total += numbers[i]
    return total


@pytest.mark.parametrize("bit", range(64))
def test_each_bit_is_the_lowest_of_itself_and_those_above(bit: int) -> None:
    assert lowest_of(np.uint64(1 << bit)) == bit
    assert lowest_of(np.uint64((2**64 - 1) << bit & (2**64 - 1))) == bit


@given(words.filter(bool))
def test_the_lowest_bit_is_the_number_of_zeros_below_it(word: int) -> None:
    assert lowest_of(np.uint64(word)) == (word & -word).bit_length() - 1


@given(words)
def test_bits_are_counted(word: int) -> None:
    assert count_of(np.uint64(word)) == word.bit_count()


@pytest.mark.parametrize("distance", [0, 1, 1000, -1000])
def test_prefetching_changes_nothing_and_never_faults(distance: int) -> None:
    assert total_with_prefetch(np.arange(100), distance) == 4950
    assert total_with_prefetch(np.arange(0), distance) == 0
