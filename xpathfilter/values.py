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

from sievecore.hashing import same_bytes
from sievecore.jit import kernel
from xpathfilter.plan import Operation, Subject
from xpathfilter.programs import is_true, new_stack
from xpathfilter.vocabulary import N_OPERATIONS, Words, find_subject, text_hash
from xpathfilter.xpath_numbers import parse_number

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
    return ValueScratch(
        state=np.zeros(2, np.int64),
        held_stamp=np.zeros(len(words.tests), np.int64),
        held=np.zeros(len(words.tests), np.int32),
        seen_stamp=np.zeros(len(words.subjects), np.int64),
        record_stamp=np.zeros(len(words.records), np.int64),
        stack=new_stack(words.records["program_end"] - words.records["program_start"]),
    )


@kernel
def satisfied_records(words, scratch, flat, names, element, element_name, records, n_records):
    """Append the records that `element` satisfies under one of its names; return how many there are now.

    `names` gives the vocabulary's number for each name of the document.
    """
    name = words.names[element_name]
    if name.plain_record >= 0:
        records[n_records] = name.plain_record
        n_records += 1
    if name.subject_kinds == 0 and name.unwoken_start == name.unwoken_end:
        return n_records
    scratch.state[STAMP] += 1
    scratch.state[N_HELD] = 0
    _hold_tests(words, scratch, flat, names, flat.elements[element], element_name)
    for i in range(scratch.state[N_HELD]):
        test = words.tests[scratch.held[i]]
        if test.single_record >= 0:
            records[n_records] = test.single_record
            n_records += 1
        n_records = _append_true(
            words, scratch, words.woken_records, test.woken_start, test.woken_end, records, n_records
        )
    return _append_true(words, scratch, words.unwoken_records, name.unwoken_start, name.unwoken_end, records, n_records)


@kernel
def _append_true(words, scratch, candidates, start, end, records, n_records):
    """Append those candidates whose condition is true; each is evaluated once an element."""
    stamp = scratch.state[STAMP]
    for i in range(start, end):
        candidate = candidates[i]
        if scratch.record_stamp[candidate] != stamp:
            scratch.record_stamp[candidate] = stamp
            record = words.records[candidate]
            if is_true(
                words.program, record.program_start, record.program_end, scratch.held_stamp, stamp, scratch.stack
            ):
                records[n_records] = candidate
                n_records += 1
    return n_records


@kernel
def _hold_tests(words, scratch, flat, names, element, element_name):
    """Note all tests that hold for the values of one element."""
    kinds = words.names[element_name].subject_kinds
    if kinds & (1 << ATTRIBUTE):
        for i in range(element.first_attribute, element.first_attribute + element.n_attributes):
            attribute = flat.attributes[i]
            _hold_named(
                words,
                scratch,
                element_name,
                ATTRIBUTE,
                names[attribute.name].exact,
                flat.attribute_text,
                attribute.start,
                attribute.end,
            )
    if kinds & (1 << CHILD):
        number = element.first_child
        while number >= 0:
            child = flat.elements[number]
            _hold_named(
                words,
                scratch,
                element_name,
                CHILD,
                names[child.name].exact,
                flat.text,
                child.text_start,
                child.text_end,
            )
            number = child.next_sibling
    if kinds & (1 << TEXT):
        number = element.first_text
        while number >= 0:
            node = flat.text_nodes[number]
            _hold_named(words, scratch, element_name, TEXT, 0, flat.text, node.start, node.end)
            number = node.next
    if kinds & (1 << SELF):
        _hold_named(words, scratch, element_name, SELF, 0, flat.text, element.text_start, element.text_end)


@kernel
def _hold_named(words, scratch, element_name, kind, name, text, start, end):
    if name >= 0:
        subject = find_subject(words, element_name, kind, name)
        if subject >= 0:
            _hold(words, scratch, subject, text, start, end)


@kernel
def _hold(words, scratch, subject, text, start, end):
    """Note every test of `subject` that the value text[start:end] satisfies."""
    operations = words.subjects[subject].operations
    if operations & (1 << EXISTS):
        _note(scratch, words.ordered_tests[words.ordered_start[subject * N_OPERATIONS + EXISTS]])
    if operations & (1 << EQUAL_TEXT):
        test = _find_equal(words, subject, text, start, end)
        if test >= 0:
            _note(scratch, test)
    if operations & (1 << UNEQUAL_TEXT):
        first, last = _tests(words, subject, UNEQUAL_TEXT)
        for i in range(first, last):
            if not _has_text(words, words.ordered_tests[i], text, start, end):
                _note(scratch, words.ordered_tests[i])
    if operations & NUMERIC_BITS:
        _hold_numeric(words, scratch, subject, parse_number(text, start, end))
    if operations & FIRST_ONLY_BITS and scratch.seen_stamp[subject] != scratch.state[STAMP]:
        scratch.seen_stamp[subject] = scratch.state[STAMP]
        _hold_parts(words, scratch, subject, text, start, end)


@kernel
def _hold_parts(words, scratch, subject, text, start, end):
    first, last = _tests(words, subject, CONTAINS)
    for i in range(first, last):
        if _find_text(words, words.ordered_tests[i], text, start, end):
            _note(scratch, words.ordered_tests[i])
    first, last = _tests(words, subject, STARTS_WITH)
    for i in range(first, last):
        test = words.tests[words.ordered_tests[i]]
        if _has_text(words, words.ordered_tests[i], text, start, min(end, start + test.text_end - test.text_start)):
            _note(scratch, words.ordered_tests[i])


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
    """Note the numeric tests; each list is walked from the end where its satisfied tests are."""
    tests, numbers = words.ordered_tests, words.ordered_numbers
    for operation in range(EQUAL, GREATER_EQUAL + 1):
        first, last = _tests(words, subject, operation)
        if operation == UNEQUAL:
            for i in range(first, last):
                if numbers[i] != number:
                    _note(scratch, tests[i])
        elif operation == EQUAL:
            i = _first_not_less(numbers, first, last, number)
            if i < last and numbers[i] == number:
                _note(scratch, tests[i])
        elif operation == LESS or operation == LESS_EQUAL:
            i = last - 1
            while i >= first and _in_order(number, operation == LESS_EQUAL, numbers[i]):
                _note(scratch, tests[i])
                i -= 1
        else:
            i = first
            while i < last and _in_order(numbers[i], operation == GREATER_EQUAL, number):
                _note(scratch, tests[i])
                i += 1


@kernel
def _in_order(small, may_be_equal, large):
    return small < large or (may_be_equal and small == large)


@kernel
def _first_not_less(numbers, first, last, number):
    while first < last:
        middle = (first + last) // 2
        if numbers[middle] < number:
            first = middle + 1
        else:
            last = middle
    return first


@kernel
def _has_text(words, number, text, start, end):
    test = words.tests[number]
    return same_bytes(words.test_text, test.text_start, test.text_end, text, start, end)


@kernel
def _find_equal(words, subject, text, start, end):
    mask = np.uint64(len(words.equal_slots) - 1)
    place = text_hash(text, start, end, subject) & mask
    while words.equal_slots[place] >= 0:
        number = words.equal_slots[place]
        if words.tests[number].subject == subject and _has_text(words, number, text, start, end):
            break
        place = (place + np.uint64(1)) & mask
    return words.equal_slots[place]


@kernel
def _find_text(words, number, text, start, end):
    """Whether text[start:end] contains the test's text, which is never empty."""
    test = words.tests[number]
    length = test.text_end - test.text_start
    first = words.test_text[test.text_start]
    for i in range(start, end - length + 1):
        if text[i] == first and same_bytes(words.test_text, test.text_start, test.text_end, text, i, i + length):
            return True
    return False
