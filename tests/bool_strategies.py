"""Random Boolean expressions and events that have something to say to each other.

Both are made of a few names and constants, so that matches are frequent and constants meet their neighbours:

    expressions()      any tree that the parser could have returned; `render` makes it text
    atoms()            one condition
    events()           {"a": 1.5, "b": {"x", 2}, "odd name": Interval(0, 2), "c": None}
    decisions()        which XPATH atoms are true
    simple_texts()     conjunctions of comparisons as text, spelled in many ways, some of them hardly a conjunction
    polygon_texts()    a few areas as WKT

Strings are odd on purpose: prefixes of each other, wildcards, quotes, the ends of Unicode, NUL.
"""

import operator
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from boolmatch.expression import (
    And,
    Between,
    Comparison,
    Expression,
    In,
    IsNull,
    Like,
    Or,
    Within,
    XPathAtom,
    all_of,
    any_of,
    negation,
)
from boolmatch.polygons import read_polygon
from boolmatch.values import Interval, Point

NAMES = ("a", "b", "c", "a.b", "$x_1", "é", "odd name", 'say "so"', "in")
NUMBERS = (0.0, 1.0, 2.0, 3.0, -1.0, 0.5, 1.5, 2.5, 1e3, -2.5e-3, 0.1, 2.0**53, 1e300)
STRINGS = (
    *("a", "b", "ab", "abc", "abd", "", "A", "aé", "é", "a%", "a_", "%", "_", "it's", "a\\b", "a\0", "a\0b"),
    *("\ud7ff", "\ue000", "\ud7ffa", "\U0010ffff", "\U0010ffff\U0010ffff", "a\U0010ffff", "名", "😀", "1", "TRUE"),
)
COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")
PATTERN_PIECES = ("a", "b", "%", "_", "a", "%", "é", "\U0010ffff", "\ud7ff", "'", "\\", "c", "\0", "\n")
ESCAPES = ("!", "\\", "a", "%", "_", "é")
XPATHS = ("//a", "//b[@x='1']", "count(//a) > 1")
COORDINATES = (0, 1, 2, 4, -1, 0.5, 1.5, 3.999)
POLYGONS = (
    "POLYGON((0 0, 4 0, 4 4, 0 4, 0 0))",
    "POLYGON((0 0, 4 0, 4 4, 0 4, 0 0), (1 1, 1 2, 2 2, 2 1, 1 1))",
    "polygon ((0 0, 1 2, 2 0, 0 0))",
    "MULTIPOLYGON(((0 0, 1 0, 1 1, 0 0)), ((2 2, 4 2, 4 4, 2 2)))",
)

names = st.sampled_from([*NAMES[:3] * 3, *NAMES[3:]])
numbers = st.sampled_from(NUMBERS)
strings = st.sampled_from(STRINGS)


def polygon_texts() -> st.SearchStrategy[str]:
    """Well-known text of a few areas that overlap."""
    return st.sampled_from(POLYGONS)


# Expressions --------------------------------------------------------------------------------------


@st.composite
def likes(draw: st.DrawFn) -> Like:
    """A pattern whose escapes, if it has any, are in order."""
    escape = draw(st.none() | st.sampled_from(ESCAPES))
    pieces = draw(st.lists(st.sampled_from(PATTERN_PIECES), max_size=6))
    if escape is None:
        return Like(draw(names), "".join(pieces))
    escaped = st.sampled_from([escape + "%", escape + "_", escape * 2])
    return Like(draw(names), "".join(draw(escaped) if piece in escape + "\\é" else piece for piece in pieces), escape)


def atoms() -> st.SearchStrategy[Expression]:
    """One condition of any kind."""
    return st.one_of(
        st.builds(Comparison, names, st.sampled_from(COMPARISONS), numbers),
        st.builds(Comparison, names, st.sampled_from(COMPARISONS), strings),
        st.builds(Comparison, names, st.sampled_from(COMPARISONS[:2]), st.booleans()),
        st.builds(Between, names, numbers, numbers),
        st.builds(Between, names, strings, strings),
        st.builds(In, names, st.lists(numbers, min_size=1, max_size=5).map(tuple)),
        st.builds(In, names, st.lists(strings, min_size=1, max_size=5).map(tuple)),
        likes(),
        st.builds(IsNull, names),
        st.builds(Within, names, polygon_texts().map(read_polygon)),
        st.builds(XPathAtom, st.sampled_from(XPATHS)),
    )


def expressions(max_leaves: int = 8) -> st.SearchStrategy[Expression]:
    """Conditions joined by AND, OR and NOT, TRUE and FALSE among them."""
    leaves = st.one_of(atoms(), atoms(), atoms(), st.sampled_from([And(()), Or(())]))
    return st.recursive(leaves, _larger, max_leaves=max_leaves)


def _larger(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    parts = st.lists(inner, min_size=2, max_size=4)
    return parts.map(all_of) | parts.map(any_of) | inner.map(negation)


# Events -------------------------------------------------------------------------------------------


def scalars() -> st.SearchStrategy[Any]:
    """One value of any type."""
    near = st.builds(lambda number, step: number + step, numbers, st.sampled_from([0, 0, 1, -1, 0.25]))
    points = st.builds(Point, st.sampled_from(COORDINATES), st.sampled_from(COORDINATES))
    infinite = st.sampled_from([float("inf"), float("-inf"), -0.0, 0])
    whole = st.integers(-2, 4)
    return st.one_of(near, whole, strings, _extended(), st.booleans(), intervals(), points, infinite)


def _extended() -> st.SearchStrategy[str]:
    return st.builds(lambda text, more: text + more, strings, st.sampled_from(["a", "b", "\0", "\U0010ffff", "é", "%"]))


def intervals() -> st.SearchStrategy[Interval]:
    ends = st.sampled_from([*NUMBERS, 0.75, float("inf"), float("-inf")])
    return st.builds(lambda one, other: Interval(min(one, other), max(one, other)), ends, ends)


def several(kinds: tuple[Callable[..., Any], ...] = (list, tuple, set, frozenset)) -> st.SearchStrategy[Any]:
    return st.builds(lambda kind, found: kind(found), st.sampled_from(kinds), st.lists(scalars(), max_size=3))


def events() -> st.SearchStrategy[dict[str, Any]]:
    """Some of the names, each with a value, several values, or None."""
    value = st.one_of(scalars(), scalars(), several(), st.none())
    return st.builds(operator.or_, st.fixed_dictionaries(dict.fromkeys(NAMES[:3], value)), _some(value))


def _some(value: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=dict.fromkeys(NAMES, value))


def decisions() -> st.SearchStrategy[Callable[[str], bool]]:
    """Which XPATH atoms are true."""
    return st.sets(st.sampled_from(XPATHS)).map(lambda chosen: chosen.__contains__)


# Texts of conjunctions ----------------------------------------------------------------------------

SPACES = (" ", " ", " ", "", "  ", "\t", "\n", "\r\n", "\f", "\v", "\xa0")
SIMPLE_NAMES = ("a", "b", "price", "a.b", "$x_1", "_", "A1.2.b", "é", "a.", "a..b", ".a", "in", "And", "x-y", '"q"')
NUMBER_TEXTS = (
    *("0", "1", "5", "-1", "+1", "007", "1.5", ".5", "7.", "-.5", "-0", "1e3", "1E-3", "1.25e+2", "0e0", "0.1"),
    *("999999999999999", "1234567890123456", "9007199254740993", "9007199254740992", "1e22", "1e23", "1e-22"),
    *("123456789012345e22", "0.000000000000000000000001", "1e999", "1e", "1e+", "1.2.3", "--1", "- 1", "5L", "5AND"),
    *("0.30000000000000004", "123456.7890123", "000000000000000000001", "1e0000000001", "0x1F", "-", "."),
)
STRING_TEXTS = (
    "'x'",
    "''",
    "'it''s'",
    "'é'",
    "'a b'",
    "'AND'",
    "'\"'",
    "'😀'",
    "'x",
    "'\0'",
    "'\ud800'",
    "'\t'",
    "'''",
)
OPERATOR_TEXTS = (*COMPARISONS, *COMPARISONS, "!=", "==", "=<", "IS NULL", "")
JOINERS = (*(["AND"] * 6), "and", "And", "OR", "ANDNOT", "AND NOT", "AND (", ")", "")


@st.composite
def simple_texts(draw: st.DrawFn) -> str:
    """Mostly plain conjunctions of comparisons; now and then something that only looks like one."""
    odd_place = draw(st.sampled_from([-1, -1, -1, *range(16)]))
    n_drawn = -1

    def piece(choices: tuple[str, ...], n_usual: int) -> str:
        """One of the first few choices, but at one place of some texts any."""
        nonlocal n_drawn
        n_drawn += 1
        return draw(st.sampled_from(choices if n_drawn == odd_place else choices[:n_usual]))

    text = _comparison(draw, piece)
    for _ in range(draw(st.integers(0, 4))):
        text += piece(SPACES, 3) + piece(JOINERS, 8) + piece(SPACES, 3) + _comparison(draw, piece)
    return draw(st.sampled_from(["", "", " ", "\n"])) + text + piece(("", "", " ", "\t", ";", ")"), 4)


def _comparison(draw: st.DrawFn, piece: Callable[[tuple[str, ...], int], str]) -> str:
    name = piece(SIMPLE_NAMES, 7)
    constants = draw(st.sampled_from([(NUMBER_TEXTS, 16), (STRING_TEXTS, 8)]))
    if draw(st.integers(0, 3)) == 0:
        between = draw(st.sampled_from(["BETWEEN", "between", "Between"]))
        ends = piece(*constants), piece(*constants)
        return f"{name} {between}{piece(SPACES, 3)}{ends[0]}{piece(SPACES, 3)}AND{piece(SPACES, 3)}{ends[1]}"
    return f"{name}{piece(SPACES, 3)}{piece(OPERATOR_TEXTS, 13)}{piece(SPACES, 3)}{piece(*constants)}"
