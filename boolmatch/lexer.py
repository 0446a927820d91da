"""Expression text to tokens: where does each word start, and what is it for the grammar?

    text    price  BETWEEN  10.5    and  1e3     AND  "odd name"  IS  null
    kind    name   BETWEEN  number  AND  number  AND  name        IS  NULL

A symbol is its own kind and a keyword, however spelled, its upper-case form; the others are `name`, `number`,
`string` and `end`. The longest token wins, so `a.b` is one name and `in1` is no keyword.

Nothing fails here. A character that starts no token becomes one of the kind `unknown`, a quote that is never
closed `unterminated`: the parser refuses them when it gets there, so that the first mistake is the one reported.
"""

import re
from typing import NamedTuple

__all__ = ["KEYWORDS", "NAME", "SURROGATE", "Token", "tokenize"]

KEYWORDS = frozenset(
    {"AND", "BETWEEN", "ESCAPE", "FALSE", "IN", "IS", "LIKE", "NOT", "NULL", "OR", "TRUE", "WITHIN", "XPATH"}
)

# Java's identifiers, near enough: letters, digits, _ and $. The marks that letters are combined with in Greek,
# Indic and Thai writing are no word characters for Python.
MARKS = "\u0300-\u036f\u0900-\u0dff\u0e31-\u0e4e"
NAME = rf"(?:[^\W\d]|\$)[\w${MARKS}]*(?:\.[\w${MARKS}]+)*"

SURROGATE = re.compile("[\ud800-\udfff]")
"""Half of a character. It comes out of broken text, and there is no UTF-8 for it."""

TOKEN = re.compile(
    rf"""[ \t\r\n\f]*(?:
      (?P<name>{NAME}|"[^"]*+(?:""[^"]*+)*+")
    | (?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
    | (?P<string>'[^']*+(?:''[^']*+)*+')
    | (?P<symbol><>|!=|<=|>=|[=<>(),+\-*/])
    | (?P<unterminated>['"])
    | (?P<unknown>[^ \t\r\n\f])
    )""",
    re.VERBOSE,
)


class Token(NamedTuple):
    kind: str
    text: str
    column: int


def tokenize(text: str) -> list[Token]:
    """Return the tokens of `text` and one of the kind `end`, columns counted from 1.

    >>> [token.kind for token in tokenize("a >= 5 and b")]
    ['name', '>=', 'number', 'AND', 'name', 'end']
    """
    stop = len(text.rstrip(" \t\r\n\f"))
    tokens = []
    for match in TOKEN.finditer(text, 0, stop):
        group = match.lastgroup or "unknown"
        word = match[group]
        tokens.append(Token(_kind(group, word), word, match.start(group) + 1))
    tokens.append(Token("end", "", stop + 1))
    return tokens


def _kind(group: str, word: str) -> str:
    if group == "symbol":
        return word
    if group == "name" and word.isascii() and word.upper() in KEYWORDS:
        return word.upper()
    return group
