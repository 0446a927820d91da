"""Expression text to tree: is it a selector, and what does it say?

    a > 5 AND (b OR NOT c)   ──▶  tokens  ──▶  And(a > 5, Or(b = TRUE, Not(c = TRUE)))

One method for each rule of the grammar. AND, OR, NOT and parentheses are read with a stack of open groups and
not by recursion, so a million parentheses are only slow to look at: what is limited is the depth of the tree.

    (  a  OR  b  AND  (  c  ...        groups:  alternatives []        conjuncts []
                                                alternatives [a]       conjuncts [b]
                                                alternatives []        conjuncts [c]

What could go wrong later is refused here, where a caret can point at it: constants that do not go together,
numbers that no double holds, patterns whose escapes escape nothing, polygons that are none.
"""

import math
import re
from collections.abc import Callable
from typing import NamedTuple, NoReturn

from boolmatch.errors import BooleanSyntaxError
from boolmatch.expression import (
    And,
    Between,
    Comparison,
    Constant,
    Expression,
    In,
    IsNull,
    Like,
    Not,
    Or,
    Within,
    XPathAtom,
    all_of,
    any_of,
    negation,
)
from boolmatch.lexer import KEYWORDS, SURROGATE, Token, tokenize
from boolmatch.polygons import PolygonError, read_polygon

__all__ = ["MAX_DEPTH", "MAX_LENGTH", "parse"]

MAX_LENGTH = 1 << 20
"""The longest expression, in characters."""

MAX_DEPTH = 100
"""The deepest tree, counted in ANDs, ORs and NOTs inside each other.

Whoever walks, compares or prints the tree does so recursively, and Python gives up at 1,000 frames. A chain is one
level however long, and parentheses that change nothing are none.
"""

FLIPPED = {"=": "=", "<>": "<>", "!=": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
COMPARISONS = frozenset(FLIPPED)
ORDERINGS = COMPARISONS - {"=", "<>", "!="}
ARITHMETIC = frozenset("+-*/")
CONSTANT_STARTS = frozenset({"string", "number", "+", "-", "TRUE", "FALSE"})

TRUTHS = {"TRUE": True, "FALSE": False}
TRUTH_CONDITIONS: dict[str, Expression] = {"TRUE": And(()), "FALSE": Or(())}
TYPE_NAMES = {str: "a string", float: "a number"}
CONSTANT_HINTS = {
    "name": "two attributes cannot be compared, and a string stands in single quotes",
    "NULL": "write IS NULL or IS NOT NULL",
    "=": "write = once",
}
UNIT = re.compile("''|.", re.DOTALL)
LAST_EXACT = 2.0**53
MAX_SHOWN = 40

Join = Callable[[list[Expression]], Expression]


def parse(text: str) -> Expression:
    """Return the expression that `text` spells.

    >>> parse("100 < price")
    Comparison(attribute='price', operator='>', constant=100.0)
    """
    if not isinstance(text, str):
        raise TypeError(f"expected a Boolean expression as str, got {type(text).__name__}")
    if len(text) > MAX_LENGTH:
        raise BooleanSyntaxError(text, MAX_LENGTH + 1, f"at most {MAX_LENGTH:,} characters")
    if half := SURROGATE.search(text):
        raise BooleanSyntaxError(text, half.start() + 1, "a character", f"U+{ord(half[0]):04X} is half of one")
    return _Parser(text).whole()


class _Part(NamedTuple):
    """An expression, and how many ANDs, ORs and NOTs are inside each other in it."""

    expression: Expression
    depth: int


class _Group:
    """What stands behind an opening parenthesis, as far as it has been read."""

    __slots__ = ("alternatives", "conjuncts", "negated")

    def __init__(self) -> None:
        self.alternatives: list[_Part] = []
        self.conjuncts: list[_Part] = []
        self.negated = False

    def take(self, part: _Part) -> None:
        """Add one more conjunct, with the NOT that was read before it."""
        self.conjuncts.append(_negated(part) if self.negated else part)
        self.negated = False

    def next_alternative(self) -> None:
        self.alternatives.append(_joined(And, all_of, self.conjuncts))
        self.conjuncts = []

    def whole(self) -> _Part:
        self.next_alternative()
        return _joined(Or, any_of, self.alternatives)


def _negated(part: _Part) -> _Part:
    return _Part(negation(part.expression), part.depth + (-1 if isinstance(part.expression, Not) else 1))


def _joined(kind: type[Expression], join: Join, parts: list[_Part]) -> _Part:
    if len(parts) == 1:
        return parts[0]
    depth = max(part.depth + (not isinstance(part.expression, kind)) for part in parts)
    return _Part(join([part.expression for part in parts]), depth)


class _Parser:
    """Reads tokens from left to right; `token` is the next one to be read."""

    __slots__ = ("_groups", "_position", "_text", "_tokens", "token")

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = tokenize(text)
        self._position = 0
        self._groups = [_Group()]
        self.token = self._tokens[0]

    # ── tokens ──

    def advance(self) -> Token:
        token = self.token
        self._position += 1
        self.token = self._tokens[self._position]
        return token

    def accept(self, kind: str) -> bool:
        if self.token.kind != kind:
            return False
        self.advance()
        return True

    def expect(self, kind: str, expected: str, hint: str = "") -> Token:
        if self.token.kind != kind:
            self.fail(expected, hint)
        return self.advance()

    def fail(self, expected: str, hint: str = "", at: Token | None = None, offset: int = 0) -> NoReturn:
        token = at or self.token
        if token.kind == "unterminated":
            expected, hint = f"a closing {token.text} for the text that starts", ""
        elif token.kind == "unknown":
            hint = f"U+{ord(token.text):04X} has no meaning here"
        raise BooleanSyntaxError(self._text, token.column + offset, expected, hint)

    # ── AND, OR, NOT and parentheses ──

    def whole(self) -> Expression:
        self.operand()
        while self.token.kind in ("AND", "OR"):
            if self.advance().kind == "OR":
                self._groups[-1].next_alternative()
            self.operand()
        if self.token.kind != "end" or len(self._groups) > 1:
            self.fail(self._what_may_follow(), self._why_not_operator())
        whole = self._groups[0].whole()
        self.check_depth(whole)
        return whole.expression

    def operand(self) -> None:
        """Read one condition, the NOTs and opening parentheses before it and the closing ones behind it."""
        while self.token.kind in ("NOT", "("):
            if self.advance().kind == "NOT":
                self._groups[-1].negated ^= True
            else:
                self._groups.append(_Group())
        self._groups[-1].take(_Part(self.condition(), 1))
        while len(self._groups) > 1 and self.token.kind == ")":
            inner = self._groups.pop().whole()
            self.check_depth(inner)
            self._groups[-1].take(inner)
            self.advance()

    def check_depth(self, part: _Part) -> None:
        if part.depth > MAX_DEPTH:
            self.fail(f"at most {MAX_DEPTH} ANDs, ORs and NOTs inside each other")

    def _what_may_follow(self) -> str:
        comparison = "a comparison, " if self._tokens[self._position - 1].kind == "name" else ""
        last = "')'" if len(self._groups) > 1 else "the end"
        return f"{comparison}AND, OR or {last}"

    def _why_not_operator(self) -> str:
        """Return a hint about what stands where only AND, OR or a parenthesis can."""
        before, token = self._tokens[self._position - 1], self.token
        if token.kind in ARITHMETIC:
            return "conditions have no arithmetic"
        if token.kind in COMPARISONS:
            return "an attribute is compared with one constant, without parentheses"
        glued = token.column == before.column + len(before.text)
        if glued and before.kind == "number" and token.kind in ("name", "number"):
            return "a number ends here"
        if before.kind == "name" and token.kind == "name":
            return f"{_shown(token.text)} is no operator"
        return ""

    # ── conditions ──

    def condition(self) -> Expression:
        kind = self.token.kind
        if kind == "name":
            return self.about_attribute(self.name())
        if kind in ("WITHIN", "XPATH"):
            return self.within() if kind == "WITHIN" else self.xpath()
        if kind in CONSTANT_STARTS:
            return self.constant_first()
        return self.fail("a condition", _keyword_hint(self.token))

    def about_attribute(self, attribute: str) -> Expression:
        """Read what is said about an attribute; on its own it is said to be true."""
        if self.token.kind in COMPARISONS:
            return self.comparison(attribute)
        if self.accept("IS"):
            return self.is_null(attribute)
        if self.token.kind != "NOT":
            return self.belongs(attribute) or Comparison(attribute, "=", True)
        self.advance()
        part = self.belongs(attribute)
        return self.fail("BETWEEN, IN or LIKE") if part is None else Not(part)

    def belongs(self, attribute: str) -> Expression | None:
        if self.accept("BETWEEN"):
            return self.between(attribute)
        if self.accept("IN"):
            return In(attribute, self.list())
        return self.like(attribute) if self.accept("LIKE") else None

    def comparison(self, attribute: str) -> Comparison:
        operator = self.advance()
        constant = self.constant()
        self.check_order(operator, constant)
        return Comparison(attribute, FLIPPED[FLIPPED[operator.kind]], constant)

    def constant_first(self) -> Expression:
        """Read `constant operator attribute`, or TRUE or FALSE alone."""
        truth = self.token.kind
        constant = self.constant()
        if self.token.kind not in COMPARISONS:
            return TRUTH_CONDITIONS.get(truth) or self.fail("a comparison")
        operator = self.advance()
        if self.token.kind in CONSTANT_STARTS:
            self.fail("an attribute", "two constants cannot be compared")
        attribute = self.name()
        self.check_order(operator, constant)
        return Comparison(attribute, FLIPPED[operator.kind], constant)

    def check_order(self, operator: Token, constant: Constant) -> None:
        if isinstance(constant, bool) and operator.kind in ORDERINGS:
            self.fail("= or <>", "TRUE and FALSE have no order", at=operator)

    def between(self, attribute: str) -> Between:
        low = self.ordered_constant()
        self.expect("AND", "AND", self._why_not_operator())
        return Between(attribute, low, self.ordered_constant(like=low))

    def list(self) -> tuple[str | float, ...]:
        self.expect("(", "'('")
        constants = [self.ordered_constant()]
        while self.accept(","):
            constants.append(self.ordered_constant(like=constants[0]))
        self.expect(")", "',' or ')'", self._why_not_operator())
        return tuple(constants)

    def like(self, attribute: str) -> Like:
        pattern = self.expect("string", "a pattern in single quotes")
        if not self.accept("ESCAPE"):
            return Like(attribute, _unquoted(pattern))
        escape = _unquoted(self.expect("string", "one character in single quotes"))
        if len(escape) != 1:
            self.fail("one character in single quotes", at=self._tokens[self._position - 1])
        self.check_escapes(pattern, escape)
        return Like(attribute, _unquoted(pattern), escape)

    def check_escapes(self, pattern: Token, escape: str) -> None:
        units = UNIT.findall(pattern.text[1:-1])
        stray = _stray_escape(units, escape)
        if stray is not None:
            offset = 1 + sum(map(len, units[:stray]))
            self.fail(f"%, _ or {_shown(escape)} behind {_shown(escape)}", at=pattern, offset=offset)

    def is_null(self, attribute: str) -> Expression:
        negated = self.accept("NOT")
        self.expect("NULL", "NULL" if negated else "NULL or NOT NULL")
        return Not(IsNull(attribute)) if negated else IsNull(attribute)

    def within(self) -> Within:
        self.advance()
        self.expect("(", "'('", _keyword_hint(self._tokens[self._position - 1]))
        attribute = self.name()
        self.expect(",", "','")
        text = self.expect("string", "a polygon in single quotes")
        self.expect(")", "')'")
        try:
            return Within(attribute, read_polygon(_unquoted(text)))
        except PolygonError as problem:
            return self.fail("a polygon", str(problem), at=text)

    def xpath(self) -> XPathAtom:
        keyword = self.advance()
        text = self.expect("string", "an XPath expression in single quotes", _keyword_hint(keyword))
        return XPathAtom(_unquoted(text), text.column + 1)

    # ── names and constants ──

    def name(self) -> str:
        token = self.expect("name", "an attribute", _keyword_hint(self.token))
        if token.text == '""':
            self.fail("a name between the quotes", at=token)
        return _unquoted(token) if token.text.startswith('"') else token.text

    def ordered_constant(self, like: str | float | None = None) -> str | float:
        """Read a number or a string, of the type of `like` if that is given."""
        token = self.token
        constant = self.constant()
        if isinstance(constant, bool):
            self.fail("a number or a string", "TRUE and FALSE are only compared by = and <>", at=token)
        if like is not None and type(constant) is not type(like):
            self.fail(TYPE_NAMES[type(like)], "the constants before it are of this type", at=token)
        return constant

    def constant(self) -> Constant:
        kind = self.token.kind
        if kind in TRUTHS:
            return TRUTHS[self.advance().kind]
        if kind == "string":
            return _unquoted(self.advance())
        if kind in CONSTANT_STARTS:
            return self.number()
        return self.fail("a constant", CONSTANT_HINTS.get(kind, ""))

    def number(self) -> float:
        sign = self.advance().kind if self.token.kind in ("+", "-") else "+"
        token = self.expect("number", "a number")
        double = float(token.text)
        if math.isinf(double):
            self.fail("a number that a double holds", "this one is too large", at=token)
        if token.text.isdecimal() and double >= LAST_EXACT and int(token.text.lstrip("0")) != double:
            self.fail("an integer that a double holds", "write it as a string, and send it as one", at=token)
        return 0.0 - double if sign == "-" else double


def _unquoted(token: Token) -> str:
    quote = token.text[0]
    return token.text[1:-1].replace(quote * 2, quote)


def _stray_escape(units: list[str], escape: str) -> int | None:
    """Return where an escape in a pattern escapes nothing; a unit is a character as it is written."""
    place = 0
    while place < len(units):
        if units[place][0] == escape:
            place += 1
            if place == len(units) or units[place][0] not in ("%", "_", escape):
                return place - 1
        place += 1
    return None


def _keyword_hint(token: Token) -> str:
    if token.kind not in KEYWORDS:
        return ""
    return f"{token.kind} is a keyword, an attribute of this name stands in double quotes"


def _shown(word: str) -> str:
    return f"'{word}'" if len(word) <= MAX_SHOWN else f"'{word[:MAX_SHOWN]}…'"
