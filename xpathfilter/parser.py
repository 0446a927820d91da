"""Expression text to tree: is it XPath 1.0, and what does it say?

    //book[@year > 2000]   ──▶  tokens  ──▶  Path(absolute) descendant-or-self::node()
                                               child::book [ attribute::year > 2000 ]

One method for each rule of the grammar, binary operators by their precedence. `parse` accepts the
whole of XPath 1.0 and nothing else; what it accepts, libxml2 compiles, and evaluates without error
wherever the context has a position (lxml gives the outermost context none, so a bare `position()`
fails there). What could fail is refused here, where a caret can point at it: variables, functions
that are not XPath's own, wrong numbers of arguments, prefixes without a namespace, and anything but
a node-set where only a node-set will do (count(1), 1 | a, 'a'[1], 1/a).

libxml2 takes some texts that are not XPath 1.0 and are refused: `1e3`, `3mod2`, `p :a`, `///a`, `1/.`.
"""

import re
from collections.abc import Mapping
from difflib import get_close_matches
from functools import lru_cache
from types import MappingProxyType
from typing import NoReturn

from lxml import etree

from xpathfilter.errors import NamespaceError, XPathSyntaxError
from xpathfilter.expression import (
    ANY_NAME,
    ASSOCIATIVE,
    DESCENDANTS,
    PARENT,
    PRECEDENCE,
    ROOT,
    SELF,
    UNARY,
    Binary,
    Call,
    Expression,
    Filter,
    KindTest,
    Literal,
    NameTest,
    Negate,
    NodeTest,
    Number,
    Path,
    Step,
    chain,
)
from xpathfilter.functions import CORE_FUNCTIONS, Function, ValueType, value_type
from xpathfilter.lexer import MAX_LENGTH, NCNAME, OPERATOR_NAMES, Token, tokenize

__all__ = ["declare", "parse"]

AXES = (
    "ancestor",
    "ancestor-or-self",
    "attribute",
    "child",
    "descendant",
    "descendant-or-self",
    "following",
    "following-sibling",
    "namespace",
    "parent",
    "preceding",
    "preceding-sibling",
    "self",
)
KIND_TESTS = {kind: KindTest(kind) for kind in ("node", "text", "comment", "processing-instruction")}

XML_NAMESPACE = "http://www.w3.org/XML/1998/namespace"
ALWAYS_DECLARED: Mapping[str, str] = MappingProxyType({"xml": XML_NAMESPACE})

PREFIX = re.compile(NCNAME)
NOT_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
EXPONENT = re.compile("[eE][0-9]*")
MAX_SHOWN = 40

MAX_NAME_LENGTH = 10_000
"""The longest name, in characters. libxml2's limit is 50,000 bytes."""


def parse(text: str, namespaces: Mapping[str, str] | None = None) -> Expression:
    """Return the expression that `text` spells, its prefixes replaced by the URIs of `namespaces`.

    >>> parse("a | p:b", {"p": "urn:p"}).right.steps[0].test
    NameTest(namespace='urn:p', local='b', prefix='p')
    """
    declared = declare(namespaces)
    _check_text(text)
    return _Parser(text, declared).whole()


def declare(namespaces: Mapping[str, str] | None) -> Mapping[str, str]:
    """The prefixes that an expression may use; `NamespaceError` or `TypeError` if they cannot be."""
    if not namespaces:
        return ALWAYS_DECLARED
    for prefix, uri in namespaces.items():
        _check_namespace(prefix, uri)
    return {**namespaces, **ALWAYS_DECLARED}


def _check_namespace(prefix: str, uri: str) -> None:
    if not isinstance(prefix or "", str) or not isinstance(uri, str):
        raise TypeError(f"expected namespaces to map str to str, got {prefix!r}: {uri!r}")
    if not prefix:
        raise NamespaceError("", "XPath 1.0 has no default namespace, name the prefix and write p:a")
    if not PREFIX.fullmatch(prefix):
        raise NamespaceError(prefix, "expected a name without a colon")
    if not uri or NOT_XML.search(uri):
        raise NamespaceError(prefix, "expected a URI that is not empty, in characters that XML allows")
    if ALWAYS_DECLARED.get(prefix, uri) != uri:
        raise NamespaceError(prefix, f"always stands for {ALWAYS_DECLARED[prefix]}")


def _check_text(text: str) -> None:
    if not isinstance(text, str):
        raise TypeError(f"expected an XPath expression as str, got {type(text).__name__}")
    if len(text) > MAX_LENGTH:
        raise XPathSyntaxError(text, MAX_LENGTH + 1, f"at most {MAX_LENGTH:,} characters")
    if bad := NOT_XML.search(text):
        code = f"U+{ord(bad[0]):04X} is not one"
        raise XPathSyntaxError(text, bad.start() + 1, "a character that XML allows", code)


@lru_cache(maxsize=512)
def _libxml2_reads(name: str) -> bool:
    """Is `name` one for the libxml2 we run on? Its XPath may be stricter than its XML parser.

    Up to 2.14 at least, names in XPath follow the tables of XML 1.0's fourth edition, and names in
    documents those of the fifth, which are ours. It is the one that evaluates, so it decides.
    """
    try:
        etree.XPath(name)
    except etree.XPathSyntaxError:
        return False
    return True


class _Parser:
    """Reads tokens from left to right; `token` is the next one to be read."""

    __slots__ = ("_namespaces", "_position", "_text", "_tokens", "token")

    def __init__(self, text: str, namespaces: Mapping[str, str]) -> None:
        self._text = text
        self._namespaces = namespaces
        self._tokens = tokenize(text)
        self._position = 0
        self.token = self._tokens[0]

    # ── tokens ──

    def advance(self) -> Token:
        token = self.token
        self._position += 1
        self.token = self._tokens[self._position]
        return token

    def next_kind(self) -> str:
        """Return the kind of the token after a name, which decides what the name is."""
        return self._tokens[self._position + 1].kind

    def accept(self, kind: str) -> bool:
        if self.token.kind != kind:
            return False
        self.advance()
        return True

    def expect(self, kind: str, expected: str) -> None:
        if not self.accept(kind):
            self.fail(expected, self._why_not_operator())

    def fail(self, expected: str, hint: str = "", at: Token | None = None) -> NoReturn:
        token = at or self.token
        if token.kind == "unterminated":
            expected, hint = f"a closing {token.text} for the literal that starts", ""
        elif token.kind == "$":
            hint = "a subscription has no variables"
        raise XPathSyntaxError(self._text, token.column, expected, hint)

    def _why_not_operator(self) -> str:
        """Return a hint about what stands where only an operator or a bracket can."""
        before = self._tokens[self._position - 1]
        word = self.token.text
        if self.token.kind == "[" and before.kind in (".", ".."):
            axis = SELF.axis if before.kind == "." else PARENT.axis
            return f"'{before.text}' takes no predicate, write {axis}::node()[...]"
        if before.kind == "number" and EXPONENT.fullmatch(word):
            return "numbers have no exponent in XPath 1.0"
        if self.token.kind == "name":
            glued = [name for name in OPERATOR_NAMES if word.startswith(name)]
            return f"{_shown(word)} is one word, write a space after '{glued[0]}'" if glued else ""
        return ""

    # ── operators ──

    def whole(self) -> Expression:
        expression = self.expression()
        if self.token.kind != "end":
            self.fail("an operator or the end", self._why_not_operator())
        return expression

    def expression(self, least: int = 1) -> Expression:
        """Read operands joined by operators that bind at least as strongly as `least`."""
        start = self.token
        left = self.unary()
        while (strength := PRECEDENCE.get(self.token.kind, 0)) >= least:
            operator = self.token.kind
            if operator in ASSOCIATIVE:
                left = self.chain(operator, start, left)
            else:
                self.advance()
                left = Binary(operator, left, self.expression(strength + 1))
        return left

    def chain(self, operator: str, start: Token, left: Expression) -> Expression:
        starts, parts = [start], [left]
        while self.accept(operator):
            starts.append(self.token)
            parts.append(self.expression(PRECEDENCE[operator] + 1))
        if operator == "|":
            for start, part in zip(starts, parts, strict=True):
                self.check_node_set(part, start, "'|' joins node-sets")
        return chain(operator, parts)

    def unary(self) -> Expression:
        return Negate(self.expression(UNARY)) if self.accept("-") else self.path()

    def check_node_set(self, expression: Expression, start: Token, why: str) -> None:
        found = value_type(expression)
        if found is not ValueType.NODE_SET:
            self.fail("a node-set", f"{why}, this is a {found.value}", at=start)

    # ── paths ──

    def path(self) -> Expression:
        kind = self.token.kind
        if kind in ("/", "//"):
            return self.absolute_path()
        if kind in ("(", "literal", "number") or self.at_call():
            return self.filter_path()
        if not self.at_step():
            self.fail("an expression")
        return Path(False, self.steps([]))

    def at_call(self) -> bool:
        return self.at_bracketed_name() and self.token.text not in KIND_TESTS

    def at_kind_test(self) -> bool:
        return self.at_bracketed_name() and self.token.text in KIND_TESTS

    def at_bracketed_name(self) -> bool:
        token = self.token
        return token.kind == "name" and self.next_kind() == "(" and not token.text.endswith("*")

    def at_step(self) -> bool:
        return self.token.kind in ("name", "@", ".", "..")

    def absolute_path(self) -> Path:
        if self.advance().kind == "//":
            return Path(True, self.steps([DESCENDANTS]))
        return Path(True, self.steps([])) if self.at_step() else ROOT

    def filter_path(self) -> Expression:
        start = self.token
        expression = self.primary()
        if self.token.kind == "[":
            self.check_node_set(expression, start, "only a node-set takes a predicate")
            expression = Filter(expression, self.predicates())
        if self.token.kind not in ("/", "//"):
            return expression
        self.check_node_set(expression, start, f"only a node-set goes before '{self.token.kind}'")
        return Path(False, self.steps([DESCENDANTS] if self.advance().kind == "//" else []), expression)

    def steps(self, steps: list[Step]) -> tuple[Step, ...]:
        """Read a relative path and append its steps to those in front of it."""
        steps.append(self.step())
        while self.token.kind in ("/", "//"):
            if self.advance().kind == "//":
                steps.append(DESCENDANTS)
            steps.append(self.step())
        return tuple(steps)

    def step(self) -> Step:
        if self.accept("."):
            return SELF
        if self.accept(".."):
            return PARENT
        return Step(self.axis(), self.node_test(), self.predicates())

    def axis(self) -> str:
        if self.accept("@"):
            return "attribute"
        if self.token.kind != "name" or self.next_kind() != "::":
            return "child"
        if self.token.text not in AXES:
            self.fail("an axis", _did_you_mean(self.token.text, AXES))
        axis = self.advance().text
        self.advance()
        return axis

    def node_test(self) -> NodeTest:
        if self.token.kind != "name":
            self.fail("a node test")
        if self.at_kind_test():
            return self.kind_test()
        if self.at_call():
            self.fail("a node test", "a step cannot be a function")
        return self.name_test(self.advance())

    def kind_test(self) -> KindTest:
        test = KIND_TESTS[self.advance().text]
        self.advance()
        if test.kind == "processing-instruction" and self.token.kind == "literal":
            test = KindTest("processing-instruction", self.advance().text[1:-1])
        self.expect(")", "')'")
        return test

    def name_test(self, token: Token) -> NodeTest:
        if token.text == "*":
            return ANY_NAME
        self.check_name(token)
        prefix, colon, local = token.text.rpartition(":")
        namespace = self.namespace(prefix, token) if colon else None
        return NameTest(namespace, None if local == "*" else local, prefix)

    def check_name(self, token: Token) -> None:
        if len(token.text) > MAX_NAME_LENGTH:
            self.fail(f"a name of at most {MAX_NAME_LENGTH:,} characters", at=token)
        if not token.text.isascii() and not _libxml2_reads(token.text):
            self.fail("a name", "libxml2 does not take this one in an expression", at=token)

    def namespace(self, prefix: str, token: Token) -> str:
        if prefix not in self._namespaces:
            declared = ", ".join(f"'{name}'" for name in sorted(self._namespaces))
            hint = f"{_shown(prefix)} is not declared, only {declared}"
            hint += f", or did you mean '{prefix}::'?" if prefix in AXES else ""
            self.fail("a declared prefix", hint, at=token)
        return self._namespaces[prefix]

    def predicates(self) -> tuple[Expression, ...]:
        predicates: list[Expression] = []
        while self.accept("["):
            predicates.append(self.expression())
            self.expect("]", "an operator or ']'")
        return tuple(predicates)

    # ── primaries ──

    def primary(self) -> Expression:
        if self.token.kind == "name":
            return self.call()
        token = self.advance()
        if token.kind == "literal":
            return Literal(token.text[1:-1])
        if token.kind == "number":
            return Number.read(token.text)
        expression = self.expression()
        self.expect(")", "an operator or ')'")
        return expression

    def call(self) -> Call:
        name = self.advance()
        if name.text not in CORE_FUNCTIONS:
            hint = _did_you_mean(name.text, (*CORE_FUNCTIONS, *KIND_TESTS))
            self.fail("a function of XPath 1.0", hint, at=name)
        function = CORE_FUNCTIONS[name.text]
        arguments = self.arguments(function)
        if not function.accepts(len(arguments)):
            self.fail(f"{function.arity()} for {function.name}()", f"found {len(arguments)}", at=name)
        return Call(function.name, arguments)

    def arguments(self, function: Function) -> tuple[Expression, ...]:
        arguments: list[Expression] = []
        separator = "("
        while self.accept(separator) and not (separator == "(" and self.token.kind == ")"):
            start = self.token
            arguments.append(self.expression())
            if function.takes_node_set:
                self.check_node_set(arguments[-1], start, f"{function.name}() takes a node-set")
            separator = ","
        self.expect(")", "an operator, ',' or ')'" if arguments else "')'")
        return tuple(arguments)


def _did_you_mean(name: str, names: tuple[str, ...]) -> str:
    close = get_close_matches(name, names, n=1)
    return f"{_shown(name)} is none" + (f", did you mean '{close[0]}'?" if close else "")


def _shown(name: str) -> str:
    return f"'{name}'" if len(name) <= MAX_SHOWN else f"'{name[:MAX_SHOWN]}…'"
