"""Expressions to conjunctions of literals: what must hold together, in how many ways?

    a > 1 AND NOT (b IN (2, 3) AND c)    ──▶    a > 1, every b not in {2, 3}
                                                a > 1, every c = FALSE

NOT is pushed down to the atoms, then AND is multiplied out over OR. A list (IN) or a hole (<>, NOT IN) is one
literal and multiplies nothing, and neither do alternatives about one attribute: `a = 1 OR a = 2` is a IN (1, 2),
because some value must do in either case. (For AND this would be wrong: another value may satisfy each part.)

Ten choices of two are a thousand conjunctions, so there is a limit. Beyond it the form is not `exact`: its
conjunctions are only necessary, found by leaving out parts of an AND, and `formula` has the last word.

    (a OR b) AND (c OR d) AND … AND z = 1    ──▶    conjunctions ((z = 1,),)    formula AllOf(AnyOf(a, b), …, z = 1)

If nothing is left that would be necessary, the one conjunction is empty: every event is a candidate.
"""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from boolmatch.expression import And, Expression, Not, Or
from boolmatch.predicates import Literal, Predicate, ValueType, literal
from boolmatch.ranges import union

__all__ = ["AllOf", "AnyOf", "Formula", "NormalForm", "normalize"]

LIMIT = 64
"""The most conjunctions of one expression."""

MAX_LITERALS = 4096
"""The most literals in all, of an expression with several conjunctions."""


@dataclass(frozen=True, slots=True)
class AllOf:
    """Holds when every part does."""

    parts: tuple["Formula", ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Holds when at least one part does."""

    parts: tuple["Formula", ...]


Formula = AllOf | AnyOf | Literal
Conjunction = tuple[int, ...]

TRUE = AllOf(())
FALSE = AnyOf(())


@dataclass(frozen=True, slots=True)
class NormalForm:
    """Conjunctions of which one must hold; unless they are `exact`, the formula must hold too."""

    conjunctions: tuple[tuple[Literal, ...], ...]
    exact: bool
    formula: Formula | None = None


def normalize(expression: Expression, limit: int = LIMIT) -> NormalForm:
    """Return the conjunctions of an expression, at most `limit` of them.

    >>> from boolmatch.parser import parse
    >>> [[one.attribute for one in conjunction] for conjunction in normalize(parse("a AND (b OR c)")).conjunctions]
    [['a', 'b'], ['a', 'c']]
    """
    formula = to_formula(expression, True)
    multiplier = _Multiplier(limit)
    alternatives = multiplier.alternatives(formula)
    conjunctions = multiplier.spelled(alternatives.conjunctions)
    return NormalForm(conjunctions, alternatives.exact, None if alternatives.exact else formula)


# ── NOT pushed down ──


def to_formula(expression: Expression, positive: bool) -> Formula:
    """Return what says that the expression is TRUE, or with positive=False that it is FALSE."""
    match expression:
        case Not(part):
            return to_formula(part, not positive)
        case And(parts) | Or(parts):
            join = all_of if isinstance(expression, And) == positive else any_of
            return join([to_formula(part, positive) for part in parts])
        case _:
            found = literal(expression, positive)
            return FALSE if isinstance(found, Predicate) and not found.ranges else found


def all_of(parts: Sequence[Formula]) -> Formula:
    """The conjunction, flattened, without repeated literals and constants."""
    if FALSE in parts:
        return FALSE
    flat = _distinct(leaf for part in parts for leaf in (part.parts if isinstance(part, AllOf) else (part,)))
    return flat[0] if len(flat) == 1 else AllOf(tuple(flat))


def any_of(parts: Sequence[Formula]) -> Formula:
    """The disjunction, flattened, without repeated literals and constants, one literal an attribute if it can be."""
    if TRUE in parts:
        return TRUE
    flat = [leaf for part in parts for leaf in (part.parts if isinstance(part, AnyOf) else (part,))]
    flat = _distinct(_merged(flat))
    return flat[0] if len(flat) == 1 else AnyOf(tuple(flat))


def _distinct(parts: Iterable[Formula]) -> list[Formula]:
    """Leave out literals that came before. Larger parts are not compared: each level would do it again."""
    return list({id(part) if isinstance(part, AllOf | AnyOf) else part: part for part in parts}.values())


def _merged(parts: list[Formula]) -> list[Formula]:
    """Join the predicates that ask for some value of one attribute and type; they come where the first one was."""
    groups: dict[object, list[Formula]] = {}
    for part in parts:
        groups.setdefault(_asks_for(part) or id(part), []).append(part)
    return [group[0] if len(group) == 1 else _union_of(group) for group in groups.values()]


def _asks_for(part: Formula) -> tuple[str, ValueType] | None:
    """The attribute and type of which a predicate asks for some value in its ranges; None if it asks for more."""
    if not isinstance(part, Predicate) or part.every or part.like is not None:
        return None
    value_type = part.ranges[0].type
    return None if value_type in (ValueType.NULL, ValueType.ANY) else (part.attribute, value_type)


def _union_of(parts: list[Formula]) -> Predicate:
    predicates = [part for part in parts if isinstance(part, Predicate)]
    return Predicate(predicates[0].attribute, union(one for predicate in predicates for one in predicate.ranges))


# ── AND multiplied out ──


@dataclass(frozen=True, slots=True)
class _Alternatives:
    """Conjunctions of numbered literals of which one must hold, and whether that is enough."""

    conjunctions: list[Conjunction]
    exact: bool


class _Multiplier:
    """Multiplies formulas out. Literals are numbered, since to compare a long list again and again takes long."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._numbers: dict[Literal, int] = {}

    def spelled(self, conjunctions: list[Conjunction]) -> tuple[tuple[Literal, ...], ...]:
        literals = list(self._numbers)
        return tuple(tuple(literals[number] for number in conjunction) for conjunction in conjunctions)

    def alternatives(self, formula: Formula) -> _Alternatives:
        if isinstance(formula, AnyOf):
            return self._added(formula.parts)
        if isinstance(formula, AllOf):
            return self._multiplied([self.alternatives(part) for part in formula.parts])
        return _Alternatives([(self._numbers.setdefault(formula, len(self._numbers)),)], True)

    def _added(self, parts: Sequence[Formula]) -> _Alternatives:
        conjunctions: list[Conjunction] = []
        exact = True
        for part in parts:
            found = self.alternatives(part)
            conjunctions = _shortest([*conjunctions, *found.conjunctions])
            exact &= found.exact
            if len(conjunctions) > self._limit:
                return _Alternatives([()], False)
        return _Alternatives(conjunctions, exact)

    def _multiplied(self, parts: list[_Alternatives]) -> _Alternatives:
        """What every part needs in any case, combined with each choice that some of them leave."""
        certain = _joined(part.conjunctions[0] for part in parts if len(part.conjunctions) == 1)
        choices = sorted((part.conjunctions for part in parts if len(part.conjunctions) != 1), key=len)
        product = self._product(certain, choices)
        if product is None:
            return _Alternatives([certain] if certain else choices[0], False)
        return _Alternatives(product, all(part.exact for part in parts))

    def _product(self, certain: Conjunction, choices: list[list[Conjunction]]) -> list[Conjunction] | None:
        product = [certain]
        for conjunctions in choices:
            if len(product) * len(conjunctions) > self._limit:
                return None
            product = _shortest([_joined(pair) for pair in itertools.product(product, conjunctions)])
        return product if len(product) == 1 or sum(map(len, product)) <= MAX_LITERALS else None


def _joined(conjunctions: Iterable[Conjunction]) -> Conjunction:
    return tuple(dict.fromkeys(itertools.chain.from_iterable(conjunctions)))


def _shortest(conjunctions: list[Conjunction]) -> list[Conjunction]:
    """Leave out conjunctions that contain another one: when they hold, so does that."""
    kept: dict[frozenset[int], Conjunction] = {}
    for conjunction in sorted(conjunctions, key=len):
        literals = frozenset(conjunction)
        if not any(shorter <= literals for shorter in kept):
            kept[literals] = conjunction
    return list(kept.values())
