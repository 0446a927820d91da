"""From distinct tests and records to the arrays of `words`: what wakes what, and in which order tests lie.

    records   0 quote: 0 1 ALL of 2      1 quote: 2             tests   0 @symbol = 'IBM'   1 price > 100   2 price > 7
    waking    0 wakes record 0           2 is record 1          1 wakes nothing: lazy
    order     0, 2 and then 1            lazy tests last, then by subject, operation and number

Kernels and numpy do all of it, so that a million tests are a matter of a second, most of it without the GIL.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from sievecore.hashing import new_slots
from sievecore.jit import kernel
from sievecore.rows import Rows, rows_by_key
from xpathfilter.plan import ElementName, Operation
from xpathfilter.programs import waking_leaves
from xpathfilter.texts import new_texts
from xpathfilter.value_tests import ValueTests, chosen_tests
from xpathfilter.words import (
    GROUP,
    IS_NUMERIC,
    IS_TEXTUAL,
    LAZY,
    N_OPERATIONS,
    NAME,
    SUBJECT,
    Words,
    fill_slots,
)

__all__ = ["build_words", "inverse", "translated"]

EQUALITIES = (Operation.EQUAL_TEXT, Operation.EQUAL)
IS_EQUALITY = np.array([operation in EQUALITIES for operation in Operation])
MAY_BE_LAZY = np.array([operation not in (Operation.EXISTS, *EQUALITIES) for operation in Operation])
CHANCES = np.array([0.25 if operation >= Operation.CONTAINS else 0.5 for operation in Operation])
CHANCES[[Operation.EXISTS, Operation.UNEQUAL, Operation.UNEQUAL_TEXT]] = 1.0
"""How likely a test holds for a value, roughly; for an equality see `_chances`."""

SubjectKey = tuple[int, int, int]


def build_words(
    names: Iterable[ElementName], subjects: Sequence[SubjectKey], tests: ValueTests, records: Rows
) -> Words:
    """The words of distinct records over distinct tests; a subject is its element, its kind and its name."""
    leaves, woken, unwoken = waking_leaves(records, 1, _chances(tests, len(subjects)))
    codes = _group_codes(tests, leaves, len(subjects))
    order = np.lexsort((tests.numbers, codes))
    rank = inverse(order)
    tests = chosen_tests(tests, order)
    name_table, name_text = _name_table(names)
    records = translated(records, np.arange(len(name_table), dtype=np.int32), rank)
    subject_table, groups = _subject_tables(subjects, codes)
    name_table["subject_kinds"] = _bit_union(subject_table["element"], subject_table["kind"], len(name_table))
    single_records, woken_records = _woken(records, rank[leaves], woken, groups)
    words = Words(
        names=name_table,
        name_text=name_text,
        name_slots=new_slots(len(name_table)),
        subjects=subject_table,
        subject_slots=new_slots(len(subject_table)),
        groups=groups,
        numbers=tests.numbers[IS_NUMERIC[tests.operations]],
        text_start=_text_start(tests),
        text=tests.texts.content,
        equal_slots=new_slots(int(np.count_nonzero(tests.operations == Operation.EQUAL_TEXT))),
        single_records=single_records,
        woken_start=woken_records.start.astype(np.int32),
        woken_records=woken_records.values,
        unwoken_records=_reach_by_name(name_table, records, unwoken),
        record_start=records.start.astype(np.int32),
        record_words=records.values,
    )
    fill_slots(words)
    return words


def _chances(tests: ValueTests, n_subjects: int) -> np.ndarray:
    """How likely each test holds for a value of its subject: of n constants asked for, each about every n-th time."""
    asked_for = tests.subjects.astype(np.int64) * N_OPERATIONS + tests.operations
    n_constants = np.bincount(asked_for, minlength=n_subjects * N_OPERATIONS)[asked_for]
    return np.where(IS_EQUALITY[tests.operations], 1 / (2 + n_constants), CHANCES[tests.operations])


def _group_codes(tests: ValueTests, waking: np.ndarray, n_subjects: int) -> np.ndarray:
    """The group of each test as a number: all lazy ones last, subjects in order, in each the operations."""
    is_lazy = MAY_BE_LAZY[tests.operations]
    is_lazy[waking] = False
    return (is_lazy * np.int64(n_subjects) + tests.subjects) * N_OPERATIONS + tests.operations


def _name_table(names: Iterable[ElementName]) -> tuple[np.ndarray, np.ndarray]:
    texts = new_texts(part for name in names for part in (name.uri, name.local))
    table = np.zeros(len(texts.start) // 2, NAME)
    table["start"], table["middle"], table["end"] = texts.start[:-1:2], texts.start[1::2], texts.start[2::2]
    return table, texts.content


def _subject_tables(subjects: Sequence[SubjectKey], codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The subjects, and the groups of the tests that have these codes."""
    n_codes = len(subjects) * N_OPERATIONS
    sizes = np.bincount(codes, minlength=2 * n_codes)
    present = np.flatnonzero(sizes)
    groups, n_waking = np.zeros(len(present) + 1, GROUP), np.searchsorted(present, n_codes)
    groups["subject"][:-1], groups["operation"][:-1] = np.divmod(present % max(n_codes, 1), N_OPERATIONS)
    groups["operation"][n_waking:-1] += LAZY
    groups["first_test"][1:] = np.cumsum(sizes[present])
    for has_kind in (IS_NUMERIC[groups["operation"][:-1]], IS_TEXTUAL[groups["operation"][:-1]]):
        n_before = np.cumsum(sizes[present] * has_kind) - sizes[present]
        groups["first_constant"][:-1][has_kind] = n_before[has_kind]
    table = np.zeros(len(subjects), SUBJECT)
    for field, column in zip(("element", "kind", "name"), zip(*subjects, strict=True), strict=False):
        table[field] = column
    table["operations"] = _bit_union(groups["subject"][:-1], groups["operation"][:-1], len(table))
    table["first_group"] = np.searchsorted(groups["subject"][:n_waking], np.arange(len(table)))
    return table, groups


def _woken(records: Rows, leaves: np.ndarray, woken: np.ndarray, groups: np.ndarray) -> tuple[np.ndarray, Rows]:
    """For each test that is not lazy: the record that is this test alone, and those that it wakes otherwise."""
    n_waking = int(groups["first_test"][np.count_nonzero(groups["operation"][:-1] < LAZY)])
    is_single = records.lengths[woken] == 2
    single_records = np.full(n_waking, -1, np.int32)
    single_records[leaves[is_single]] = woken[is_single]
    return single_records, rows_by_key(leaves[~is_single], woken[~is_single], n_waking)


def _reach_by_name(names: np.ndarray, records: Rows, unwoken: np.ndarray) -> np.ndarray:
    """Write to the names which records they have without any test; return the unwoken records by name."""
    plain = np.flatnonzero(records.lengths == 1)
    names["plain_record"] = -1
    names["plain_record"][records.values[records.start[plain]]] = plain
    by_name = rows_by_key(records.values[records.start[unwoken]], unwoken, len(names))
    names["unwoken_start"], names["unwoken_end"] = by_name.start[:-1], by_name.start[1:]
    return by_name.values


def _text_start(tests: ValueTests) -> np.ndarray:
    """Where the texts of textual tests start; all others have empty ones."""
    start = tests.texts.start
    return np.append(start[:-1][IS_TEXTUAL[tests.operations]], start[-1]).astype(np.int32)


def _bit_union(keys: np.ndarray, bits: np.ndarray, n_keys: int) -> np.ndarray:
    union = np.zeros(n_keys, np.int32)
    np.bitwise_or.at(union, keys, np.left_shift(1, bits))
    return union


def inverse(order: np.ndarray) -> np.ndarray:
    """Where each number stands in an order of all."""
    rank = np.empty(len(order), np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    return rank


def translated(records: Rows, name_of: np.ndarray, test_of: np.ndarray) -> Rows:
    """The records over other numbers of names and tests."""
    values = records.values.copy()
    _translate(values, records.start, name_of, test_of)
    return records._replace(values=values)


@kernel
def _translate(values, start, name_of, test_of):
    for record in range(len(start) - 1):
        values[start[record]] = name_of[values[start[record]]]
        for i in range(start[record] + 1, start[record + 1]):
            if values[i] >= 0:
                values[i] = test_of[values[i]]
