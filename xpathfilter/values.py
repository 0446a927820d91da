"""Which value tests hold for an element, and so which position records does it satisfy?

    <quote symbol="IBM"><price>120</price></quote>

    subject (quote, @symbol)   "IBM"  ──▶ EQUAL_TEXT table  ──▶ test 0 ─┐ wakes
    subject (quote, price)     "120"  ──▶ lowest, highest   ──▶ test 1 ─┴─▶ record 0: 0 1 ALL 2 ──▶ satisfied

Every test that wakes records is found directly: equality by hash, order by walking sorted constants from the end
that holds them. Only `!=`, contains() and starts-with() are tried one by one. Of a subject with lazy tests a
**summary** is kept, from which such a test is decided if a record that was woken asks for it.
The conversions are XPath's: a number is read from the text as libxml2 reads it, what is no number is unequal to every
number and in order with none. Any value may satisfy a comparison; contains() and starts-with() look at the first
value only.
"""

from typing import NamedTuple

import numpy as np

from sievecore.hashing import same_bytes
from sievecore.jit import kernel
from xpathfilter.plan import Operation, Subject
from xpathfilter.programs import is_true, new_stack
from xpathfilter.words import LAZY, Words, find_subject, group_of_test, test_group, text_hash
from xpathfilter.xpath_numbers import parse_number

__all__ = ["ValueScratch", "new_value_scratch", "satisfied_records"]

SELF, TEXT, ATTRIBUTE, CHILD = (int(kind) for kind in Subject)
EXISTS, EQUAL_TEXT, UNEQUAL_TEXT = (int(operation) for operation in list(Operation)[:3])
EQUAL, UNEQUAL, LESS, LESS_EQUAL, GREATER, GREATER_EQUAL = (int(operation) for operation in list(Operation)[3:9])
CONTAINS, STARTS_WITH = int(Operation.CONTAINS), int(Operation.STARTS_WITH)
NUMERIC_BITS = sum(1 << operation for operation in range(EQUAL, GREATER_EQUAL + 1))
FIRST_ONLY_BITS = 1 << CONTAINS | 1 << STARTS_WITH
ANY_LAZY_BITS = ((1 << LAZY) - 1) << LAZY

STAMP, N_HELD = range(2)

SUMMARY = np.dtype(
    [
        ("stamp", np.int64),
        ("lowest", np.float64),
        ("highest", np.float64),
        ("start", np.int32),
        ("end", np.int32),
        ("has_others", np.bool_),
        ("has_no_number", np.bool_),
    ],
    align=True,
)
"""What an element says of a subject: where its first value is, whether others differ from that, the lowest and the
highest of the numbers (NaN without any) and whether some value is no number."""


class ValueScratch(NamedTuple):
    """Working memory. A cell equal to the current stamp belongs to the current element, all others are stale."""

    state: np.ndarray  # the stamp, and how many tests hold
    held_stamp: np.ndarray  # of each test
    held: np.ndarray  # the tests that hold
    summaries: np.ndarray  # of each subject: of the element at hand if it has the stamp
    record_stamp: np.ndarray  # of each record: evaluated already
    stack: np.ndarray  # for programs


def new_value_scratch(words: Words) -> ValueScratch:
    """Working memory for one thread and one vocabulary."""
    return ValueScratch(
        state=np.zeros(2, np.int64),
        held_stamp=np.zeros(words.n_tests, np.int64),
        held=np.zeros(words.n_tests, np.int32),
        summaries=np.zeros(len(words.subjects), SUMMARY),
        record_stamp=np.zeros(words.n_records, np.int64),
        stack=new_stack(np.diff(words.record_start)),
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
        test = scratch.held[i]
        if words.single_records[test] >= 0:
            records[n_records] = words.single_records[test]
            n_records += 1
        start, end = words.woken_start[test], words.woken_start[test + 1]
        n_records = _append_true(words, scratch, flat, words.woken_records, start, end, records, n_records)
    start, end = name.unwoken_start, name.unwoken_end
    return _append_true(words, scratch, flat, words.unwoken_records, start, end, records, n_records)


@kernel
def _append_true(words, scratch, flat, candidates, start, end, records, n_records):
    """Append those candidates whose condition is true; each is evaluated once an element."""
    stamp = scratch.state[STAMP]
    for i in range(start, end):
        candidate = candidates[i]
        if scratch.record_stamp[candidate] != stamp:
            scratch.record_stamp[candidate] = stamp
            first, last = words.record_start[candidate] + 1, words.record_start[candidate + 1]
            _hold_lazy(words, scratch, flat, first, last)
            if is_true(words.record_words, first, last, scratch.held_stamp, stamp, scratch.stack):
                records[n_records] = candidate
                n_records += 1
    return n_records


@kernel
def _hold_lazy(words, scratch, flat, first, last):
    """Mark the lazy tests that hold among the leaves of a program."""
    for i in range(first, last):
        test = words.record_words[i]
        if test >= 0 and scratch.held_stamp[test] != scratch.state[STAMP]:
            group = words.groups[group_of_test(words, test)]
            if group.operation >= LAZY and _holds(words, scratch, flat, group, test):
                scratch.held_stamp[test] = scratch.state[STAMP]


@kernel
def _holds(words, scratch, flat, group, test):
    """Decide a lazy test from the summary of its subject."""
    summary = scratch.summaries[group.subject]
    if summary.stamp != scratch.state[STAMP]:
        return False
    operation = group.operation - LAZY
    constant = group.first_constant + test - group.first_test
    if UNEQUAL <= operation <= GREATER_EQUAL:
        number = words.numbers[constant]
        if operation == UNEQUAL:
            return summary.has_no_number or summary.lowest != number or summary.highest != number
        if operation == LESS or operation == LESS_EQUAL:
            return _in_order(summary.lowest, operation == LESS_EQUAL, number)
        return _in_order(number, operation == GREATER_EQUAL, summary.highest)
    text = flat.attribute_text if words.subjects[group.subject].kind == ATTRIBUTE else flat.text
    if operation == UNEQUAL_TEXT:
        return summary.has_others or not _has_text(words, constant, text, summary.start, summary.end)
    if operation == CONTAINS:
        return _find_text(words, constant, text, summary.start, summary.end)
    return _starts_with(words, constant, text, summary.start, summary.end)


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
    """Note every test of `subject` that the value text[start:end] satisfies, and take it into the summary."""
    operations = words.subjects[subject].operations
    is_first = scratch.summaries[subject].stamp != scratch.state[STAMP]
    number = parse_number(text, start, end) if operations & (NUMERIC_BITS | NUMERIC_BITS << LAZY) else np.nan
    if operations & (FIRST_ONLY_BITS | ANY_LAZY_BITS):
        _summarize(scratch, scratch.summaries[subject], text, start, end, number)
    if operations & (1 << EXISTS):
        _note(scratch, words.groups[test_group(words, subject, EXISTS)].first_test)
    if operations & (1 << EQUAL_TEXT):
        test = _find_equal(words, subject, text, start, end)
        if test >= 0:
            _note(scratch, test)
    if operations & (1 << UNEQUAL_TEXT):
        tests, first, last = _constants(words, subject, UNEQUAL_TEXT)
        for i in range(first, last):
            if not _has_text(words, i, text, start, end):
                _note(scratch, tests + i)
    if operations & NUMERIC_BITS:
        for operation in range(EQUAL, GREATER_EQUAL + 1):
            if operations & (1 << operation):
                _hold_numeric(words, scratch, subject, operation, number)
    if operations & FIRST_ONLY_BITS and is_first:
        _hold_parts(words, scratch, subject, operations, text, start, end)


@kernel
def _summarize(scratch, summary, text, start, end, number):
    if summary.stamp != scratch.state[STAMP]:
        summary.stamp = scratch.state[STAMP]
        summary.start, summary.end = start, end
        summary.lowest = summary.highest = np.nan
        summary.has_others = summary.has_no_number = False
    if not same_bytes(text, summary.start, summary.end, text, start, end):
        summary.has_others = True
    if number != number:
        summary.has_no_number = True
    else:
        if not summary.lowest <= number:
            summary.lowest = number
        if not summary.highest >= number:
            summary.highest = number


@kernel
def _hold_parts(words, scratch, subject, operations, text, start, end):
    if operations & (1 << CONTAINS):
        tests, first, last = _constants(words, subject, CONTAINS)
        for i in range(first, last):
            if _find_text(words, i, text, start, end):
                _note(scratch, tests + i)
    if operations & (1 << STARTS_WITH):
        tests, first, last = _constants(words, subject, STARTS_WITH)
        for i in range(first, last):
            if _starts_with(words, i, text, start, end):
                _note(scratch, tests + i)


@kernel
def _note(scratch, test):
    if scratch.held_stamp[test] != scratch.state[STAMP]:
        scratch.held_stamp[test] = scratch.state[STAMP]
        scratch.held[scratch.state[N_HELD]] = test
        scratch.state[N_HELD] += 1


@kernel
def _constants(words, subject, operation):
    """The constants of a group, first to last; the test of constant i is i more than the number in front."""
    group = test_group(words, subject, operation)
    tests, first = words.groups[group].first_test, words.groups[group].first_constant
    return tests - first, first, first + words.groups[group + 1].first_test - tests


@kernel
def _hold_numeric(words, scratch, subject, operation, number):
    """Note the tests of a numeric operation; they are walked from the end where those are that hold."""
    numbers = words.numbers
    tests, first, last = _constants(words, subject, operation)
    if operation == UNEQUAL:
        for i in range(first, last):
            if numbers[i] != number:
                _note(scratch, tests + i)
    elif operation == EQUAL:
        i = _first_not_less(numbers, first, last, number)
        if i < last and numbers[i] == number:
            _note(scratch, tests + i)
    elif operation == LESS or operation == LESS_EQUAL:
        i = last - 1
        while i >= first and _in_order(number, operation == LESS_EQUAL, numbers[i]):
            _note(scratch, tests + i)
            i -= 1
    else:
        i = first
        while i < last and _in_order(numbers[i], operation == GREATER_EQUAL, number):
            _note(scratch, tests + i)
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
def _has_text(words, constant, text, start, end):
    return same_bytes(words.text, words.text_start[constant], words.text_start[constant + 1], text, start, end)


@kernel
def _starts_with(words, constant, text, start, end):
    length = words.text_start[constant + 1] - words.text_start[constant]
    return _has_text(words, constant, text, start, min(end, start + length))


@kernel
def _find_equal(words, subject, text, start, end):
    """The test of EQUAL_TEXT that the text satisfies, or -1."""
    tests, first, last = _constants(words, subject, EQUAL_TEXT)
    mask = np.uint64(len(words.equal_slots) - 1)
    place = text_hash(text, start, end, subject) & mask
    while words.equal_slots[place] >= 0:
        constant = words.equal_slots[place] - tests
        if first <= constant < last and _has_text(words, constant, text, start, end):
            break
        place = (place + np.uint64(1)) & mask
    return words.equal_slots[place]


@kernel
def _find_text(words, constant, text, start, end):
    """Whether text[start:end] contains a constant, which is never empty."""
    first, last = words.text_start[constant], words.text_start[constant + 1]
    for i in range(start, end - (last - first) + 1):
        if text[i] == words.text[first] and same_bytes(words.text, first, last, text, i, i + last - first):
            return True
    return False
