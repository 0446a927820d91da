"""The core functions of XPath 1.0: how many arguments each takes and what type it gives.

    count( //a )        one argument, a node-set      ──▶  number
    concat('a', @b, 1)  two or more, made strings     ──▶  string
    (//a | //b)[1]      no function, still a node-set ──▶  node-set

Without variables every type is known before any document is, so that `value_type` always answers.
Arguments convert themselves to what a function wants, with one exception: nothing becomes a node-set.
"""

from dataclasses import dataclass
from enum import Enum

from xpathfilter.expression import Binary, Call, Expression, Filter, Literal, Negate, Number, Path

__all__ = ["CORE_FUNCTIONS", "Function", "ValueType", "value_type"]


class ValueType(Enum):
    NODE_SET = "node-set"
    STRING = "string"
    NUMBER = "number"
    BOOLEAN = "boolean"


NODE_SET, STRING, NUMBER, BOOLEAN = ValueType


@dataclass(frozen=True, slots=True)
class Function:
    """`n_most` is None where there may be any number of arguments."""

    name: str
    returns: ValueType
    n_least: int
    n_most: int | None
    takes_node_set: bool = False

    def accepts(self, n_arguments: int) -> bool:
        return self.n_least <= n_arguments and (self.n_most is None or n_arguments <= self.n_most)

    def arity(self) -> str:
        """Return how many arguments there must be, in words.

        >>> CORE_FUNCTIONS["substring"].arity()
        '2 or 3 arguments'
        """
        if self.n_most is None:
            return f"at least {self.n_least} arguments"
        if self.n_most == 0:
            return "no arguments"
        counts = f"{self.n_most}" if self.n_least == self.n_most else f"{self.n_least} or {self.n_most}"
        return f"{counts} argument{'s' if self.n_most > 1 else ''}"


CORE_FUNCTIONS = {
    function.name: function
    for function in (
        Function("last", NUMBER, 0, 0),
        Function("position", NUMBER, 0, 0),
        Function("count", NUMBER, 1, 1, takes_node_set=True),
        Function("id", NODE_SET, 1, 1),
        Function("local-name", STRING, 0, 1, takes_node_set=True),
        Function("namespace-uri", STRING, 0, 1, takes_node_set=True),
        Function("name", STRING, 0, 1, takes_node_set=True),
        Function("string", STRING, 0, 1),
        Function("concat", STRING, 2, None),
        Function("starts-with", BOOLEAN, 2, 2),
        Function("contains", BOOLEAN, 2, 2),
        Function("substring-before", STRING, 2, 2),
        Function("substring-after", STRING, 2, 2),
        Function("substring", STRING, 2, 3),
        Function("string-length", NUMBER, 0, 1),
        Function("normalize-space", STRING, 0, 1),
        Function("translate", STRING, 3, 3),
        Function("boolean", BOOLEAN, 1, 1),
        Function("not", BOOLEAN, 1, 1),
        Function("true", BOOLEAN, 0, 0),
        Function("false", BOOLEAN, 0, 0),
        Function("lang", BOOLEAN, 1, 1),
        Function("number", NUMBER, 0, 1),
        Function("sum", NUMBER, 1, 1, takes_node_set=True),
        Function("floor", NUMBER, 1, 1),
        Function("ceiling", NUMBER, 1, 1),
        Function("round", NUMBER, 1, 1),
    )
}

ARITHMETIC = frozenset({"+", "-", "*", "div", "mod"})


def value_type(expression: Expression) -> ValueType:
    """Return the type of the expression's value, which no document can change.

    >>> value_type(Negate(Literal("7")))
    <ValueType.NUMBER: 'number'>
    """
    match expression:
        case Path() | Filter() | Binary("|"):
            return NODE_SET
        case Literal():
            return STRING
        case Number() | Negate():
            return NUMBER
        case Call(function):
            return CORE_FUNCTIONS[function].returns
        case Binary(operator):
            return NUMBER if operator in ARITHMETIC else BOOLEAN
