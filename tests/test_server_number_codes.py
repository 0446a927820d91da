"""Integers come back as they were, in as few bytes as their largest difference needs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.log.number_codes import pack, pack_ascending, unpack, unpack_ascending

SMALL = (1 << 62) - 1
HEAD = 9


@given(st.lists(st.integers(0, SMALL), unique=True, max_size=50).map(sorted))
def test_ascending_integers_come_back(numbers: list[int]) -> None:
    assert unpack_ascending(pack_ascending(np.array(numbers, np.int64))).tolist() == numbers


@given(st.lists(st.integers(-SMALL, SMALL), max_size=50))
def test_any_integers_come_back(values: list[int]) -> None:
    assert unpack(pack(np.array(values, np.int64)), len(values)).tolist() == values


WIDTHS = {
    "nothing": ([], 0),
    "one": ([7], HEAD),
    "up_to_255": ([0, 255, 300], HEAD + 2),
    "up_to_65535": ([0, 256, 300], HEAD + 4),
    "up_to_4294967295": ([0, 65536, 65537], HEAD + 8),
    "beyond": ([0, 1 << 32], HEAD + 8),
}


@pytest.mark.parametrize("numbers, n_bytes", WIDTHS.values(), ids=WIDTHS)
def test_one_width_fits_all_differences(numbers: list[int], n_bytes: int) -> None:
    assert len(pack_ascending(np.array(numbers, np.int64))) == n_bytes


def test_equal_values_take_no_more_than_one() -> None:
    assert len(pack(np.full(1024, 77))) == HEAD
