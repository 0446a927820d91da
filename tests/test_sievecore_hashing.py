"""Hashes say where to look first: the same for the same key, spread over the table for others."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sievecore.hashing import SEED, hash_bytes, mix, new_slots, same_bytes

pytestmark = pytest.mark.kernels


def hashed(content: bytes, before: bytes = b"", after: bytes = b"", state: np.uint64 = SEED) -> int:
    array = np.frombuffer(before + content + after, np.uint8)
    return int(hash_bytes(array, len(before), len(before) + len(content), state))


@given(st.binary(min_size=1), st.binary(), st.binary())
def test_only_the_bytes_between_start_and_end_count(content: bytes, before: bytes, after: bytes) -> None:
    assert hashed(content) == hashed(content, before, after)


def test_nothing_has_a_hash_too() -> None:
    assert hashed(b"", b"x", b"y") == hashed(b"", b"other")


def test_the_state_before_counts() -> None:
    states = [np.uint64(mix(SEED, number)) for number in range(100)]
    assert len({hashed(b"key", state=state) for state in states}) == 100


def test_keys_that_differ_little_are_spread_over_a_table() -> None:
    hashes = [hashed(f"value-{number}".encode()) for number in range(4096)]
    assert len(set(hashes)) == 4096
    filled = np.bincount([number & 1023 for number in hashes], minlength=1024)
    assert filled.max() < 20


def test_small_numbers_are_spread_over_a_table() -> None:
    filled = np.bincount([int(mix(SEED, number)) & 1023 for number in range(4096)], minlength=1024)
    assert filled.max() < 20


def test_the_order_of_numbers_counts() -> None:
    one_first, two_first = (np.uint64(mix(SEED, number)) for number in (1, 2))
    assert mix(one_first, 2) != mix(two_first, 1)


@pytest.mark.parametrize("n_keys", [0, 1, 4, 5, 8, 9, 1000, 4096])
def test_a_table_is_a_power_of_two_long_and_at_most_half_full(n_keys: int) -> None:
    slots = new_slots(n_keys)
    assert len(slots).bit_count() == 1
    assert len(slots) >= max(2 * n_keys, 1)
    assert len(slots) < 4 * max(n_keys, 4)
    assert (slots == -1).all()


@given(st.binary(max_size=3), st.binary(max_size=3), st.binary(max_size=3))
def test_two_ranges_are_the_same_when_their_bytes_are(left: bytes, right: bytes, before: bytes) -> None:
    array = np.frombuffer(before + left + right + b".", np.uint8)
    middle = len(before) + len(left)
    assert same_bytes(array, len(before), middle, array, middle, middle + len(right)) == (left == right)
