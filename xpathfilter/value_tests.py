"""Value tests by the million, column by column.

quote/@symbol = 'IBM'        subject 0    EQUAL_TEXT    text IBM    number NaN
quote/price > 100            subject 1    GREATER       text        number 100.0
"""

from typing import NamedTuple

import numpy as np

from sievecore.hashing import SEED, hash_bytes, mix, new_slots, same_bytes
from sievecore.jit import builder, kernel
from xpathfilter.texts import Texts, chosen_texts, concatenate_texts, new_texts

__all__ = ["ValueTests", "chosen_tests", "concatenate_tests", "distinct_tests", "new_tests"]

Constant = str | float | None


class ValueTests(NamedTuple):
    """A row a test. Its constant is a text, a number or neither; what it is not is empty or NaN."""

    subjects: np.ndarray
    operations: np.ndarray
    numbers: np.ndarray
    texts: Texts


def new_tests(tests: list[tuple[int, int, Constant]]) -> ValueTests:
    """The columns of tests given as (subject, operation, constant)."""
    constants = [constant for _, _, constant in tests]
    return ValueTests(
        np.array([subject for subject, _, _ in tests], np.int32),
        np.array([operation for _, operation, _ in tests], np.int32),
        np.array([constant if isinstance(constant, float) else np.nan for constant in constants], np.float64),
        new_texts(constant if isinstance(constant, str) else "" for constant in constants),
    )


def concatenate_tests(parts: list[ValueTests]) -> ValueTests:
    """All tests of all parts, in order."""
    subjects, operations, numbers, texts = zip(*parts, strict=True)
    return ValueTests(
        np.concatenate(subjects), np.concatenate(operations), np.concatenate(numbers), concatenate_texts(list(texts))
    )


def chosen_tests(tests: ValueTests, chosen: np.ndarray) -> ValueTests:
    """Some of the tests, in the order chosen."""
    subjects, operations, numbers = (column[chosen] for column in tests[:3])
    return ValueTests(subjects, operations, numbers, chosen_texts(tests.texts, chosen))


def distinct_tests(tests: ValueTests) -> tuple[ValueTests, np.ndarray]:
    """Each test once, and for each test which of those it is."""
    number = np.empty(len(tests.subjects), np.int32)
    bits = (tests.numbers + 0.0).view(np.int64)  # Adding 0 makes -0 the 0 that it equals.
    first = _number_tests(tests, bits, new_slots(len(number)), number)
    return chosen_tests(tests, first), number


@builder
def _number_tests(tests, bits, slots, number):
    first = np.empty(len(number), np.int32)
    n_distinct = 0
    mask = np.uint64(len(slots) - 1)
    for test in range(len(number)):
        place = _test_hash(tests, bits, test) & mask
        while slots[place] >= 0 and not _same_test(tests, bits, first[slots[place]], test):
            place = (place + np.uint64(1)) & mask
        if slots[place] < 0:
            slots[place] = n_distinct
            first[n_distinct] = test
            n_distinct += 1
        number[test] = slots[place]
    return first[:n_distinct].copy()


@kernel
def _test_hash(tests, bits, test):
    state = mix(mix(mix(SEED, tests.subjects[test]), tests.operations[test]), bits[test])
    return hash_bytes(tests.texts.content, tests.texts.start[test], tests.texts.start[test + 1], state)


@kernel
def _same_test(tests, bits, left, right):
    if (
        tests.subjects[left] != tests.subjects[right]
        or tests.operations[left] != tests.operations[right]
        or bits[left] != bits[right]
    ):
        return False
    content, start = tests.texts.content, tests.texts.start
    return same_bytes(content, start[left], start[left + 1], content, start[right], start[right + 1])
