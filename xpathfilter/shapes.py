"""Steps that differ only in their constants: their shape is parsed once, and the constants are bound into it.

    //quote[@symbol='IBM' and price > 17]
    //quote[@symbol=■ and price > □]                 the shape: ■ for a text, □ for a number
    //quote: test 0, test 1, ALL of 2                its template, from the one real parser and compiler
             0 = (@symbol, EQUAL_TEXT, first constant)   1 = (price, GREATER, second constant)

A constant is cut out only where it must be exactly one token: a text between quotes, of harmless characters; a number
with a blank, a bracket or a comparison on either side. So nothing else of the expression can mean anything else for
another constant. What a constant means, the shape's own constants tell, which are like no other: each must be the
constant of exactly one value test. An empty text is not cut out, since contains(a, '') is no test. Pieces without a
template are left to others.
"""

from collections.abc import Callable

import numpy as np

from sievecore.breathing import breathing
from sievecore.jit import builder, kernel
from sievecore.rows import Rows
from sievecore.tables import columns
from xpathfilter.plan import TRUE, Combination, PathStep, ValueTest
from xpathfilter.programs import renumbered, write_program
from xpathfilter.texts import Texts, distinct_texts, text_at
from xpathfilter.value_tests import ValueTests
from xpathfilter.vocabulary import Vocabulary
from xpathfilter.xpath_numbers import parse_number

__all__ = ["UNBOUND", "Shapes"]

UNBOUND = -2
"""The code of a piece that has no template."""

MAX_PIECE_BYTES = 10_000
EMPTY_TEXT_BYTES = 2
NO_TEMPLATE = -1
OWN_TEST = 1 << 30  # added to the number of a template's own test, to tell it from one of the vocabulary

TEXT, NUMBER = 1, 2  # the bytes in a shape for a constant; no expression has them
FIRST_NUMBER = 987_650_000
FIRST_LETTER = "\ue000"

CONSTANT = columns("kind", "start", "end")
TEMPLATE = columns("name", "flags", "word_start", "word_end", "test_start", "test_end")
TEMPLATE_TEST = columns("subject", "operation", "constant", "sign")

BLANK, MINUS, POINT, ZERO, NINE = (ord(letter) for letter in " -.09")
BLANKS = tuple(b"\t\n\r")
BEFORE_NUMBER = tuple(b" =<>[(,")
AFTER_NUMBER = tuple(b" =<>!]),")
ODD_LEADS = (0xED, 0xEF)
"""Bytes that start a surrogate or one of the two characters that XML does not have, among others."""

ReadStep = Callable[[str], tuple[PathStep, bool] | None]
Meaning = tuple[int, int]


class Shapes:
    """The templates met so far, for one vocabulary; `read_step` reads a step and tells if it must be last."""

    def __init__(self, vocabulary: Vocabulary, read_step: ReadStep) -> None:
        self._vocabulary = vocabulary
        self._read_step = read_step
        self._numbers: dict[bytes, int] = {}
        self._templates: list[tuple[int, ...]] = []
        self._words: list[int] = []
        self._tests: list[tuple[int, ...]] = []

    def bind(self, text: np.ndarray, bounds: np.ndarray) -> np.ndarray:
        """The code of each piece text[start:end]: record * 4, 2 for a descendant, 1 for a step that must be last."""
        shapes, constants, constant_start = _cut_constants(text, bounds)
        first, number = distinct_texts(shapes)
        numbers = [self._template(text_at(shapes, shape)) for shape in breathing(first.tolist())]
        template_of = np.array(numbers, np.int32)[number]
        bound = np.flatnonzero(template_of != NO_TEMPLATE)
        templates, words = np.array(self._templates, TEMPLATE), np.array(self._words, np.int32)
        own_tests, first_test = np.array(self._tests, TEMPLATE_TEST), self._vocabulary.n_tests
        tests, records = _bind(
            text, constants, constant_start, bound, template_of[bound], templates, words, own_tests, first_test
        )
        self._vocabulary.add_tests(tests)
        codes = np.full(len(bounds), UNBOUND, np.int32)
        codes[bound] = (self._vocabulary.add_records(records) + np.arange(len(bound))) * 4
        codes[bound] += templates["flags"][template_of[bound]]
        return codes

    def _template(self, shape: bytes) -> int:
        number = self._numbers.get(shape)
        if number is None:
            number = self._numbers[shape] = self._new_template(shape)
        return number

    def _new_template(self, shape: bytes) -> int:
        text, constants = _with_constants(shape.decode(errors="surrogatepass"))
        read = self._read_step(text) if constants else None
        if read is None:
            return NO_TEMPLATE
        step, must_be_last = read
        tests: list[ValueTest] = []
        program = write_program(step.condition, _numbering(tests)) if step.condition != TRUE else ()
        meanings = _meanings(constants)
        bound = [meanings.get(test.constant) for test in tests]
        if sorted(number for number, _ in filter(None, bound)) != list(range(len(constants))):
            return NO_TEMPLATE
        element = self._vocabulary.name(step.name)
        own, leaves = self._numbered(element, tests, bound)
        n_words, n_tests = len(self._words), len(self._tests)
        self._words += renumbered(program, leaves)
        self._tests += own
        flags = 2 * step.descendant + must_be_last
        self._templates.append((element, flags, n_words, len(self._words), n_tests, len(self._tests)))
        return len(self._templates) - 1

    def _numbered(
        self, element: int, tests: list[ValueTest], bound: list[Meaning | None]
    ) -> tuple[list[tuple[int, ...]], dict[int, int]]:
        """The template's own tests, which take a constant of the piece, and the number of each test in its program."""
        own: list[tuple[int, ...]] = []
        leaves: dict[int, int] = {}
        for test, meaning in zip(tests, bound, strict=True):
            if meaning is None:
                leaves[len(leaves)] = self._vocabulary.test(element, test)
            else:
                leaves[len(leaves)] = OWN_TEST + len(own)
                own.append((self._vocabulary.subject(element, test), test.operation, *meaning))
        return own, leaves


def _with_constants(shape: str) -> tuple[str, list[str | float]]:
    """The shape as an expression again, with constants that are like no other."""
    parts: list[str] = []
    constants: list[str | float] = []
    for letter in shape:
        if letter == chr(TEXT):
            constants.append(f"{FIRST_LETTER}{len(constants)}")
            parts.append(f"'{constants[-1]}'")
        elif letter == chr(NUMBER):
            constants.append(float(FIRST_NUMBER + len(constants)))
            parts.append(f"{constants[-1]:.0f}")
        else:
            parts.append(letter)
    return "".join(parts), constants


def _meanings(constants: list[str | float]) -> dict[str | float | None, Meaning]:
    """For what a constant may have become in a value test: which it is, and its sign there."""
    meanings: dict[str | float | None, Meaning] = {constant: (i, 1) for i, constant in enumerate(constants)}
    return meanings | {-constant: (i, -1) for i, constant in enumerate(constants) if isinstance(constant, float)}


def _numbering(tests: list[ValueTest]) -> Callable[[Combination], int]:
    """A function that appends a test to `tests` and returns its place."""

    def number(test: Combination) -> int:
        assert isinstance(test, ValueTest)
        tests.append(test)
        return len(tests) - 1

    return number


@builder
def _cut_constants(text, bounds):
    """The shape of each piece, and its constants; a piece without constants, or with an odd one, has no shape."""
    n_bytes = 0
    for piece in range(len(bounds)):
        n_bytes += bounds[piece, 1] - bounds[piece, 0]
    shapes = Texts(np.zeros(n_bytes + 1, np.uint8), np.zeros(len(bounds) + 1, np.int64))
    constants = np.zeros(n_bytes // 2 + 1, CONSTANT)
    constant_start = np.zeros(len(bounds) + 1, np.int64)
    for piece in range(len(bounds)):
        start, first = shapes.start[piece], constant_start[piece]
        end, last = _cut_piece(text, bounds[piece, 0], bounds[piece, 1], shapes.content, start, constants, first)
        has_shape = last > first and bounds[piece, 1] - bounds[piece, 0] <= MAX_PIECE_BYTES
        shapes.start[piece + 1] = end if has_shape else start
        constant_start[piece + 1] = last if has_shape else first
    return shapes, constants, constant_start


@kernel
def _cut_piece(text, i, end, shape, n_bytes, constants, n_constants):
    """Write the shape of one piece and its constants; return where both end, or no constants if one is odd."""
    start, first_constant = i, n_constants
    while i < end:
        letter, kind, after = text[i], 0, i + 1
        if letter == ord("'") or letter == ord('"'):
            kind, after = TEXT, _text_end(text, i, end)
        elif ZERO <= letter <= NINE and _may_start_number(text, start, i):
            kind, after = NUMBER, _number_end(text, i, end)
        if after < 0 or (letter < BLANK and letter not in BLANKS):
            return n_bytes, first_constant
        if kind == 0 or (kind == TEXT and after == i + EMPTY_TEXT_BYTES):
            for j in range(i, after):
                shape[n_bytes] = text[j]
                n_bytes += 1
        else:
            quote = 1 if kind == TEXT else 0
            constant = constants[n_constants]
            constant.kind, constant.start, constant.end = kind, i + quote, after - quote
            n_constants += 1
            shape[n_bytes] = kind
            n_bytes += 1
        i = after
    return n_bytes, n_constants


@kernel
def _text_end(text, i, end):
    """The end of the text that a quote opens, -1 if it is odd."""
    for j in range(i + 1, end):
        if text[j] == text[i]:
            return j + 1
        if (text[j] < BLANK and text[j] not in BLANKS) or text[j] in ODD_LEADS:
            return -1
    return -1


@kernel
def _may_start_number(text, start, i):
    """Whether a digit must start a token: not in a name, nor within a number."""
    before = i - 1
    if before > start and text[before] == MINUS:
        before -= 1
    return before > start and text[before] in BEFORE_NUMBER


@kernel
def _number_end(text, i, end):
    """The end of the number that starts here; -1 if something odd stands behind it."""
    while i < end and ZERO <= text[i] <= NINE:
        i += 1
    if i < end and text[i] == POINT:
        i += 1
        while i < end and ZERO <= text[i] <= NINE:
            i += 1
    return i if i == end or text[i] in AFTER_NUMBER else -1


@builder
def _bind(text, constants, constant_start, bound, template_of, templates, words, own_tests, first_test):
    """The tests and records of the bound pieces."""
    n_tests = n_words = n_bytes = 0
    for i in range(len(bound)):
        template = templates[template_of[i]]
        n_tests += template.test_end - template.test_start
        n_words += template.word_end - template.word_start + 1
        for j in range(constant_start[bound[i]], constant_start[bound[i] + 1]):
            n_bytes += constants[j].end - constants[j].start
    tests = ValueTests(
        np.empty(n_tests, np.int32),
        np.empty(n_tests, np.int32),
        np.empty(n_tests, np.float64),
        Texts(np.empty(n_bytes + 1, np.uint8), np.zeros(n_tests + 1, np.int64)),
    )
    records = Rows(np.empty(n_words, np.int32), np.zeros(len(bound) + 1, np.int64))
    n_tests = 0
    for i in range(len(bound)):
        template, first = templates[template_of[i]], first_test + n_tests
        for j in range(template.test_start, template.test_end):
            constant = constants[constant_start[bound[i]] + own_tests[j].constant]
            _bind_test(text, constant, own_tests[j], tests, n_tests)
            n_tests += 1
        place = records.start[i]
        records.values[place] = template.name
        for j in range(template.word_start, template.word_end):
            place += 1
            records.values[place] = words[j] if words[j] < OWN_TEST else words[j] - OWN_TEST + first
        records.start[i + 1] = place + 1
    return tests, records


@kernel
def _bind_test(text, constant, own_test, tests, number):
    tests.subjects[number], tests.operations[number] = own_test.subject, own_test.operation
    tests.numbers[number] = np.nan
    end = tests.texts.start[number]
    if constant.kind == NUMBER:
        tests.numbers[number] = own_test.sign * parse_number(text, constant.start, constant.end)
    else:
        for i in range(constant.start, constant.end):
            tests.texts.content[end] = text[i]
            end += 1
    tests.texts.start[number + 1] = end
