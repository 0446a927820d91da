"""A value's code says where it stands among the ends, however many there are and whatever they look like."""

import math
import random
import sys
from bisect import bisect_left
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from boolmatch.directories import FEW
from boolmatch.predicate_spaces import PredicateSpaces
from boolmatch.ranges import Range, ValueType
from boolmatch.rows import HAS_HIGH, HAS_LOW, HIGH_CLOSED, LOW_CLOSED, ROW
from boolmatch.spaces import Spaces, build_spaces, code_counts, number_code, text_code

pytestmark = pytest.mark.kernels

FIRST_NUMBER = 4


def rows_of(count: int, value_type: ValueType) -> np.ndarray:
    rows = np.zeros(count, ROW)
    rows["type"], rows["ends"] = value_type, HAS_LOW | HAS_HIGH | LOW_CLOSED | HIGH_CLOSED
    rows["low_text"] = rows["high_text"] = rows["detail"] = -1
    return rows


def spaces_of_numbers(numbers: Sequence[float]) -> Spaces:
    rows = rows_of(len(numbers), ValueType.NUMBER)
    rows["low"] = rows["high"] = numbers
    return build_spaces(rows, [])[0]


def spaces_of_texts(texts: list[str]) -> Spaces:
    rows = rows_of(len(texts), ValueType.STRING)
    rows["low_text"] = rows["high_text"] = np.arange(len(texts))
    return build_spaces(rows, texts)[0]


def expected_code(ends: Sequence[object], value: object) -> int:
    """Two codes for each smaller end, and one more for an end itself."""
    place = bisect_left(ends, value)  # type: ignore[type-var]
    return 2 * place + (place < len(ends) and ends[place] == value)


LARGEST, LEAST = sys.float_info.max, 5e-324
SOURCE = random.Random(1)
NUMBERS = {
    "few": [3.0, 1.0, 2.0],
    "in_a_row": [float(i) for i in range(1000)],
    "spread": [SOURCE.random() for _ in range(1000)],
    "exponents_spread": [10.0 ** SOURCE.uniform(-300, 300) * SOURCE.choice([-1, 1]) for _ in range(1000)],
    "a_span_that_overflows": [-LARGEST, LARGEST, *(SOURCE.uniform(-1, 1) for _ in range(100))],
    "denormals": [i * LEAST for i in range(-50, 50)],
    "only_infinity_beside_few": [-np.inf, np.inf, *(float(i) for i in range(30))],
    "all_in_one_cluster": [1e15 + i for i in range(100)] + [-1e15],
    "all_but_one_equal_in_scale": [1.0 + i * sys.float_info.epsilon for i in range(100)],
    "around_zero": [i / 64 for i in range(-64, 64)],
}


@pytest.mark.parametrize("numbers", NUMBERS.values(), ids=NUMBERS)
def test_numbers_stand_where_they_should(numbers: list[float]) -> None:
    spaces, ends = spaces_of_numbers(numbers), sorted(set(numbers))
    beside = [math.nextafter(end, to) for end in ends for to in (-np.inf, np.inf)]
    odd = [0.0, -0.0, LEAST, -LEAST, LARGEST, -LARGEST, np.inf, -np.inf, *(SOURCE.uniform(-2, 2) for _ in range(50))]
    for number in [*ends, *beside, *odd]:
        assert number_code(spaces, 0, number) == FIRST_NUMBER + expected_code(ends, number)


@given(
    numbers=st.lists(
        st.floats(allow_nan=False).map(lambda number: number + 0.0), min_size=FEW + 1, max_size=60, unique=True
    ),
    asked=st.lists(st.floats(allow_nan=False), max_size=20),
)
def test_any_doubles_stand_where_they_should(numbers: list[float], asked: list[float]) -> None:
    spaces, ends = spaces_of_numbers(numbers), sorted(set(numbers))
    for number in [*ends, *asked]:
        assert number_code(spaces, 0, number) == FIRST_NUMBER + expected_code(ends, number)


def test_buckets_stay_small_whatever_the_number_of_ends() -> None:
    for numbers in (NUMBERS["in_a_row"], NUMBERS["spread"], NUMBERS["exponents_spread"]):
        sizes = np.diff(spaces_of_numbers(numbers).number_buckets)
        assert (sizes**2).sum() / len(numbers) < 6


TEXTS = {
    "few": ["b", "", "ab", "a"],
    "many": [f"word {i:05}" for i in range(0, 4000, 2)],
    "prefixes_of_each_other": ["x" * length for length in range(200)],
    "beyond_ascii": [chr(0x10FFFF - i) + "é" for i in range(100)],
}


@pytest.mark.parametrize("texts", TEXTS.values(), ids=TEXTS)
def test_strings_stand_where_they_should(texts: list[str]) -> None:
    spaces, ends = spaces_of_texts(texts), sorted(texts)
    first = int(code_counts(spaces, 0)) - 2 * len(ends) - 1
    for text in [*texts, *(text + "\0" for text in texts), "", "word 00001", "zz", "é"]:
        content = np.frombuffer(text.encode() + b"?", np.uint8)
        code = text_code(spaces, 0, content, 0, len(content) - 1)
        assert code == first + expected_code(ends, text)


def test_attributes_do_not_share_strings() -> None:
    texts = [f"t{i}" for i in range(100)]
    rows = rows_of(100, ValueType.STRING)
    rows["low_text"] = rows["high_text"] = np.arange(100)
    rows["attribute"] = np.arange(100) % 2
    spaces, _ = build_spaces(rows, texts)
    content = np.frombuffer(b"t1", np.uint8)
    ends = [sorted(texts[0::2]), sorted(texts[1::2])]
    for attribute in (0, 1):
        first = int(code_counts(spaces, attribute)) - 2 * 50 - 1
        assert text_code(spaces, attribute, content, 0, 2) == first + expected_code(ends[attribute], "t1")


@given(ends=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=8))
def test_cells_are_predicate_spaces_or_pieces_of_them(ends: list[tuple[int, int]]) -> None:
    bounds = [(float(min(pair)), float(max(pair))) for pair in ends]
    rows = rows_of(len(bounds), ValueType.NUMBER)
    rows["low"], rows["high"] = [low for low, _ in bounds], [high for _, high in bounds]
    cells, dynamic = build_spaces(rows, [])[0], PredicateSpaces(ValueType.NUMBER)
    for low, high in bounds:
        dynamic.insert(Range(ValueType.NUMBER, low, high))
    of_cell: dict[int, object] = {}
    for number in [half / 2 for half in range(-2, 22)]:
        found = dynamic.find(number)
        assert of_cell.setdefault(int(number_code(cells, 0, number)), found) == found
