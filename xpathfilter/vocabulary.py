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
from typing import NamedTuple

import numpy as np

from sievecore.breathing import breathing
from sievecore.hashing import SEED, hash_bytes, mix, new_slots
from sievecore.jit import kernel
from xpathfilter.plan import ANY_NAME, TRUE, Combination, ElementName, Operation, PathStep, Subject, ValueTest
from xpathfilter.programs import Program, read_program, waking_leaves, write_program

__all__ = ["N_OPERATIONS", "Vocabulary", "Words", "find_name", "find_subject", "read_record", "same_bytes"]

N_OPERATIONS = len(Operation)


class Words(NamedTuple):
    """A frozen vocabulary. `x_start` arrays slice: those of x number i are [x_start[i], x_start[i + 1])."""

    name_text: np.ndarray  # uri and local name of each name, one after the other
    name_start: np.ndarray
    name_uri_length: np.ndarray
    name_slots: np.ndarray
    name_subjects: np.ndarray  # bit k: some subject of this element name is of kind k
    subject_element: np.ndarray
    subject_kind: np.ndarray
    subject_name: np.ndarray
    subject_slots: np.ndarray
    subject_operations: np.ndarray  # bit k: some test of this subject uses operation k
    test_subject: np.ndarray
    test_operation: np.ndarray
    test_number: np.ndarray
    test_text: np.ndarray
    test_text_start: np.ndarray
    equal_slots: np.ndarray  # tests of EQUAL_TEXT, by subject and text
    ordered_start: np.ndarray  # by subject * N_OPERATIONS + operation
    ordered_tests: np.ndarray  # ascending by number
    record_name: np.ndarray
    program_start: np.ndarray
    program: np.ndarray
    plain_record: np.ndarray  # of a name: its record without a condition, or -1
    single_record: np.ndarray  # of a test: the record that is this test alone, or -1
    woken_start: np.ndarray  # of a test: the records to evaluate once it holds
    woken_records: np.ndarray
    unwoken_start: np.ndarray  # of a name: the records to evaluate whatever holds
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
        n_names, n_subjects, n_tests = len(self.names), len(self.subjects), len(self.tests)
        name_text, name_bounds = _joined(part for name in self.names for part in (name.uri, name.local))
        subjects = np.array(list(self.subjects), np.int32).reshape(n_subjects, 3)
        tests = list(breathing(self.tests))
        test_subject = np.array([subject for subject, _, _ in tests], np.int32)
        test_operation = np.array([operation for _, operation, _ in tests], np.int32)
        constants = [constant for _, _, constant in tests]
        numbers = np.array([c if isinstance(c, float) else np.nan for c in constants], np.float64)
        test_text, test_text_start = _joined(c if isinstance(c, str) else "" for c in constants)
        programs = [program for _, program in breathing(self.records)]
        record_name = np.array([element for element, _ in self.records], np.int32)
        plain, single, woken, unwoken = self._reached()
        words = Words(
            name_text=name_text,
            name_start=name_bounds[::2].copy(),
            name_uri_length=(name_bounds[1::2] - name_bounds[:-1:2]).astype(np.int32),
            name_slots=new_slots(n_names),
            name_subjects=_bit_union(subjects[:, 0], subjects[:, 1], n_names),
            subject_element=subjects[:, 0].copy(),
            subject_kind=subjects[:, 1].copy(),
            subject_name=subjects[:, 2].copy(),
            subject_slots=new_slots(n_subjects),
            subject_operations=_bit_union(test_subject, test_operation, n_subjects),
            test_subject=test_subject,
            test_operation=test_operation,
            test_number=numbers,
            test_text=test_text,
            test_text_start=test_text_start,
            equal_slots=new_slots(int(np.count_nonzero(test_operation == Operation.EQUAL_TEXT))),
            ordered_start=_starts(test_subject * N_OPERATIONS + test_operation, n_subjects * N_OPERATIONS),
            ordered_tests=np.lexsort((numbers, test_subject * N_OPERATIONS + test_operation)).astype(np.int32),
            record_name=record_name,
            program_start=_offsets(map(len, programs)),
            program=np.array([word for program in programs for word in program], np.int32),
            plain_record=_lookup(plain, n_names),
            single_record=_lookup(single, n_tests),
            woken_start=_starts([key for key, _ in woken], n_tests),
            woken_records=np.array([record for _, record in sorted(woken)], np.int32),
            unwoken_start=_starts([key for key, _ in unwoken], n_names),
            unwoken_records=np.array([record for _, record in sorted(unwoken)], np.int32),
        )
        _fill_slots(words, int(Operation.EQUAL_TEXT))
        return words

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
    program = words.program[words.program_start[record] : words.program_start[record + 1]].tolist()
    condition = read_program(program, lambda test: _read_test(words, test)) if program else TRUE
    return PathStep(False, _read_name(words, int(words.record_name[record])), condition)


def _read_test(words: Words, test: int) -> ValueTest:
    subject = int(words.test_subject[test])
    kind = Subject(int(words.subject_kind[subject]))
    operation = Operation(int(words.test_operation[test]))
    named = kind in (Subject.ATTRIBUTE, Subject.CHILD)
    constant: str | float | None = None
    if operation in (Operation.EQUAL_TEXT, Operation.UNEQUAL_TEXT, Operation.CONTAINS, Operation.STARTS_WITH):
        start, end = words.test_text_start[test : test + 2].tolist()
        constant = words.test_text[start:end].tobytes().decode()
    elif operation != Operation.EXISTS:
        constant = float(words.test_number[test])
    name = _read_name(words, int(words.subject_name[subject])) if named else None
    return ValueTest(kind, name, operation, constant)


def _read_name(words: Words, name: int) -> ElementName:
    start, end = words.name_start[name : name + 2].tolist()
    middle = start + int(words.name_uri_length[name])
    text = words.name_text
    return ElementName(text[start:middle].tobytes().decode(), text[middle:end].tobytes().decode())


def _joined(texts: Iterable[str]) -> tuple[np.ndarray, np.ndarray]:
    """All texts as one array of UTF-8, and where each starts (and the last ends)."""
    encoded = [text.encode() for text in breathing(texts)]
    return np.frombuffer(b"".join(encoded) or b"\0", np.uint8).copy(), _offsets(map(len, encoded))


def _offsets(lengths: Iterable[int]) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(np.fromiter(lengths, np.int64))]).astype(np.int64)


def _starts(keys: object, n_keys: int) -> np.ndarray:
    """Where each key's entries start, once entries are sorted by key."""
    counts = np.bincount(np.asarray(keys, np.int64), minlength=n_keys)
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def _bit_union(keys: np.ndarray, bits: np.ndarray, n_keys: int) -> np.ndarray:
    union = np.zeros(n_keys, np.int32)
    np.bitwise_or.at(union, keys, np.left_shift(1, bits).astype(np.int32))
    return union


def _lookup(pairs: dict[int, int], n_keys: int) -> np.ndarray:
    table = np.full(n_keys, -1, np.int32)
    table[list(pairs.keys())] = list(pairs.values())
    return table


@kernel
def _fill_slots(words, equal_text):
    """Enter names, subjects and text equalities into their hash tables."""
    for name in range(len(words.name_uri_length)):
        start, end = words.name_start[name], words.name_start[name + 1]
        middle = start + words.name_uri_length[name]
        _enter(words.name_slots, name_hash(words.name_text, start, middle, words.name_text, middle, end), name)
    for subject in range(len(words.subject_kind)):
        element, kind = words.subject_element[subject], words.subject_kind[subject]
        _enter(words.subject_slots, _subject_hash(element, kind, words.subject_name[subject]), subject)
    for test in range(len(words.test_subject)):
        if words.test_operation[test] == equal_text:
            start, end = words.test_text_start[test], words.test_text_start[test + 1]
            place = hash_bytes(words.test_text, start, end, mix(SEED, words.test_subject[test]))
            _enter(words.equal_slots, place, test)


@kernel
def _enter(slots, place, value):
    mask = np.uint64(len(slots) - 1)
    while slots[place & mask] >= 0:
        place += np.uint64(1)
    slots[place & mask] = value


@kernel
def name_hash(uri, uri_start, uri_end, local, local_start, local_end):
    return hash_bytes(local, local_start, local_end, hash_bytes(uri, uri_start, uri_end, SEED))


@kernel
def _subject_hash(element, kind, name):
    return mix(mix(SEED, element), kind * np.int64(1 << 32) + name)


@kernel
def same_bytes(left, left_start, left_end, right, right_start, right_end):
    """Whether two byte ranges hold the same bytes."""
    if left_end - left_start != right_end - right_start:
        return False
    for i in range(left_end - left_start):
        if left[left_start + i] != right[right_start + i]:
            return False
    return True


@kernel
def find_name(words, uri, uri_start, uri_end, local, local_start, local_end):
    """The number of the name {uri}local, or -1."""
    mask = np.uint64(len(words.name_slots) - 1)
    place = name_hash(uri, uri_start, uri_end, local, local_start, local_end) & mask
    while words.name_slots[place] >= 0:
        name = words.name_slots[place]
        start, end = words.name_start[name], words.name_start[name + 1]
        middle = start + words.name_uri_length[name]
        if same_bytes(words.name_text, start, middle, uri, uri_start, uri_end) and same_bytes(
            words.name_text, middle, end, local, local_start, local_end
        ):
            return name
        place = (place + np.uint64(1)) & mask
    return np.int32(-1)


@kernel
def find_subject(words, element, kind, name):
    """The number of the subject, or -1."""
    mask = np.uint64(len(words.subject_slots) - 1)
    place = _subject_hash(element, kind, name) & mask
    while words.subject_slots[place] >= 0:
        subject = words.subject_slots[place]
        if (
            words.subject_element[subject] == element
            and words.subject_kind[subject] == kind
            and words.subject_name[subject] == name
        ):
            return subject
        place = (place + np.uint64(1)) & mask
    return np.int32(-1)
