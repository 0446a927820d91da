"""The meaning of an XPath expression as a tree, and the tree as text again.

    //a[@x = '1']/b | c
                      Binary('|')
            ┌─────────────┴────────────┐
    Path(absolute)                    Path
      descendant-or-self::node()        child::c
      child::a
        [Binary('=', Path(attribute::x), Literal('1'))]
      child::b

Nodes are frozen, hashable and equal by structure: how a name test or a number was spelled is kept
for `render` but takes no part in equality. The tree holds no abbreviations (`//`, `@`, `.`, `..`
are steps like any other) and no parentheses. `or`, `and` and `|` do not care how they are grouped,
so `chain` groups them as a balanced tree: a thousand alternatives are ten levels deep, not a thousand.

`render` writes an expression back, abbreviated where XPath allows it. For every expression that
`parser.parse` returns, `parse(render(expression), namespaces) == expression`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from math import inf
from typing import Literal as OneOf

__all__ = [
    "ANY_NAME",
    "AnyName",
    "Binary",
    "Call",
    "Expression",
    "Filter",
    "KindTest",
    "Literal",
    "NameTest",
    "Negate",
    "NodeTest",
    "Number",
    "Path",
    "Step",
    "chain",
    "operands",
    "render",
    "render_step",
]

PRECEDENCE = {
    "or": 1,
    "and": 2,
    **dict.fromkeys(("=", "!="), 3),
    **dict.fromkeys(("<", "<=", ">", ">="), 4),
    **dict.fromkeys(("+", "-"), 5),
    **dict.fromkeys(("*", "div", "mod"), 6),
    "|": 8,
}
"""How strongly each operator binds. Unary minus stands between `*` and `|`."""

UNARY = 7
PRIMARY = 9
ASSOCIATIVE = frozenset({"or", "and", "|"})

MAX_FRACTION_DIGITS = 20
LARGEST_POWER = 308


@dataclass(frozen=True, slots=True)
class Literal:
    value: str


@dataclass(frozen=True, slots=True)
class Number:
    """A number literal: its double, and its spelling in case no shorter one gives the same double."""

    value: float
    spelling: str = field(default="", compare=False)

    @classmethod
    def read(cls, spelling: str) -> "Number":
        """Return the number that libxml2 makes of `spelling`.

        It adds digits up in a double and takes at most twenty digits of a fraction after its leading
        zeros. So do we, in the same order, because a correctly rounded double would differ in the last bit.
        """
        whole, _, decimals = spelling.partition(".")
        n_zeros = len(decimals) - len(decimals.lstrip("0"))
        decimals = decimals[: n_zeros + MAX_FRACTION_DIGITS]
        scale = 10.0 ** len(decimals) if len(decimals) <= LARGEST_POWER else inf
        return cls(_add_up(whole) + _add_up(decimals) / scale, spelling)


@dataclass(frozen=True, slots=True)
class Negate:
    operand: "Expression"


@dataclass(frozen=True, slots=True)
class Binary:
    operator: str
    left: "Expression"
    right: "Expression"


@dataclass(frozen=True, slots=True)
class Call:
    function: str
    arguments: tuple["Expression", ...]


@dataclass(frozen=True, slots=True)
class AnyName:
    """The test `*`: any name in any namespace."""


@dataclass(frozen=True, slots=True)
class NameTest:
    """`n` is NameTest(None, "n"), `p:n` is NameTest(uri, "n", "p") and `p:*` is NameTest(uri, None, "p")."""

    namespace: str | None
    local: str | None
    prefix: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class KindTest:
    """`node()`, `text()`, `comment()`, or `processing-instruction()` with or without a target."""

    kind: OneOf["node", "text", "comment", "processing-instruction"]
    target: str | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a path; `axis` is always spelled out, as in "child"."""

    axis: str
    test: "NodeTest"
    predicates: tuple["Expression", ...] = ()


@dataclass(frozen=True, slots=True)
class Path:
    """Steps from the document node (`absolute`), from each node of `start`, or from the context node."""

    absolute: bool
    steps: tuple[Step, ...]
    start: "Expression | None" = None


@dataclass(frozen=True, slots=True)
class Filter:
    """A node-set with predicates that count over the whole set, as in `(//a)[1]`."""

    primary: "Expression"
    predicates: tuple["Expression", ...]


Expression = Literal | Number | Negate | Binary | Call | Path | Filter
NodeTest = AnyName | NameTest | KindTest

ANY_NAME = AnyName()
ANY_NODE = KindTest("node")
SELF = Step("self", ANY_NODE)
PARENT = Step("parent", ANY_NODE)
DESCENDANTS = Step("descendant-or-self", ANY_NODE)
ROOT = Path(True, ())


def chain(operator: str, parts: Sequence[Expression]) -> Expression:
    """Join parts by `or`, `and` or `|`: the same tree however the parts were grouped before."""
    return _balance(operator, [leaf for part in parts for leaf in operands(operator, part)])


def operands(operator: str, expression: Expression) -> list[Expression]:
    """Return what `operator` joins in `expression`: `a or b or c` gives a, b and c, and `a` gives a."""
    if isinstance(expression, Binary) and expression.operator == operator:
        return operands(operator, expression.left) + operands(operator, expression.right)
    return [expression]


def render(expression: Expression) -> str:
    """Return the expression as XPath text.

    >>> render(Path(True, (DESCENDANTS, Step("child", NameTest(None, "a"), (Number(1.0),)))))
    '//a[1]'
    """
    match expression:
        case Literal(value):
            return _quote(value)
        case Number():
            return _spell(expression)
        case Negate(operand):
            return "-" + _operand(operand, UNARY)
        case Binary():
            return _render_binary(expression)
        case Call(function, arguments):
            return f"{function}({', '.join(map(render, arguments))})"
        case Filter(primary, predicates):
            return _primary(primary) + _brackets(predicates)
        case Path():
            return _render_path(expression)


def render_step(step: Step) -> str:
    """Return one step as XPath text, without the slash before it.

    >>> render_step(Step("attribute", NameTest(None, "x")))
    '@x'
    """
    if step in (SELF, PARENT):
        return "." if step == SELF else ".."
    axis = {"child": "", "attribute": "@"}.get(step.axis, f"{step.axis}::")
    return axis + _render_test(step.test) + _brackets(step.predicates)


def _add_up(digits: str) -> float:
    value = 0.0
    for digit in digits:
        value = value * 10.0 + int(digit)
    return value


def _balance(operator: str, parts: Sequence[Expression]) -> Expression:
    if len(parts) == 1:
        return parts[0]
    middle = (len(parts) + 1) // 2
    return Binary(operator, _balance(operator, parts[:middle]), _balance(operator, parts[middle:]))


def _render_binary(binary: Binary) -> str:
    strength = PRECEDENCE[binary.operator]
    regroups = binary.operator in ASSOCIATIVE
    right = _operand(binary.right, strength if regroups else strength + 1)
    return f"{_operand(binary.left, strength)} {binary.operator} {right}"


def _render_path(path: Path) -> str:
    text = "" if path.start is None else _start(path.start)
    slash = "/" if path.absolute or path.start is not None else ""
    for step_id, step in enumerate(path.steps, 1):
        if step == DESCENDANTS and slash == "/" and step_id < len(path.steps):
            slash = "//"
        else:
            text += slash + render_step(step)
            slash = "/"
    return text or slash


def _render_test(test: NodeTest) -> str:
    match test:
        case AnyName():
            return "*"
        case KindTest(kind, target):
            return f"{kind}({'' if target is None else _quote(target)})"
        case NameTest(namespace, local, prefix):
            return (f"{prefix}:" if namespace else "") + (local or "*")


def _operand(expression: Expression, least: int) -> str:
    return render(expression) if _strength(expression) >= least else f"({render(expression)})"


def _strength(expression: Expression) -> int:
    match expression:
        case Binary(operator):
            return PRECEDENCE[operator]
        case Negate():
            return UNARY
        case Path(True, ()):
            return 0  # In `/ or a` the word after the slash is read as a name.
        case _:
            return PRIMARY


def _primary(expression: Expression) -> str:
    return render(expression) if isinstance(expression, Call) else f"({render(expression)})"


def _start(expression: Expression) -> str:
    return render(expression) if isinstance(expression, Filter) else _primary(expression)


def _brackets(predicates: tuple[Expression, ...]) -> str:
    return "".join(f"[{render(predicate)}]" for predicate in predicates)


def _quote(value: str) -> str:
    quote = '"' if "'" in value else "'"
    if quote in value:
        raise ValueError(f"XPath has no literal that holds both kinds of quotes: {value!r}")
    return f"{quote}{value}{quote}"


def _spell(number: Number) -> str:
    """Return the shortest digits if they are read back as the same double, else the original ones."""
    if number.value == inf:
        return number.spelling or "9" * (LARGEST_POWER + 2)
    shortest = format(Decimal(repr(number.value)), "f").removesuffix(".0")
    return shortest if Number.read(shortest) == number else number.spelling or shortest
