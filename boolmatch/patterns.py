"""The patterns of LIKE as programs: one number for each character or wildcard.

    'a_%%_b!%' ESCAPE '!'   ──▶   a  ANY_ONE  ANY_ONE  ANY_RUN  b  %

A number is the code point of a character that must stand there, ANY_ONE or ANY_RUN. Wildcards in a row are put in
one order, each ANY_ONE first and at most one ANY_RUN behind them, so that patterns with one meaning have one
program, and whoever runs it has one place to go back to.

Many patterns need no running: without wildcards they are equality, and with only a % at the end they are the range
of strings from the text before it up to the next one that does not start with it.
"""

import itertools
from dataclasses import dataclass

import numpy as np

__all__ = ["ANY_ONE", "ANY_RUN", "LikeTest", "Program", "after_prefix", "fixed_start", "like_test", "read_pattern"]

ANY_ONE = -1
ANY_RUN = -2

FIRST_SURROGATE, LAST_SURROGATE, LAST_CHARACTER = 0xD800, 0xDFFF, 0x10FFFF
ESCAPE = "\\"

Program = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LikeTest:
    """Whether a string is like a pattern, or with `negated` is not; one spelling for one meaning."""

    pattern: str
    escape: str | None
    negated: bool

    def program(self) -> np.ndarray:
        """Return the pattern as int32 numbers: code points, ANY_ONE and ANY_RUN.

        >>> LikeTest("a%_", None, False).program()
        array([97, -1, -2], dtype=int32)
        """
        return np.array(read_pattern(self.pattern, self.escape), np.int32)


def like_test(program: Program, negated: bool) -> LikeTest:
    """Return the test that runs `program`, the pattern spelled with a backslash where it needs an escape."""
    escaped = any(number in (ord("%"), ord("_")) for number in program)
    pattern = "".join(_spell(number, escaped) for number in program)
    return LikeTest(pattern, ESCAPE if escaped else None, negated)


def read_pattern(pattern: str, escape: str | None) -> Program:
    """Return the program of a pattern whose escapes are in order.

    >>> read_pattern("%_a", None)
    (-1, -2, 97)
    """
    wildcards = {"%": ANY_RUN, "_": ANY_ONE}
    numbers: list[int] = []
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            numbers.append(ord(next(characters)))
        else:
            numbers.append(wildcards.get(character, ord(character)))
    return _ordered(numbers)


def fixed_start(program: Program) -> str:
    """Return the text before the first wildcard."""
    return "".join(map(chr, itertools.takewhile(lambda number: number >= 0, program)))


def after_prefix(prefix: str) -> str | None:
    """Return the first string behind all those that start with `prefix`, or None when nothing is behind them.

    >>> after_prefix("abc"), after_prefix("a" + chr(0x10FFFF)), after_prefix("")
    ('abd', 'b', None)
    """
    kept = prefix.rstrip(chr(LAST_CHARACTER))
    if not kept:
        return None
    following = ord(kept[-1]) + 1
    if FIRST_SURROGATE <= following <= LAST_SURROGATE:
        following = LAST_SURROGATE + 1
    return kept[:-1] + chr(following)


def _ordered(numbers: list[int]) -> Program:
    """Put each row of wildcards in order: the ANY_ONEs, then one ANY_RUN."""
    ordered: list[int] = []
    for is_wild, group in itertools.groupby(numbers, lambda number: number < 0):
        row = list(group)
        if is_wild:
            row = [ANY_ONE] * row.count(ANY_ONE) + [ANY_RUN] * (ANY_RUN in row)
        ordered += row
    return tuple(ordered)


def _spell(number: int, escaped: bool) -> str:
    if number < 0:
        return "_" if number == ANY_ONE else "%"
    character = chr(number)
    return ESCAPE + character if escaped and character in ("%", "_", ESCAPE) else character
