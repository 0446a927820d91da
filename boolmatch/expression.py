"""The meaning of a Boolean expression as a tree, and the tree as text again.

    price > 100 AND NOT symbol IN ('IBM', 'HP') OR halted
                                Or
                 ┌───────────────┴──────────────┐
                And                      Comparison('halted', '=', True)
       ┌─────────┴──────────┐
    Comparison             Not
    ('price', '>', 100.0)   └─ In('symbol', ('IBM', 'HP'))

Nodes are frozen, hashable and equal by structure. Chains are flat: `all_of` and `any_of` dissolve an And in
an And, and `negation` a Not in a Not, so the tree is no deeper than AND, OR and NOT really alternate.
`TRUE` as a condition is And(()) and `FALSE` is Or(()). A constant stands right of its attribute (`100 < price`
is `price > 100`), numbers are doubles, and `!=` is `<>`.

`render` writes an expression back: for each one that `parser.parse` returns, `parse(render(expression))` is
equal to it.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from boolmatch.lexer import KEYWORDS, NAME

__all__ = [
    "And",
    "Atom",
    "Between",
    "Comparison",
    "Constant",
    "Expression",
    "In",
    "IsNull",
    "Like",
    "Not",
    "Or",
    "Within",
    "XPathAtom",
    "all_of",
    "any_of",
    "negation",
    "render",
]

Constant = str | float | bool

PLAIN_NAME = re.compile(NAME)
OR, AND, NOT, ATOM = range(4)


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """`attribute operator constant`, the operator one of = <> < <= > >=."""

    attribute: str
    operator: str
    constant: Constant

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Comparison) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[object, ...]:
        """What is compared: Python takes True for 1.0, and the language does not."""
        return self.attribute, self.operator, type(self.constant), self.constant


@dataclass(frozen=True, slots=True)
class Between:
    attribute: str
    low: str | float
    high: str | float


@dataclass(frozen=True, slots=True)
class In:
    attribute: str
    constants: tuple[str | float, ...]


@dataclass(frozen=True, slots=True)
class Like:
    attribute: str
    pattern: str
    escape: str | None = None


@dataclass(frozen=True, slots=True)
class IsNull:
    attribute: str


@dataclass(frozen=True, slots=True)
class Within:
    """The point is in the polygon or on its boundary; `polygon` is WKT as `polygons.read_polygon` writes it."""

    attribute: str
    polygon: str


@dataclass(frozen=True, slots=True)
class XPathAtom:
    """Decided by someone else; `column` is where its text starts in the expression, behind the quote."""

    text: str
    column: int = field(default=1, compare=False)


@dataclass(frozen=True, slots=True)
class And:
    parts: tuple["Expression", ...]


@dataclass(frozen=True, slots=True)
class Or:
    parts: tuple["Expression", ...]


@dataclass(frozen=True, slots=True)
class Not:
    part: "Expression"


Atom = Comparison | Between | In | Like | IsNull | Within | XPathAtom
Expression = Atom | And | Or | Not


def all_of(parts: Iterable[Expression]) -> Expression:
    """Join parts by AND: the same tree however they were grouped before."""
    flat = [leaf for part in parts for leaf in (part.parts if isinstance(part, And) else (part,))]
    return flat[0] if len(flat) == 1 else And(tuple(flat))


def any_of(parts: Iterable[Expression]) -> Expression:
    """Join parts by OR: the same tree however they were grouped before."""
    flat = [leaf for part in parts for leaf in (part.parts if isinstance(part, Or) else (part,))]
    return flat[0] if len(flat) == 1 else Or(tuple(flat))


def negation(part: Expression) -> Expression:
    """The opposite, with a double negation undone."""
    return part.part if isinstance(part, Not) else Not(part)


def render(expression: Expression) -> str:
    """Return the expression as text.

    >>> render(Not(And((Comparison("odd name", ">", 5.0), In("b", ("it's", "x"))))))
    'NOT ("odd name" > 5 AND b IN (\\'it\\'\\'s\\', \\'x\\'))'
    """
    match expression:
        case And(parts):
            return " AND ".join([_operand(part, NOT) for part in parts]) or "TRUE"
        case Or(parts):
            return " OR ".join([_operand(part, AND) for part in parts]) or "FALSE"
        case Not(part):
            return f"NOT {_operand(part, ATOM)}"
        case _:
            return _render_atom(expression)


def _operand(expression: Expression, least: int) -> str:
    return render(expression) if _strength(expression) >= least else f"({render(expression)})"


def _strength(expression: Expression) -> int:
    match expression:
        case And(()) | Or(()):
            return ATOM
        case Or():
            return OR
        case And():
            return AND
        case Not():
            return NOT
        case _:
            return ATOM


def _render_atom(atom: Atom) -> str:
    if isinstance(atom, XPathAtom):
        return f"XPATH {_quote(atom.text)}"
    name = _render_name(atom.attribute)
    match atom:
        case Comparison(_, operator, constant):
            return f"{name} {operator} {_render_constant(constant)}"
        case Between(_, low, high):
            return f"{name} BETWEEN {_render_constant(low)} AND {_render_constant(high)}"
        case In(_, constants):
            return f"{name} IN ({', '.join(map(_render_constant, constants))})"
        case Like(_, pattern, escape):
            return f"{name} LIKE {_quote(pattern)}" + ("" if escape is None else f" ESCAPE {_quote(escape)}")
        case IsNull():
            return f"{name} IS NULL"
        case Within(_, polygon):
            return f"WITHIN({name}, {_quote(polygon)})"


def _render_name(name: str) -> str:
    if PLAIN_NAME.fullmatch(name) and name.upper() not in KEYWORDS:
        return name
    return '"' + name.replace('"', '""') + '"'


def _render_constant(constant: Constant) -> str:
    if isinstance(constant, bool):
        return str(constant).upper()
    return _quote(constant) if isinstance(constant, str) else repr(constant).removesuffix(".0")


def _quote(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
