"""The words subscriptions are made of, frozen: names, subjects, value tests and records as arrays.

    //quote[@symbol='IBM'][price > 100]

    names       0 *   1 quote   2 symbol   3 price
    subjects    0 (quote, ATTRIBUTE, symbol)        1 (quote, CHILD, price)
    tests       0 subject 0 EQUAL_TEXT 'IBM'        1 subject 1 GREATER 100.0
    records     0 quote: test 0 and test 1

A record is what one position record stands for: a name and a condition over value tests, in postfix. A subject
names the element it belongs to, so that an element asks only after tests that can matter to it.

The tests of one subject and operation are a **group** and lie side by side, numbers ascending, so that a test needs
neither its subject nor its operation beside it. Equality is found through a hash table. A test that wakes no record
is **lazy**: it matters only if another test has woken a record that asks for it, and is decided then, from what the
element has said of its subject. Of 100,000 `price > n`, each beside a `@symbol = s`, an element decides a few. The
groups of lazy tests come last.
"""

from typing import NamedTuple

import numpy as np

from sievecore.bits import count_bits
from sievecore.hashing import SEED, hash_bytes, mix, same_bytes
from sievecore.jit import kernel
from sievecore.tables import columns
from xpathfilter.plan import TRUE, ElementName, Operation, PathStep, Subject, ValueTest
from xpathfilter.programs import read_program
from xpathfilter.texts import Texts, text_at
from xpathfilter.value_tests import ValueTests

__all__ = [
    "IS_NUMERIC",
    "IS_TEXTUAL",
    "LAZY",
    "N_OPERATIONS",
    "Words",
    "fill_slots",
    "find_name",
    "find_subject",
    "group_of_test",
    "read_name",
    "read_record",
    "read_tests",
    "test_group",
    "text_hash",
]

N_OPERATIONS = LAZY = len(Operation)
"""An operation + LAZY is that of the lazy tests of a subject."""

TEXT_OPERATIONS = (Operation.EQUAL_TEXT, Operation.UNEQUAL_TEXT, Operation.CONTAINS, Operation.STARTS_WITH)
IS_NUMERIC = np.array([Operation.EQUAL <= operation <= Operation.GREATER_EQUAL for operation in Operation] * 2)
IS_TEXTUAL = np.array([operation in TEXT_OPERATIONS for operation in Operation] * 2)
"""Of an operation, lazy or not: whether its constants are numbers, or texts."""

EQUAL_TEXT = int(Operation.EQUAL_TEXT)

NAME = columns("start", "middle", "end", "subject_kinds", "plain_record", "unwoken_start", "unwoken_end")
"""Uri is text[start:middle], local name text[middle:end]; bit k of `subject_kinds`: there are subjects of kind k;
`plain_record` is the record without a condition, or -1; unwoken records are evaluated whatever holds."""

SUBJECT = columns("element", "kind", "name", "operations", "first_group")
"""Bit k of `operations`: there is a group of operation k. Those that are not lazy start at `first_group`, in order."""

GROUP = columns("subject", "operation", "first_test", "first_constant")
"""The constant of its first test is `first_constant` among the numbers or the texts, and so on."""


class Words(NamedTuple):
    """A frozen vocabulary."""

    names: np.ndarray
    name_text: np.ndarray
    name_slots: np.ndarray
    subjects: np.ndarray
    subject_slots: np.ndarray
    groups: np.ndarray  # and one more, where the tests end
    numbers: np.ndarray  # the constants of numeric tests
    text_start: np.ndarray  # the constants of textual tests
    text: np.ndarray
    equal_slots: np.ndarray  # the tests of EQUAL_TEXT, by subject and text
    single_records: np.ndarray  # of a test that is not lazy: the record that is this test alone, or -1
    woken_start: np.ndarray  # of such a test: the records to evaluate once it holds
    woken_records: np.ndarray
    unwoken_records: np.ndarray
    record_start: np.ndarray
    record_words: np.ndarray  # of a record: its name, and then its program

    @property
    def n_records(self) -> int:
        return len(self.record_start) - 1

    @property
    def n_tests(self) -> int:
        return int(self.groups["first_test"][-1])


def read_record(words: Words, record: int) -> PathStep:
    """The name and condition a record stands for, as a step (its axis is not the record's to know)."""
    start, end = words.record_start[record : record + 2].tolist()
    name, *program = words.record_words[start:end].tolist()
    condition = read_program(program, lambda test: _read_test(words, test)) if program else TRUE
    return PathStep(False, read_name(words, name), condition)


def _read_test(words: Words, test: int) -> ValueTest:
    subject, operation, first_test, first_constant = words.groups[group_of_test(words, test)].tolist()
    _, kind, name, *_ = words.subjects[subject].tolist()
    operation = Operation(operation % N_OPERATIONS)
    constant: str | float | None = None
    if operation in TEXT_OPERATIONS:
        constant = text_at(Texts(words.text, words.text_start), first_constant + test - first_test).decode()
    elif operation is not Operation.EXISTS:
        constant = float(words.numbers[first_constant + test - first_test])
    named = kind in (Subject.ATTRIBUTE, Subject.CHILD)
    return ValueTest(Subject(kind), read_name(words, name) if named else None, operation, constant)


def read_name(words: Words, name: int) -> ElementName:
    """The name of that number."""
    start, middle, end = words.names[name].tolist()[:3]
    text = words.name_text
    return ElementName(text[start:middle].tobytes().decode(), text[middle:end].tobytes().decode())


def read_tests(words: Words) -> ValueTests:
    """All tests, as they came from a vocabulary."""
    sizes = np.diff(words.groups["first_test"])
    subjects, operations = (np.repeat(words.groups[field][:-1], sizes) for field in ("subject", "operation"))
    numbers = np.full(words.n_tests, np.nan)
    numbers[IS_NUMERIC[operations]] = words.numbers
    text_end = np.zeros(words.n_tests + 1, np.int64)
    text_end[1:][IS_TEXTUAL[operations]] = np.diff(words.text_start)
    return ValueTests(subjects, operations % N_OPERATIONS, numbers, Texts(words.text, np.cumsum(text_end)))


@kernel
def fill_slots(words):
    """Enter names, subjects and text equalities into their hash tables."""
    text = words.name_text
    for i in range(len(words.names)):
        name = words.names[i]
        _enter(words.name_slots, _name_hash(text, name.start, name.middle, text, name.middle, name.end), i)
    for i in range(len(words.subjects)):
        subject = words.subjects[i]
        _enter(words.subject_slots, _subject_hash(subject.element, subject.kind, subject.name), i)
    for i in range(len(words.groups) - 1):
        group = words.groups[i]
        if group.operation == EQUAL_TEXT:
            for test in range(group.first_test, words.groups[i + 1].first_test):
                constant = group.first_constant + test - group.first_test
                start, end = words.text_start[constant], words.text_start[constant + 1]
                _enter(words.equal_slots, text_hash(words.text, start, end, group.subject), test)


@kernel
def _enter(slots, place, value):
    mask = np.uint64(len(slots) - 1)
    while slots[place & mask] >= 0:
        place += np.uint64(1)
    slots[place & mask] = value


@kernel
def _name_hash(uri, uri_start, uri_end, local, local_start, local_end):
    return hash_bytes(local, local_start, local_end, hash_bytes(uri, uri_start, uri_end, SEED))


@kernel
def _subject_hash(element, kind, name):
    return mix(mix(SEED, element), kind * np.int64(1 << 32) + name)


@kernel
def text_hash(text, start, end, subject):
    """Where a test for this text begins to be looked for in `equal_slots`."""
    return hash_bytes(text, start, end, mix(SEED, subject))


@kernel
def find_name(words, uri, uri_start, uri_end, local, local_start, local_end):
    """The number of the name {uri}local, or -1."""
    mask = np.uint64(len(words.name_slots) - 1)
    place = _name_hash(uri, uri_start, uri_end, local, local_start, local_end) & mask
    while words.name_slots[place] >= 0:
        name = words.names[words.name_slots[place]]
        if same_bytes(words.name_text, name.middle, name.end, local, local_start, local_end) and same_bytes(
            words.name_text, name.start, name.middle, uri, uri_start, uri_end
        ):
            break
        place = (place + np.uint64(1)) & mask
    return words.name_slots[place]


@kernel
def find_subject(words, element, kind, name):
    """The number of the subject, or -1."""
    mask = np.uint64(len(words.subject_slots) - 1)
    place = _subject_hash(element, kind, name) & mask
    while words.subject_slots[place] >= 0:
        subject = words.subjects[words.subject_slots[place]]
        if subject.element == element and subject.kind == kind and subject.name == name:
            break
        place = (place + np.uint64(1)) & mask
    return words.subject_slots[place]


@kernel
def test_group(words, subject, operation):
    """The group of an operation that the subject has; not of a lazy one."""
    before = np.uint64(words.subjects[subject].operations) & ((np.uint64(1) << np.uint64(operation)) - np.uint64(1))
    return words.subjects[subject].first_group + count_bits(before)


@kernel
def group_of_test(words, test):
    """The group that a test belongs to."""
    first, last = 0, len(words.groups) - 2
    while first < last:
        middle = (first + last + 1) // 2
        if words.groups[middle].first_test <= test:
            first = middle
        else:
            last = middle - 1
    return first
