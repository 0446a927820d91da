"""What a subscription is compiled to: a formula over paths that the index can find.

    //quote[@symbol='IBM' and price > 100]/@time  or  /halted

   AnyOf ─┬─ LinearPath ── // quote[ And(@symbol = 'IBM', price > 100, @time) ]
          └─ LinearPath ── / halted

A `LinearPath` is a chain of element steps, each with at most one `Condition` about its element alone: the
part of XPath that position records can hold. A `Plan` says whether its formula decides the subscription
(`exact`) or is only necessary, so that lxml must look at the documents for which the formula holds.

Formulas and conditions are combined with the same three classes, `AllOf`, `AnyOf` and `Not`, built by
`all_of`, `any_of` and `negation`, which fold constants and flatten nesting.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum

__all__ = [
    "ANY_NAME",
    "FALSE",
    "TRUE",
    "AllOf",
    "AnyOf",
    "Combination",
    "ElementName",
    "LinearPath",
    "Not",
    "Operation",
    "PathStep",
    "Plan",
    "Subject",
    "ValueTest",
    "all_of",
    "any_of",
    "negation",
]


class Subject(IntEnum):
    """Which values of an element a test looks at."""

    SELF = 0  # its string-value
    TEXT = 1  # each of its text node children
    ATTRIBUTE = 2
    CHILD = 3  # the string-value of each child element of one name


class Operation(IntEnum):
    """How a test compares. Up to GREATER_EQUAL any value will do; the last two look at the first value."""

    EXISTS = 0
    EQUAL_TEXT = 1
    UNEQUAL_TEXT = 2
    EQUAL = 3
    UNEQUAL = 4
    LESS = 5
    LESS_EQUAL = 6
    GREATER = 7
    GREATER_EQUAL = 8
    CONTAINS = 9
    STARTS_WITH = 10


@dataclass(frozen=True, slots=True)
class ElementName:
    """A test by name: {uri}local, {uri}*, or without a uri a name in no namespace, or * for any name at all."""

    uri: str
    local: str


ANY_NAME = ElementName("", "*")


@dataclass(frozen=True, slots=True)
class ValueTest:
    """One comparison of an element's values with a constant."""

    subject: Subject
    name: ElementName | None
    operation: Operation
    constant: str | float | None = None


@dataclass(frozen=True, slots=True)
class AllOf:
    """True when every part is."""

    parts: tuple["Combination", ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """True when at least one part is."""

    parts: tuple["Combination", ...]


@dataclass(frozen=True, slots=True)
class Not:
    """True when the part is not."""

    part: "Combination"


@dataclass(frozen=True, slots=True)
class PathStep:
    """One step: child or descendant of the step before, a name, and what must hold of the element."""

    descendant: bool
    name: ElementName
    condition: "Combination" = AllOf(())


@dataclass(frozen=True, slots=True)
class LinearPath:
    """Steps from the document node down; it holds when some element is reached by all of them."""

    steps: tuple[PathStep, ...]


Combination = AllOf | AnyOf | Not | ValueTest | LinearPath

TRUE = AllOf(())
FALSE = AnyOf(())


@dataclass(frozen=True, slots=True)
class Plan:
    """A formula, and whether it decides the subscription or only must hold for it."""

    formula: Combination
    exact: bool


def all_of(parts: Iterable[Combination]) -> Combination:
    """The conjunction, flattened, without repetitions and constants."""
    flat: dict[Combination, None] = {}
    for part in parts:
        if part == FALSE:
            return FALSE
        flat.update(dict.fromkeys(part.parts if isinstance(part, AllOf) else (part,)))
    return next(iter(flat)) if len(flat) == 1 else AllOf(tuple(flat))


def any_of(parts: Iterable[Combination]) -> Combination:
    """The disjunction, flattened, without repetitions and constants."""
    flat: dict[Combination, None] = {}
    for part in parts:
        if part == TRUE:
            return TRUE
        flat.update(dict.fromkeys(part.parts if isinstance(part, AnyOf) else (part,)))
    return next(iter(flat)) if len(flat) == 1 else AnyOf(tuple(flat))


def negation(part: Combination) -> Combination:
    """The opposite, with a double negation undone."""
    if part == TRUE:
        return FALSE
    if part == FALSE:
        return TRUE
    return part.part if isinstance(part, Not) else Not(part)
