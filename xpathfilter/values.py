"""Which value tests hold for an element, and so which position records does it satisfy?

    <quote symbol="IBM"><price>120</price></quote>

    subject (quote, @symbol)   "IBM"  ──▶ EQUAL_TEXT table  ──▶ test 0 ─┐
    subject (quote, price)     "120"  ──▶ GREATER, sorted   ──▶ test 1 ─┴─▶ record 0: 0 1 ALL 2 ──▶ satisfied

Every satisfied test is found directly: equality by hash, order by walking sorted constants from the end that
holds them. Only `!=`, contains() and starts-with() are tried one by one. The conversions are XPath's: a number
is read from the text as libxml2 reads it, what is no number is unequal to every number and in order with none.
Any value may satisfy a comparison; contains() and starts-with() look at the first value only.
"""

from typing import NamedTuple

import numpy as np

from sievecore.hashing import SEED, hash_bytes, mix
from sievecore.jit import kernel
from xpathfilter.numbers import parse_number
from xpathfilter.plan import Operation, Subject
from xpathfilter.programs import is_true, new_stack
from xpathfilter.vocabulary import N_OPERATIONS, Words, find_subject, same_bytes

__all__ = ["ValueScratch", "new_value_scratch", "satisfied_records"]

SELF, TEXT, ATTRIBUTE, CHILD = (int(kind) for kind in Subject)
EXISTS, EQUAL_TEXT, UNEQUAL_TEXT = (int(operation) for operation in list(Operation)[:3])
EQUAL, UNEQUAL, LESS, LESS_EQUAL, GREATER, GREATER_EQUAL = (int(operation) for operation in list(Operation)[3:9])
CONTAINS, STARTS_WITH = int(Operation.CONTAINS), int(Operation.STARTS_WITH)
NUMERIC_BITS = sum(1 << operation for operation in range(EQUAL, GREATER_EQUAL + 1))
FIRST_ONLY_BITS = 1 << CONTAINS | 1 << STARTS_WITH

STAMP, N_HELD = range(2)


class ValueScratch(NamedTuple):
    """Working memory. A cell equal to the current stamp belongs to the current element, all others are stale."""

    state: np.ndarray  # the stamp, and how many tests hold
    held_stamp: np.ndarray  # of each test
    held: np.ndarray  # the tests that hold
    seen_stamp: np.ndarray  # of each subject: a first value was met
    record_stamp: np.ndarray  # of each record: evaluated already
    stack: np.ndarray  # for programs


def new_value_scratch(words: Words) -> ValueScratch:
    """Working memory for one thread and one vocabulary."""
    n_tests = len(words.test_subject)
    return ValueScratch(
        state=np.zeros(2, np.int64),
        held_stamp=np.zeros(n_tests, np.int64),
        held=np.zeros(n_tests, np.int32),
        seen_stamp=np.zeros(len(words.subject_kind), np.int64),
        record_stamp=np.zeros(len(words.record_name), np.int64),
        stack=new_stack(words.program_start),
    )


@kernel
def satisfied_records(words, scratch, flat, names, element, element_name, records, n_records):
    """Append the records that `element` satisfies under one of its names; return how many there are now.

    `names` gives the vocabulary's number for each name of the document.
    """
    if words.plain_record[element_name] >= 0:
        records[n_records] = words.plain_record[element_name]
        n_records += 1
    unwoken = words.unwoken_start[element_name], words.unwoken_start[element_name + 1]
    if words.name_subjects[element_name] == 0 and unwoken[0] == unwoken[1]:
        return n_records
    scratch.state[STAMP] += 1
    scratch.state[N_HELD] = 0
    _hold_tests(words, scratch, flat, names, element, element_name)
    for i in range(scratch.state[N_HELD]):
        test = scratch.held[i]
        if words.single_record[test] >= 0:
            records[n_records] = words.single_record[test]
            n_records += 1
        for j in range(words.woken_start[test], words.woken_start[test + 1]):
            n_records = _append_if_true(words, scratch, words.woken_records[j], records, n_records)
    for j in range(unwoken[0], unwoken[1]):
        n_records = _append_if_true(words, scratch, words.unwoken_records[j], records, n_records)
    return n_records


@kernel
def _append_if_true(words, scratch, record, records, n_records):
    stamp = scratch.state[STAMP]
    if scratch.record_stamp[record] == stamp:
        return n_records
    scratch.record_stamp[record] = stamp
    start, end = words.program_start[record], words.program_start[record + 1]
    if is_true(words.program, start, end, scratch.held_stamp, stamp, scratch.stack):
        records[n_records] = record
        n_records += 1
    return n_records


@kernel
def _hold_tests(words, scratch, flat, names, element, element_name):
    kinds = words.name_subjects[element_name]
    if kinds & (1 << ATTRIBUTE):
        first = flat.first_attribute[element]
        for i in range(first, first + flat.n_attributes[element]):
            subject = _subject(words, element_name, ATTRIBUTE, names[flat.attribute_name[i]])
            if subject >= 0:
                _hold(words, scratch, subject, flat.attribute_text, flat.value_start[i], flat.value_end[i])
    if kinds & (1 << CHILD):
        child = flat.first_child[element]
        while child >= 0:
            subject = _subject(words, element_name, CHILD, names[flat.name[child]])
            if subject >= 0:
                _hold(words, scratch, subject, flat.text, flat.text_start[child], flat.text_end[child])
            child = flat.next_sibling[child]
    if kinds & (1 << TEXT):
        subject = _subject(words, element_name, TEXT, 0)
        node = flat.first_text[element]
        while node >= 0:
            _hold(words, scratch, subject, flat.text, flat.text_node_start[node], flat.text_node_end[node])
            node = flat.next_text[node]
    if kinds & (1 << SELF):
        subject = _subject(words, element_name, SELF, 0)
        _hold(words, scratch, subject, flat.text, flat.text_start[element], flat.text_end[element])


@kernel
def _subject(words, element_name, kind, name):
    return find_subject(words, element_name, kind, name) if name >= 0 else np.int32(-1)


@kernel
def _hold(words, scratch, subject, text, start, end):
    """Note every test of `subject` that the value text[start:end] satisfies."""
    operations = words.subject_operations[subject]
    if operations & (1 << EXISTS):
        _note(scratch, words.ordered_tests[words.ordered_start[subject * N_OPERATIONS + EXISTS]])
    if operations & (1 << EQUAL_TEXT):
        test = _find_equal(words, subject, text, start, end)
        if test >= 0:
            _note(scratch, test)
    if operations & (1 << UNEQUAL_TEXT):
        for i in range(*_tests(words, subject, UNEQUAL_TEXT)):
            test = words.ordered_tests[i]
            if not _has_text(words, test, text, start, end):
                _note(scratch, test)
    if operations & NUMERIC_BITS:
        _hold_numeric(words, scratch, subject, parse_number(text, start, end))
    if operations & FIRST_ONLY_BITS and scratch.seen_stamp[subject] != scratch.state[STAMP]:
        scratch.seen_stamp[subject] = scratch.state[STAMP]
        for i in range(*_tests(words, subject, CONTAINS)):
            if _find_text(words, words.ordered_tests[i], text, start, end):
                _note(scratch, words.ordered_tests[i])
        for i in range(*_tests(words, subject, STARTS_WITH)):
            test = words.ordered_tests[i]
            length = words.test_text_start[test + 1] - words.test_text_start[test]
            if _has_text(words, test, text, start, min(end, start + length)):
                _note(scratch, test)


@kernel
def _note(scratch, test):
    if scratch.held_stamp[test] != scratch.state[STAMP]:
        scratch.held_stamp[test] = scratch.state[STAMP]
        scratch.held[scratch.state[N_HELD]] = test
        scratch.state[N_HELD] += 1


@kernel
def _tests(words, subject, operation):
    key = subject * N_OPERATIONS + operation
    return words.ordered_start[key], words.ordered_start[key + 1]


@kernel
def _hold_numeric(words, scratch, subject, number):
    tests, numbers = words.ordered_tests, words.test_number
    start, end = _tests(words, subject, UNEQUAL)
    for i in range(start, end):
        if numbers[tests[i]] != number:
            _note(scratch, tests[i])
    if np.isnan(number):
        return
    start, end = _tests(words, subject, EQUAL)
    place = _first_not_less(tests, numbers, start, end, number)
    if place < end and numbers[tests[place]] == number:
        _note(scratch, tests[place])
    for operation in (LESS, LESS_EQUAL):
        start, end = _tests(words, subject, operation)
        i = end - 1
        while i >= start and (number < numbers[tests[i]] or (operation == LESS_EQUAL and number == numbers[tests[i]])):
            _note(scratch, tests[i])
            i -= 1
    for operation in (GREATER, GREATER_EQUAL):
        start, end = _tests(words, subject, operation)
        i = start
        while i < end and (number > numbers[tests[i]] or (operation == GREATER_EQUAL and number == numbers[tests[i]])):
            _note(scratch, tests[i])
            i += 1


@kernel
def _first_not_less(tests, numbers, start, end, number):
    while start < end:
        middle = (start + end) // 2
        if numbers[tests[middle]] < number:
            start = middle + 1
        else:
            end = middle
    return start


@kernel
def _has_text(words, test, text, start, end):
    return same_bytes(words.test_text, words.test_text_start[test], words.test_text_start[test + 1], text, start, end)


@kernel
def _find_equal(words, subject, text, start, end):
    mask = np.uint64(len(words.equal_slots) - 1)
    place = hash_bytes(text, start, end, mix(SEED, subject)) & mask
    while words.equal_slots[place] >= 0:
        test = words.equal_slots[place]
        if words.test_subject[test] == subject and _has_text(words, test, text, start, end):
            return test
        place = (place + np.uint64(1)) & mask
    return np.int32(-1)


@kernel
def _find_text(words, test, text, start, end):
    """Whether text[start:end] contains the test's text, which is never empty."""
    wanted_start, wanted_end = words.test_text_start[test], words.test_text_start[test + 1]
    length = wanted_end - wanted_start
    first = words.test_text[wanted_start]
    for i in range(start, end - length + 1):
        if text[i] == first and same_bytes(words.test_text, wanted_start, wanted_end, text, i, i + length):
            return True
    return False
