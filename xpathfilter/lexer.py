"""Expression text to tokens: where does each word start, and is it a name or an operator?

    text      a  *  *  [  div  div  2  ]
    kind   name  * name [ name div number ]

A token's kind is what it is for the grammar: a symbol or operator is its own kind, the others are
`name` (`a`, `p:a`, `p:*`, and `*` where it means any name), `number`, `literal` and `end`. XPath
1.0 (3.7) decides `*` and operator names by the token before: where an operand must come they are
names. The longest token wins, so `a-b` is one name and `3mod2` is the number 3 and the name `mod2`.

Nothing fails here because of grammar. A character that starts no token becomes one of the kind
`unknown`, a quote that is never closed `unterminated`: the parser refuses them when it gets there, so
that the first mistake is the one reported. Only limits are checked, before anything recurses.
"""

import re
from dataclasses import dataclass
from typing import NamedTuple

from xpathfilter.errors import XPathSyntaxError
from xpathfilter.expression import ASSOCIATIVE, PRECEDENCE

__all__ = ["MAX_DEPTH", "MAX_LENGTH", "MAX_SIZE", "NCNAME", "Token", "tokenize"]

MAX_LENGTH = 100_000
"""The longest expression, in characters."""

MAX_SIZE = 4_000
"""The most steps, operators, predicates and arguments (`//` is two steps).

libxml2 refuses to evaluate more than 5,000 operations inside each other, and it puts the parts of a
chain inside each other: `a/b/c` is c of (b of (a)).
"""

MAX_DEPTH = 64
"""The deepest tree, counted in brackets and in operators of one chain.

libxml2 takes 499 nested brackets. Python's recursion limit of 1,000 frames is nearer: a level costs
the parser up to seven of them, and whoever walks the tree needs some too.
"""

SPACE = r"[ \t\r\n]"
NAME_START = (
    "A-Z_a-z\xc0-\xd6\xd8-\xf6\xf8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c-\u200d\u2070-\u218f\u2c00-\u2fef"
    "\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)
NCNAME = rf"[{NAME_START}][{NAME_START}0-9.\-\xb7\u0300-\u036f\u203f-\u2040]*"

TOKEN = re.compile(
    rf"""{SPACE}*(?:
      (?P<name>{NCNAME}(?::(?:{NCNAME}|\*))?)
    | (?P<symbol>::|//|!=|<=|>=|\.\.|[()\[\]@,/|+\-=<>*$]|\.(?![0-9]))
    | (?P<number>[0-9]+(?:\.[0-9]*)?|\.[0-9]+)
    | (?P<literal>'[^']*'|"[^"]*")
    | (?P<unterminated>['"])
    | (?P<unknown>[^ \t\r\n])
    )""",
    re.VERBOSE,
)

OPERATOR_NAMES = frozenset({"and", "or", "mod", "div"})
OPENING = frozenset("([")
CLOSING = frozenset(")]")
BEFORE_OPERAND = frozenset({"@", "::", ",", "/", "//", *OPENING, *PRECEDENCE})

PART_SIZES = dict.fromkeys(BEFORE_OPERAND - {"@", "::"}, 1) | {"//": 2}


class Token(NamedTuple):
    kind: str
    text: str
    column: int


def tokenize(text: str) -> list[Token]:
    """Return the tokens of `text` and one of the kind `end`, columns counted from 1.

    >>> [token.kind for token in tokenize("* * 2")]
    ['name', '*', 'number', 'end']
    """
    stop = len(text.rstrip(" \t\r\n"))
    tokens: list[Token] = []
    operand_next = True
    for match in TOKEN.finditer(text, 0, stop):
        group = match.lastgroup or "unknown"
        kind = _kind(group, match[group], operand_next)
        tokens.append(Token(kind, match[group], match.start(group) + 1))
        operand_next = kind in BEFORE_OPERAND
    tokens.append(Token("end", "", stop + 1))
    if len(tokens) > MAX_DEPTH:
        _check_depth(text, tokens)
        _check_size(text, tokens)
    return tokens


def _kind(group: str, word: str, operand_next: bool) -> str:
    if group == "symbol":
        return "name" if word == "*" and operand_next else word
    if group == "name" and word in OPERATOR_NAMES and not operand_next:
        return word
    return group


def _check_size(text: str, tokens: list[Token]) -> None:
    size = 0
    for token in tokens:
        size += PART_SIZES.get(token.kind, 0)
        if size > MAX_SIZE:
            raise XPathSyntaxError(text, token.column, f"at most {MAX_SIZE:,} steps, operators and arguments")


def _check_depth(text: str, tokens: list[Token]) -> None:
    """Refuse what would be a tree deeper than MAX_DEPTH, without building it."""
    groups = [_Group(0)]
    for token in tokens:
        if token.kind in OPENING:
            groups.append(_Group(groups[-1].depth_inside()))
        elif token.kind in CLOSING and len(groups) > 1:
            inner = groups.pop()
            groups[-1].deepest = max(groups[-1].deepest, 1 + inner.depth())
        else:
            groups[-1].read(token.kind)
        if groups[-1].outside + groups[-1].depth() > MAX_DEPTH:
            raise XPathSyntaxError(text, token.column, f"at most {MAX_DEPTH} nested brackets and operators")


@dataclass(slots=True)
class _Group:
    """What stands between two brackets, as far as it has been read: how deep a tree will it be?

    Operators of one chain nest (`1 - 2 - 3` is (1 - 2) - 3), except those that `chain` balances,
    which add the logarithm of their number. Between two of these only the deepest operand counts.
    """

    outside: int
    n_links: int = 0
    n_joins: int = 0
    deepest: int = 0
    deepest_operand: int = 0

    def read(self, kind: str) -> None:
        if kind in ASSOCIATIVE or kind == ",":
            self.n_joins += 1
            self.deepest_operand = max(self.deepest_operand, self.n_links + self.deepest)
            self.n_links = self.deepest = 0
        elif kind in PRECEDENCE:
            self.n_links += 1

    def depth(self) -> int:
        return self.n_joins.bit_length() + max(self.deepest_operand, self.n_links + self.deepest)

    def depth_inside(self) -> int:
        """Return how deep a bracket stands that opens here."""
        return self.outside + self.n_joins.bit_length() + self.n_links + 1
