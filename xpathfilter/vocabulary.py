"""The words subscriptions are made of, numbered: names, subjects, value tests and step tests.

    //quote[@symbol='IBM'][price > 100]

    names       0 *   1 quote   2 symbol   3 price
    subjects    0 (quote, ATTRIBUTE, symbol)        1 (quote, CHILD, price)
    tests       0 subject 0 EQUAL_TEXT 'IBM'        1 subject 1 GREATER 100.0
    records     0 quote: test 0 and test 1

A record is what one position record stands for: a name and a condition over value tests, in postfix. A subject
names the element it belongs to, so that an element asks only after tests that can matter to it.

`Vocabulary` collects words while a segment is built. `freeze` turns it into `Words`, arrays that say for a value
which tests it satisfies: equality through a hash table, order through sorted constants, the rest one by one.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from sievecore.breathing import breathing
from sievecore.hashing import SEED, hash_bytes, mix, new_slots, same_bytes
from sievecore.jit import kernel
from sievecore.tables import columns
from xpathfilter.plan import ANY_NAME, TRUE, Combination, ElementName, Operation, PathStep, Subject, ValueTest
from xpathfilter.programs import Program, read_program, waking_leaves, write_program

__all__ = ["N_OPERATIONS", "Vocabulary", "Words", "find_name", "find_subject", "read_record", "text_hash"]

N_OPERATIONS = len(Operation)
TEXT_OPERATIONS = (Operation.EQUAL_TEXT, Operation.UNEQUAL_TEXT, Operation.CONTAINS, Operation.STARTS_WITH)


NAME = columns("start", "middle", "end", "subject_kinds", "plain_record", "unwoken_start", "unwoken_end")
"""Uri is text[start:middle], local name text[middle:end]; bit k of `subject_kinds`: there are subjects of kind k;
`plain_record` is the record without a condition, or -1; unwoken records are evaluated whatever holds."""

SUBJECT = columns("element", "kind", "name", "operations")
"""Bit k of `operations`: some test uses operation k."""

TEST = columns("subject", "operation", "text_start", "text_end", "single_record", "woken_start", "woken_end", "place")
"""`single_record` is the record that is this test alone, or -1; woken records are evaluated once the test holds;
`place` is where the test stands among the ordered ones."""

RECORD = columns("name", "program_start", "program_end")


class Words(NamedTuple):
    """A frozen vocabulary."""

    names: np.ndarray
    name_text: np.ndarray
    name_slots: np.ndarray
    subjects: np.ndarray
    subject_slots: np.ndarray
    tests: np.ndarray
    test_text: np.ndarray
    equal_slots: np.ndarray  # the tests of EQUAL_TEXT, by subject and text
    ordered_start: np.ndarray  # of subject * N_OPERATIONS + operation: its tests
    ordered_tests: np.ndarray  # ascending by number
    ordered_numbers: np.ndarray  # of those tests
    records: np.ndarray
    program: np.ndarray
    woken_records: np.ndarray
    unwoken_records: np.ndarray


class Vocabulary:
    """Gives each distinct word a number, in order of first appearance."""

    def __init__(self) -> None:
        self.names: dict[ElementName, int] = {ANY_NAME: 0}
        self.subjects: dict[tuple[int, int, int], int] = {}
        self.tests: dict[tuple[int, int, str | float | None], int] = {}
        self.records: dict[tuple[int, Program], int] = {}

    def name(self, name: ElementName) -> int:
        return self.names.setdefault(name, len(self.names))

    def record(self, step: PathStep) -> int:
        """The number of the position record for a step's name and condition."""
        element = self.name(step.name)
        program: Program = ()
        if step.condition != TRUE:
            program = write_program(step.condition, lambda test: self._test(element, test))
        return self.records.setdefault((element, program), len(self.records))

    def _test(self, element: int, test: Combination) -> int:
        assert isinstance(test, ValueTest)
        name = self.name(test.name) if test.name else 0
        subject = self.subjects.setdefault((element, test.subject, name), len(self.subjects))
        return self.tests.setdefault((subject, test.operation, test.constant), len(self.tests))

    def freeze(self) -> Words:
        """The arrays for kernels."""
        plain, single, woken, unwoken = self._reached()
        names, name_text = self._freeze_names(plain, unwoken)
        tests, test_text = self._freeze_tests(single, woken)
        subjects = _table(SUBJECT, len(self.subjects), zip(*self.subjects, strict=True))
        subjects["operations"] = _bit_union(tests["subject"], tests["operation"], len(subjects))
        names["subject_kinds"] = _bit_union(subjects["element"], subjects["kind"], len(names))
        order = tests["subject"].astype(np.int64) * N_OPERATIONS + tests["operation"]
        numbers = np.array([test[2] if isinstance(test[2], float) else np.nan for test in self.tests], np.float64)
        ordered = np.lexsort((numbers, order)).astype(np.int32)
        tests["place"][ordered] = np.arange(len(ordered))
        programs = [program for _, program in self.records]
        bounds = _offsets(map(len, programs))
        words = Words(
            names=names,
            name_text=name_text,
            name_slots=new_slots(len(names)),
            subjects=subjects,
            subject_slots=new_slots(len(subjects)),
            tests=tests,
            test_text=test_text,
            equal_slots=new_slots(int(np.count_nonzero(tests["operation"] == Operation.EQUAL_TEXT))),
            ordered_start=_offsets(np.bincount(order, minlength=len(subjects) * N_OPERATIONS)),
            ordered_tests=ordered,
            ordered_numbers=numbers[ordered],
            records=_table(RECORD, len(programs), [[name for name, _ in self.records], bounds[:-1], bounds[1:]]),
            program=np.array([word for program in breathing(programs) for word in program], np.int32),
            woken_records=np.array([record for _, record in sorted(woken)], np.int32),
            unwoken_records=np.array([record for _, record in sorted(unwoken)], np.int32),
        )
        _fill_slots(words, int(Operation.EQUAL_TEXT))
        return words

    def _freeze_names(self, plain: dict[int, int], unwoken: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
        text, bounds = _joined(part for name in self.names for part in (name.uri, name.local))
        table = _table(NAME, len(self.names), [bounds[:-1:2], bounds[1::2], bounds[2::2]])
        table["plain_record"] = _lookup(plain, len(table))
        table["unwoken_start"], table["unwoken_end"] = _slices(unwoken, len(table))
        return table, text

    def _freeze_tests(self, single: dict[int, int], woken: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
        constants = [constant for _, _, constant in self.tests]
        text, bounds = _joined(constant if isinstance(constant, str) else "" for constant in constants)
        subjects, operations = [test[0] for test in self.tests], [test[1] for test in self.tests]
        table = _table(TEST, len(constants), [subjects, operations, bounds[:-1], bounds[1:]])
        table["single_record"] = _lookup(single, len(table))
        table["woken_start"], table["woken_end"] = _slices(woken, len(table))
        return table, text

    def _reached(self) -> tuple[dict[int, int], dict[int, int], list[tuple[int, int]], list[tuple[int, int]]]:
        """How an element finds each record: by its name, by one test, by any of some tests, or never directly."""
        plain: dict[int, int] = {}
        single: dict[int, int] = {}
        woken: list[tuple[int, int]] = []
        unwoken: list[tuple[int, int]] = []
        for (element, program), record in breathing(self.records.items()):
            if not program:
                plain[element] = record
            elif len(program) == 1:
                single[program[0]] = record
            elif (tests := waking_leaves(program)) is None:
                unwoken.append((element, record))
            else:
                woken += [(test, record) for test in tests]
        return plain, single, woken, unwoken


def read_record(words: Words, record: int) -> PathStep:
    """The name and condition a record stands for, as a step (its axis is not the record's to know)."""
    name, start, end = words.records[record].tolist()
    program = words.program[start:end].tolist()
    condition = read_program(program, lambda test: _read_test(words, test)) if program else TRUE
    return PathStep(False, _read_name(words, name), condition)


def _read_test(words: Words, number: int) -> ValueTest:
    test = words.tests[number]
    _, kind, name, _ = words.subjects[test["subject"]].tolist()
    operation = Operation(int(test["operation"]))
    constant: str | float | None = None
    if operation in TEXT_OPERATIONS:
        constant = words.test_text[test["text_start"] : test["text_end"]].tobytes().decode()
    elif operation is not Operation.EXISTS:
        constant = float(words.ordered_numbers[test["place"]])
    named = kind in (Subject.ATTRIBUTE, Subject.CHILD)
    return ValueTest(Subject(kind), _read_name(words, name) if named else None, operation, constant)


def _read_name(words: Words, number: int) -> ElementName:
    start, middle, end = words.names[number].tolist()[:3]
    text = words.name_text
    return ElementName(text[start:middle].tobytes().decode(), text[middle:end].tobytes().decode())


def _table(dtype: np.dtype, n_rows: int, columns: Iterable[Any]) -> np.ndarray:
    """A structured array whose first columns are given."""
    table = np.zeros(n_rows, dtype)
    for name, column in zip(dtype.names or (), columns, strict=False):
        table[name] = column
    return table


def _joined(texts: Iterable[str]) -> tuple[np.ndarray, np.ndarray]:
    """All texts as one array of UTF-8, and where each starts (and the last ends)."""
    encoded = [text.encode() for text in breathing(texts)]
    return np.frombuffer(b"".join(encoded) or b"\0", np.uint8).copy(), _offsets(map(len, encoded))


def _offsets(lengths: Iterable[int]) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(np.fromiter(lengths, np.int64))]).astype(np.int64)


def _slices(pairs: list[tuple[int, int]], n_keys: int) -> tuple[np.ndarray, np.ndarray]:
    """Where the pairs of each key start and end, once they are sorted."""
    bounds = _offsets(np.bincount(np.array([key for key, _ in pairs], np.int64), minlength=n_keys))
    return bounds[:-1], bounds[1:]


def _bit_union(keys: np.ndarray, bits: np.ndarray, n_keys: int) -> np.ndarray:
    union = np.zeros(n_keys, np.int32)
    np.bitwise_or.at(union, keys, np.left_shift(1, bits))
    return union


def _lookup(pairs: dict[int, int], n_keys: int) -> np.ndarray:
    table = np.full(n_keys, -1, np.int32)
    table[list(pairs.keys())] = list(pairs.values())
    return table


@kernel
def _fill_slots(words, equal_text):
    """Enter names, subjects and text equalities into their hash tables."""
    text = words.name_text
    for i in range(len(words.names)):
        name = words.names[i]
        _enter(words.name_slots, _name_hash(text, name.start, name.middle, text, name.middle, name.end), i)
    for i in range(len(words.subjects)):
        subject = words.subjects[i]
        _enter(words.subject_slots, _subject_hash(subject.element, subject.kind, subject.name), i)
    for i in range(len(words.tests)):
        test = words.tests[i]
        if test.operation == equal_text:
            _enter(words.equal_slots, text_hash(words.test_text, test.text_start, test.text_end, test.subject), i)


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
