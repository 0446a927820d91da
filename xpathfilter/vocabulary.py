"""The words of subscriptions, numbered while a segment is drafted.

    //quote[@symbol='IBM' and price > 100]

    names 1 quote   2 symbol   3 price        subjects 0 quote/@symbol   1 quote/price          few: one by one
    tests 0 (0, EQUAL_TEXT, IBM)   1 (1, GREATER, 100)        records 0 quote: 0 1 ALL of 2     many: by the column

Names and subjects are distinct at once. Tests and records are taken as they come, one by one or by the million, and
made distinct when the vocabulary is frozen; `freeze` says what has become of each record. All that depends on their
number is done by kernels.
"""

import numpy as np

from sievecore.breathing import breathing
from sievecore.jit import kernel
from sievecore.ranking import ranked
from sievecore.rows import Rows, chosen_rows, concatenate_rows, distinct_rows, new_rows
from xpathfilter.freezing import build_words, inverse, translated
from xpathfilter.plan import ANY_NAME, TRUE, Combination, ElementName, PathStep, ValueTest
from xpathfilter.programs import write_program
from xpathfilter.value_tests import (
    Constant,
    ValueTests,
    chosen_tests,
    concatenate_tests,
    distinct_tests,
    new_tests,
)
from xpathfilter.words import Words, read_name, read_tests

__all__ = ["Vocabulary"]


class Vocabulary:
    """Gives words their numbers; see the module."""

    def __init__(self) -> None:
        self.names: dict[ElementName, int] = {ANY_NAME: 0}
        self.subjects: dict[tuple[int, int, int], int] = {}
        self.n_tests = self.n_records = 0
        self._tests: list[ValueTests] = []
        self._records: list[Rows] = []
        self._loose_tests: list[tuple[int, int, Constant]] = []  # what came one by one and is not in an array yet
        self._loose_records: list[tuple[int, ...]] = []

    def name(self, name: ElementName) -> int:
        return self.names.setdefault(name, len(self.names))

    def subject(self, element: int, test: ValueTest) -> int:
        """The number of what a test of an element looks at."""
        name = self.name(test.name) if test.name else 0
        return self.subjects.setdefault((element, test.subject, name), len(self.subjects))

    def test(self, element: int, test: Combination) -> int:
        """A number for a test of an element."""
        assert isinstance(test, ValueTest)
        self._loose_tests.append((self.subject(element, test), test.operation, test.constant))
        self.n_tests += 1
        return self.n_tests - 1

    def record(self, step: PathStep) -> int:
        """A number for the position record of a step's name and condition."""
        element = self.name(step.name)
        program = write_program(step.condition, lambda test: self.test(element, test)) if step.condition != TRUE else ()
        self._loose_records.append((element, *program))
        self.n_records += 1
        return self.n_records - 1

    def add_tests(self, tests: ValueTests) -> int:
        """Add many tests; return the number of the first."""
        self._collect_loose()
        self._tests.append(tests)
        self.n_tests += len(tests.subjects)
        return self.n_tests - len(tests.subjects)

    def add_records(self, records: Rows) -> int:
        """Add many records over the names and tests of this vocabulary; return the number of the first."""
        self._collect_loose()
        self._records.append(records)
        self.n_records += records.n_rows
        return self.n_records - records.n_rows

    def add_words(self, words: Words, records: np.ndarray) -> int:
        """Add some records of frozen words; return the number of the first."""
        rows = chosen_rows(Rows(words.record_words, words.record_start), records)
        used_names, used_tests = np.zeros(len(words.names), np.bool_), np.zeros(words.n_tests, np.bool_)
        _mark_used(rows, used_names, used_tests)
        tests = chosen_tests(read_tests(words), np.flatnonzero(used_tests))
        name_of = np.zeros(len(words.names), np.int32)
        for name in breathing(np.flatnonzero(used_names).tolist()):
            name_of[name] = self.name(read_name(words, name))
        first_test = self.add_tests(tests._replace(subjects=self._subjects_of(words, tests.subjects)))
        return self.add_records(translated(rows, name_of, first_test + np.cumsum(used_tests) - 1))

    def freeze(self, n_uses: np.ndarray) -> tuple[Words, np.ndarray]:
        """The arrays for kernels, and the record in them for each number that was given to one.

        The more often records are used, the lower they are numbered: those that are looked at all the time then lie
        close together. At 100,000 subscriptions the walk of a document took 221 us so, and 241 as they came.
        """
        self._collect_loose()
        self._tests = [concatenate_tests([new_tests([]), *self._tests])]
        self._records = [concatenate_rows([new_rows([], []), *self._records])]
        tests, test_of = distinct_tests(self._tests[0])
        same_names = np.arange(len(self.names), dtype=np.int32)
        records, record_of = distinct_rows(translated(self._records[0], same_names, test_of))
        by_use = np.argsort(-np.bincount(record_of, n_uses, records.n_rows), kind="stable")
        words = build_words(self.names, list(self.subjects), tests, chosen_rows(records, by_use))
        return words, inverse(by_use)[record_of]

    def _subjects_of(self, words: Words, subjects: np.ndarray) -> np.ndarray:
        """The same subjects of frozen words, in the numbers of this vocabulary."""
        number_of = np.zeros(len(words.subjects), np.int32)
        used, _ = ranked(subjects, len(words.subjects))
        for subject in used.tolist():
            element, kind, name, *_ = words.subjects[subject].tolist()
            key = (self.name(read_name(words, element)), kind, self.name(read_name(words, name)))
            number_of[subject] = self.subjects.setdefault(key, len(self.subjects))
        return number_of[subjects]

    def _collect_loose(self) -> None:
        """Put what came one by one into arrays: a few large ones are far cheaper to join than many small ones."""
        if self._loose_tests:
            self._tests.append(new_tests(self._loose_tests))
            self._loose_tests = []
        if self._loose_records:
            flat = [word for record in self._loose_records for word in record]
            self._records.append(new_rows(flat, [len(record) for record in self._loose_records]))
            self._loose_records = []


@kernel
def _mark_used(records, names, tests):
    for record in range(len(records.start) - 1):
        names[records.values[records.start[record]]] = True
        for i in range(records.start[record] + 1, records.start[record + 1]):
            if records.values[i] >= 0:
                tests[records.values[i]] = True
