"""Atoms to literals: what must be true of an attribute's values, as ranges that an index can find.

    price >= 100           some value in      [100, ∞)
    NOT price >= 100       every value in     (-∞, 100)            and there is one
    size NOT IN (1, 2)     every value in     (-∞, 1) (1, 2) (2, ∞)
    name LIKE 'ab%'        some value in      ['ab', 'ac')
    name LIKE 'ab%c'       some value in      ['ab', 'ac') that also passes the test of the pattern

In three-valued logic an expression is TRUE when an and/or formula over literals holds, once NOT is pushed down to
the atoms: the positive literal of an atom says that the atom is TRUE, the negative one that it is FALSE. A literal
itself holds or does not. It is about values of one type; a value of another type makes the atom neither true nor
false, so it lies in no range.

The ranges of a predicate are sorted, apart from each other and as few as possible. Without any, it never holds.
"""

from dataclasses import dataclass

from boolmatch.expression import Atom, Between, Comparison, Constant, In, IsNull, Like, Within, XPathAtom
from boolmatch.patterns import ANY_RUN, LikeTest, after_prefix, fixed_start, like_test, read_pattern
from boolmatch.ranges import Range, Ranges, ValueType, between, complement, type_of, union

__all__ = ["Decided", "LikeTest", "Literal", "Predicate", "Range", "Ranges", "ValueType", "literal"]


@dataclass(frozen=True, slots=True)
class Predicate:
    """Some value lies in one of the ranges and passes `like`; with `every`, there are values and all of them do.

    An interval lies in a range when some number of it does; with `every`, when all of it does.
    """

    attribute: str
    ranges: Ranges
    every: bool = False
    like: LikeTest | None = None


@dataclass(frozen=True, slots=True)
class Decided:
    """An atom that is decided outside of the index, and whether it must be true or false."""

    atom: Within | XPathAtom
    positive: bool


Literal = Predicate | Decided


def literal(atom: Atom, positive: bool) -> Literal:
    """Return what says that the atom is TRUE, or with positive=False that it is FALSE.

    >>> literal(Comparison("a", ">", 5.0), False).ranges
    (Range(type=<ValueType.NUMBER: 3>, low=None, high=5.0, low_closed=True, high_closed=True),)
    """
    match atom:
        case Within() | XPathAtom():
            return Decided(atom, positive)
        case IsNull(attribute):
            return Predicate(attribute, (Range(ValueType.NULL if positive else ValueType.ANY),))
        case Comparison(attribute, operator, constant):
            return _predicate(attribute, type_of(constant), _compared(operator, constant), positive)
        case Between(attribute, low, high):
            return _predicate(attribute, type_of(low), between(type_of(low), low, high), positive)
        case In(attribute, constants):
            return _predicate(attribute, type_of(constants[0]), _points(constants), positive)
        case Like():
            return _like(atom, positive)


def _predicate(attribute: str, value_type: ValueType, ranges: Ranges, positive: bool) -> Predicate:
    if positive:
        return Predicate(attribute, ranges)
    return Predicate(attribute, complement(value_type, ranges), every=True)


def _compared(operator: str, constant: Constant) -> Ranges:
    value_type = type_of(constant)
    if operator == "<>":
        return complement(value_type, _points((constant,)))
    closed = "=" in operator
    low = None if operator in ("<", "<=") else constant
    high = None if operator in (">", ">=") else constant
    return between(value_type, low, high, closed, closed)


def _points(constants: tuple[Constant, ...]) -> Ranges:
    return union(one for constant in set(constants) for one in between(type_of(constant), constant, constant))


def _like(like: Like, positive: bool) -> Predicate:
    program = read_pattern(like.pattern, like.escape)
    start = fixed_start(program)
    n_wild = len(program) - len(start)
    if n_wild == 0:
        return _predicate(like.attribute, ValueType.STRING, _points((start,)), positive)
    starts = between(ValueType.STRING, start, after_prefix(start), high_closed=False)
    if n_wild == 1 and program[-1] == ANY_RUN:
        return _predicate(like.attribute, ValueType.STRING, starts, positive)
    ranges = starts if positive else complement(ValueType.STRING, ())
    return Predicate(like.attribute, ranges, every=not positive, like=like_test(program, negated=not positive))
