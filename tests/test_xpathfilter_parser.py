"""The parser reads XPath 1.0, points at what is not, and agrees with libxml2 about which is which."""

import json
import struct
from collections.abc import Callable
from pathlib import Path as FilePath
from random import Random
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from lxml import etree
from strategies import KIND_TESTS, NUMBERS, trees

from xpathfilter.errors import NamespaceError, XPathSyntaxError
from xpathfilter.expression import (
    ANY_NAME,
    DESCENDANTS,
    PARENT,
    ROOT,
    SELF,
    Binary,
    Call,
    Expression,
    Filter,
    KindTest,
    Literal,
    NameTest,
    Negate,
    Number,
    Path,
    Step,
    chain,
    operands,
    render,
    render_step,
)
from xpathfilter.functions import value_type
from xpathfilter.lexer import MAX_DEPTH, MAX_LENGTH, MAX_SIZE, tokenize
from xpathfilter.parser import parse

NAMESPACES = {"p": "urn:p", "div": "urn:div"}
DOCUMENT = etree.fromstring(
    '<a xmlns:p="urn:p" x="1"><b>2<!--c--><p:a p:x="3"/></b><?t d?><div>4</div></a>'
).getroottree()

CONFORMANCE = FilePath(__file__).resolve().parents[2] / "shared" / "data" / "conformance" / "cases.jsonl"


def child(local: str, *predicates: Expression) -> Step:
    return Step("child", NameTest(None, local), predicates)


def attribute(local: str) -> Step:
    return Step("attribute", NameTest(None, local))


def path(*steps: Step, start: Expression | None = None) -> Path:
    return Path(False, steps, start)


def root_path(*steps: Step) -> Path:
    return Path(True, steps)


A, B, C, D = (path(child(name)) for name in "abcd")
ONE, TWO, THREE = (Number(value) for value in (1.0, 2.0, 3.0))

GOOD = {
    "root": ("/", ROOT),
    "relative": ("a/b", path(child("a"), child("b"))),
    "absolute": ("/a/b", root_path(child("a"), child("b"))),
    "descendants": ("//a", root_path(DESCENDANTS, child("a"))),
    "descendants_inside": ("a//b", path(child("a"), DESCENDANTS, child("b"))),
    "self_and_parent": ("./..", path(SELF, PARENT)),
    "attribute": ("@a", path(attribute("a"))),
    "attribute_in_full": ("attribute::a", path(attribute("a"))),
    "child_in_full": ("child :: a", A),
    "any_name": ("*", path(Step("child", ANY_NAME))),
    "name_in_namespace": ("p:a", path(Step("child", NameTest("urn:p", "a")))),
    "any_name_in_namespace": ("p:*", path(Step("child", NameTest("urn:p", None)))),
    "any_attribute_in_namespace": ("@p:*", path(Step("attribute", NameTest("urn:p", None)))),
    "xml_is_always_declared": (
        "@xml:lang",
        path(Step("attribute", NameTest("http://www.w3.org/XML/1998/namespace", "lang"))),
    ),
    "kind_test": ("text ( )", path(Step("child", KindTest("text")))),
    "kind_test_of_attributes": ("@node()", path(Step("attribute", KindTest("node")))),
    "kind_names_are_names": ("text/node", path(child("text"), child("node"))),
    "axis_names_are_names": ("self/child", path(child("self"), child("child"))),
    "function_names_are_names": ("count", path(child("count"))),
    "instruction": (
        "processing-instruction()",
        path(Step("child", KindTest("processing-instruction"))),
    ),
    "instruction_with_target": (
        "processing-instruction ( 'x' )",
        path(Step("child", KindTest("processing-instruction", "x"))),
    ),
    "predicates": ("a[1][b]", path(child("a", ONE, B))),
    "predicate_inside": ("a[1]/b", path(child("a", ONE), child("b"))),
    "filter": ("(a)[1]", Filter(A, (ONE,))),
    "filter_path": ("(a)[1]/b", path(child("b"), start=Filter(A, (ONE,)))),
    "filter_descendants": ("id('x')//a", path(DESCENDANTS, child("a"), start=Call("id", (Literal("x"),)))),
    "parentheses_are_not_kept": ("((a))", A),
    "union_as_start": ("(a|b)/c", path(child("c"), start=Binary("|", A, B))),
    "single_quotes": ("'\"'", Literal('"')),
    "double_quotes": ('"\'"', Literal("'")),
    "literal_keeps_spaces": ("' a\t\nb '", Literal(" a\t\nb ")),
    "number": ("12.5", Number(12.5)),
    "number_without_whole": (".5", Number(0.5)),
    "number_without_fraction": ("2.", TWO),
    "call_without_arguments": ("true ( )", Call("true", ())),
    "call_with_arguments": ("concat(a, 1,'x')", Call("concat", (A, ONE, Literal("x")))),
    "negation": ("--1", Negate(Negate(ONE))),
    "negation_of_a_union": ("-a|b", Negate(Binary("|", A, B))),
    "negation_in_a_product": ("-a * -b", Binary("*", Negate(A), Negate(B))),
    "or_is_weaker_than_and": ("a or b and c", Binary("or", A, Binary("and", B, C))),
    "equality_is_weaker_than_order": ("a = b < c", Binary("=", A, Binary("<", B, C))),
    "sum_is_weaker_than_product": ("1 + 2 * 3", Binary("+", ONE, Binary("*", TWO, THREE))),
    "order_is_weaker_than_sum": ("1 < 2 + 3", Binary("<", ONE, Binary("+", TWO, THREE))),
    "differences_group_left": ("1 - 2 - 3", Binary("-", Binary("-", ONE, TWO), THREE)),
    "parentheses_group_right": ("1 - (2 - 3)", Binary("-", ONE, Binary("-", TWO, THREE))),
    "comparisons_group_left": ("1 < 2 < 3", Binary("<", Binary("<", ONE, TWO), THREE)),
    "alternatives_balance": ("a or b or c or d", Binary("or", Binary("or", A, B), Binary("or", C, D))),
    "alternatives_dissolve_parentheses": ("a or (b or c)", Binary("or", Binary("or", A, B), C)),
    "star_between_operands_multiplies": (
        "* * *",
        Binary("*", path(Step("child", ANY_NAME)), path(Step("child", ANY_NAME))),
    ),
    "operator_names_are_names_too": ("div div div", Binary("div", path(child("div")), path(child("div")))),
    "operator_name_before_parenthesis": ("a and(b)", Binary("and", A, B)),
    "operator_name_as_prefix": ("div:a", path(Step("child", NameTest("urn:div", "a")))),
    "name_after_slash": ("/ and", root_path(child("and"))),
    "root_as_operand": ("/ = 'x'", Binary("=", ROOT, Literal("x"))),
    "hyphen_inside_a_name": ("a-b", path(child("a-b"))),
    "hyphen_after_a_space": ("a -b", Binary("-", A, B)),
    "dot_inside_a_name": ("a.b", path(child("a.b"))),
    "number_touching_an_operator": ("1div 2", Binary("div", ONE, TWO)),
    "literals_touching_an_operator": ("'x'or'y'", Binary("or", Literal("x"), Literal("y"))),
    "space_everywhere": ("\r\n a\t[ 1 ] / @ b ", path(child("a", ONE), attribute("b"))),
    "letters_of_any_script": ("名前/été", path(child("名前"), child("été"))),
}

BAD: dict[str, tuple[str, int, str]] = {
    "empty": ("", 1, "an expression"),
    "blank": (" \t", 1, "an expression"),
    "predicate_without_step": ("//book/[price]", 8, "a node test"),
    "slash_at_the_end": ("a/", 3, "a node test"),
    "descendants_of_nothing": ("//", 3, "a node test"),
    "three_slashes": ("///a", 3, "a node test"),
    "predicate_of_the_root": ("/[1]", 2, "an operator or the end"),
    "predicate_of_self": (".[1]", 2, "an operator or the end"),
    "empty_predicate": ("a[]", 3, "an expression"),
    "open_predicate": ("a[1", 4, "an operator or ']'"),
    "open_parenthesis": ("(a", 3, "an operator or ')'"),
    "stray_bracket": ("a]", 2, "an operator or the end"),
    "two_operands": ("a b", 3, "an operator or the end"),
    "operand_missing": ("a or", 5, "an expression"),
    "operand_missing_in_front": ("= a", 1, "an expression"),
    "double_operator": ("a == b", 4, "an expression"),
    "unknown_character": ("a[#]", 3, "an expression"),
    "first_mistake_wins": ("a b #", 3, "an operator or the end"),
    "open_literal": ("a['x]", 3, "a closing ' for the literal that starts"),
    "attribute_of_nothing": ("@", 2, "a node test"),
    "axis_of_nothing": ("child::", 8, "a node test"),
    "axis_after_at": ("@child::a", 7, "an operator or the end"),
    "unknown_axis": ("a/chld::b", 3, "an axis"),
    "function_as_step": ("a/string()", 3, "a node test"),
    "parenthesis_as_step": ("a/(b)", 3, "a node test"),
    "argument_of_a_kind_test": ("text('x')", 6, "')'"),
    "name_as_target": ("processing-instruction(x)", 24, "')'"),
    "variable": ("a[$x]", 3, "an expression"),
    "unknown_function": ("1 + flor(1)", 5, "a function of XPath 1.0"),
    "prefixed_function": ("p:count(a)", 1, "a function of XPath 1.0"),
    "too_few_arguments": ("a[contains('x')]", 3, "2 arguments for contains()"),
    "too_many_arguments": ("true(1)", 1, "no arguments for true()"),
    "optional_argument_twice": ("string(a, b)", 1, "0 or 1 argument for string()"),
    "missing_argument": ("concat(a,,b)", 10, "an expression"),
    "open_arguments": ("concat(a", 9, "an operator, ',' or ')'"),
    "open_call": ("true(", 6, "an expression"),
    "undeclared_prefix": ("a/q:b", 3, "a declared prefix"),
    "undeclared_prefix_of_any": ("q:*", 1, "a declared prefix"),
    "two_colons_in_a_name": ("p:a:b", 4, "an operator or the end"),
    "space_in_a_qualified_name": ("p :a", 3, "an operator or the end"),
    "exponent": ("1e3", 2, "an operator or the end"),
    "operator_glued_to_a_number": ("3 mod2", 3, "an operator or the end"),
    "operator_after_the_root_is_a_name": ("/ or a", 6, "an operator or the end"),
    "count_of_a_number": ("count(1)", 7, "a node-set"),
    "sum_of_a_string": ("sum('a')", 5, "a node-set"),
    "name_of_a_boolean": ("name(a = b)", 6, "a node-set"),
    "union_with_a_number": ("a | b | 1", 9, "a node-set"),
    "union_with_a_negation": ("a | -b", 5, "a node-set"),
    "predicate_of_a_literal": ("'a'[1]", 1, "a node-set"),
    "predicate_of_a_string": ("1 + string(a)[1]", 5, "a node-set"),
    "path_from_a_number": ("1/a", 1, "a node-set"),
    "path_from_a_boolean": ("(a or b)//c", 1, "a node-set"),
    "nul": ("a\x00", 2, "a character that XML allows"),
    "control_character": ("'\x0b'", 2, "a character that XML allows"),
    "lone_surrogate": ("'\ud800'", 2, "a character that XML allows"),
    "not_a_character": ("'\ufffe'", 2, "a character that XML allows"),
    "name_too_long": ("/" + "n" * 10_001, 2, "a name of at most 10,000 characters"),
    "text_too_long": (" " * MAX_LENGTH + "a", MAX_LENGTH + 1, f"at most {MAX_LENGTH:,} characters"),
    "ten_thousand_parentheses": ("(" * 10_000, 65, f"at most {MAX_DEPTH} nested brackets and operators"),
    "ten_thousand_signs": ("-" * 10_000 + "1", 65, f"at most {MAX_DEPTH} nested brackets and operators"),
    "ten_thousand_steps": ("a/" * 10_000, 8002, f"at most {MAX_SIZE:,} steps, operators and arguments"),
}

HINTS = {
    "nearest_function": ("flor(1)", "did you mean 'floor'?"),
    "nearest_kind_test": ("a = txt()", "did you mean 'text'?"),
    "long_names_are_cut": ("n" * 5000 + "(1)", f"'{'n' * 40}…' is none"),
    "nearest_axis": ("chld::a", "did you mean 'child'?"),
    "axis_with_one_colon": ("child:a", "did you mean 'child::'?"),
    "declared_prefixes": ("q:a", "'q' is not declared, only 'div', 'p', 'xml'"),
    "no_exponents": ("1e3", "numbers have no exponent"),
    "space_after_operator": ("3 mod2", "write a space after 'mod'"),
    "no_variables": ("a = $x", "a subscription has no variables"),
    "predicate_of_self": (".[1]", "write self::node()[...]"),
    "predicate_of_parent": ("..[1]", "write parent::node()[...]"),
    "argument_count": ("concat(1)", "found 1"),
    "type_found": ("count(1)", "count() takes a node-set, this is a number"),
    "character_by_its_code": ("\x01", "U+0001"),
}

BAD_NAMESPACES = {
    "empty_prefix": ({"": "urn:p"}, "XPath 1.0 has no default namespace"),
    "no_prefix": ({None: "urn:p"}, "XPath 1.0 has no default namespace"),
    "prefix_with_colon": ({"p:q": "urn:p"}, "expected a name without a colon"),
    "prefix_with_digit": ({"1": "urn:p"}, "expected a name without a colon"),
    "empty_uri": ({"p": ""}, "expected a URI that is not empty"),
    "uri_with_control_character": ({"p": "urn:\x01"}, "in characters that XML allows"),
    "xml_elsewhere": ({"xml": "urn:p"}, "always stands for http://www.w3.org/XML/1998/namespace"),
}

RENDERED = {
    "operators_have_spaces": ("a='x'and@b>1", "a = 'x' and @b > 1"),
    "abbreviations": ("child::a/descendant-or-self::node()/attribute::b", "a//@b"),
    "self_and_parent": ("self::node()/parent::node()", "./.."),
    "self_with_predicate_stays": ("self::node()[1]", "self::node()[1]"),
    "leading_descendants_stay": ("descendant-or-self::node()/a", "descendant-or-self::node()/a"),
    "trailing_descendants_stay": ("a/descendant-or-self::node()", "a/descendant-or-self::node()"),
    "doubled_descendants": ("//descendant-or-self::node()/a", "//descendant-or-self::node()/a"),
    "needless_parentheses_go": ("((1 + (2 * 3)))", "1 + 2 * 3"),
    "needed_parentheses_stay": ("(1 + 2) * (3 - (4 - 5))", "(1 + 2) * (3 - (4 - 5))"),
    "root_before_an_operator": ("(/) * 2", "(/) * 2"),
    "quotes": ('"x"', "'x'"),
    "plain_numbers": ("1.50 + 007 + .5", "1.5 + 7 + 0.5"),
    "no_exponent": ("1000000000000000000000000", "1000000000000000000000000"),
    "no_negative_exponent": ("0.0000000001", "0.0000000001"),
}

STRUCTURES_AT_A_LIMIT: dict[str, Callable[[int], str]] = {
    "parentheses": lambda n: "(" * n + "1" + ")" * n,
    "predicates_inside": lambda n: "*[" * n + "1" + "]" * n,
    "predicates_in_a_row": lambda n: "*" + "[1]" * n,
    "calls": lambda n: "not(" * n + "1" + ")" * n,
    "arguments": lambda n: "concat(1, 1" + ", 1" * n + ")",
    "filters": lambda n: "(" * n + "*" + ")[1]" * n,
    "starts": lambda n: "(" * n + "*" + ")/*" * n,
    "steps": lambda n: "*" + "/*" * n,
    "descendants": lambda n: "*" + "//@x" * n,
    "signs": lambda n: "-" * n + "1",
    "sums": lambda n: "1" + " + 1" * n,
    "comparisons": lambda n: "1" + " = 1" * n,
    "alternatives": lambda n: "0" + " or 0" * n,
    "unions": lambda n: "q" + " | q" * n,
    "grouped_alternatives": lambda n: "(" * n + "0" + " or 0)" * n,
    "every_operator_inside": lambda n: "(1 or 1 and 1 = 1 < 1 + 1 * -" * n + "1" + ")" * n,
    "every_operator_in_front": lambda n: "(" * n + "1" + " or 1 and 1 = 1 < 1 + 1)" * n,
    "every_operator_not_closed": lambda n: "(1 or 1 and 1 = 1 < 1 + 1 * -" * n,
}


def accepts(text: str) -> bool:
    try:
        parse(text, NAMESPACES)
    except XPathSyntaxError:
        return False
    return True


def libxml2_compiles(text: str) -> bool:
    try:
        etree.XPath(text, namespaces=NAMESPACES)
    except (etree.XPathSyntaxError, ValueError):
        return False
    return True


def libxml2_evaluates(text: str) -> Any:
    """Evaluate for the document node, inside a predicate because lxml's outermost context has no position."""
    return etree.XPath(f"/self::node()[boolean({text})]", namespaces=NAMESPACES)(DOCUMENT)


def bits(value: float) -> bytes:
    return struct.pack("d", value)


def under_frames(n_frames: int, action: Callable[[], Any]) -> Any:
    return action() if n_frames == 0 else under_frames(n_frames - 1, action)


def largest_accepted(build: Callable[[int], str]) -> int:
    accepted, refused = 0, MAX_SIZE + 1
    while refused - accepted > 1:
        middle = (accepted + refused) // 2
        accepted, refused = (middle, refused) if accepts(build(middle)) else (accepted, middle)
    return accepted


# Random expressions of every kind, over names that are also words of the language.

NAMES = st.sampled_from(["a", "b", "div", "or", "text", "self", "count", "été", "a-b.c"])
EXPRESSIONS = trees(
    st.just(ANY_NAME)
    | st.builds(NameTest, st.none(), NAMES)
    | st.sampled_from([NameTest("urn:p", None, "p"), NameTest("urn:div", "or", "div")])
    | KIND_TESTS
)
FRAGMENTS = (
    st.sampled_from(" \t*/[]().@,|-+=<:!#'\"1aé")
    | st.sampled_from(["//", "::", "..", "!=", "<=", " and ", " or ", " div ", " mod ", ".5", "e3", "'x'"])
    | st.sampled_from(["p:a", "p:*", "child::", "text()", "true()", "count(", "not(", "id(", "1/."])
)


@st.composite
def mutated_texts(draw: st.DrawFn) -> str:
    text = render(draw(EXPRESSIONS))
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(text)))
        n_removed = draw(st.integers(0, 3))
        text = text[:start] + draw(FRAGMENTS | st.just("")) + text[start + n_removed :]
    return text


@pytest.mark.parametrize("text, expected", GOOD.values(), ids=GOOD)
def test_an_expression_becomes_its_tree(text: str, expected: Expression) -> None:
    expression = parse(text, NAMESPACES)
    assert expression == expected
    assert hash(expression) == hash(expected)
    assert parse(render(expression), NAMESPACES) == expected
    libxml2_evaluates(text)


@pytest.mark.parametrize("text, column, expected", BAD.values(), ids=BAD)
def test_an_error_says_what_was_expected_and_where(text: str, column: int, expected: str) -> None:
    with pytest.raises(XPathSyntaxError) as caught:
        parse(text, NAMESPACES)
    assert (caught.value.column, caught.value.expected) == (column, expected)
    assert caught.value.text == text
    assert f"expected {expected} at column {column}" in str(caught.value)


@pytest.mark.parametrize("text, hint", HINTS.values(), ids=HINTS)
def test_an_error_helps(text: str, hint: str) -> None:
    with pytest.raises(XPathSyntaxError) as caught:
        parse(text, NAMESPACES)
    assert hint in str(caught.value).split("\n")[0]


@pytest.mark.parametrize("namespaces, reason", BAD_NAMESPACES.values(), ids=BAD_NAMESPACES)
def test_a_useless_namespace_map_is_refused(namespaces: dict[str, str], reason: str) -> None:
    with pytest.raises(NamespaceError, match=reason):
        parse("a", namespaces)


def test_the_xml_prefix_may_be_declared_as_what_it_is() -> None:
    assert parse("@xml:id", {"xml": "http://www.w3.org/XML/1998/namespace"}) == parse("@xml:id")


@pytest.mark.parametrize("name", ["été", "名前", "\u0132", "\u0483b", "\U0001d49c", "a\u00b7b", "p:\u1401"])
def test_a_name_is_one_if_libxml2_takes_it(name: str) -> None:
    assert accepts(name) == libxml2_compiles(name)


@pytest.mark.parametrize("text", [b"a", None, 1])
def test_an_expression_must_be_text(text: Any) -> None:
    with pytest.raises(TypeError, match="expected an XPath expression as str, got"):
        parse(text)


@pytest.mark.parametrize("namespaces", [{1: "u"}, {"p": b"u"}, {"p": None}, {b"p": "u"}])
def test_namespaces_must_map_text_to_text(namespaces: Any) -> None:
    with pytest.raises(TypeError, match="expected namespaces to map str to str"):
        parse("a", namespaces)


@pytest.mark.parametrize("text, expected", RENDERED.values(), ids=RENDERED)
def test_rendering_is_short_and_readable(text: str, expected: str) -> None:
    assert render(parse(text)) == expected


def test_the_prefix_is_kept_for_reading_but_not_compared() -> None:
    one, other = parse("p:a", {"p": "u"}), parse("q:a", {"q": "u"})
    assert one == other
    assert hash(one) == hash(other)
    assert (render(one), render(other)) == ("p:a", "q:a")


def test_a_step_renders_alone() -> None:
    assert render_step(attribute("x")) == "@x"
    assert render_step(Step("following", ANY_NAME, (ONE,))) == "following::*[1]"


def test_a_literal_with_both_quotes_cannot_be_rendered() -> None:
    with pytest.raises(ValueError, match="both kinds of quotes"):
        render(Literal("'\""))


def test_operands_undo_a_chain() -> None:
    parts = [path(child(f"n{number}")) for number in range(37)]
    assert operands("or", chain("or", parts)) == parts
    assert operands("or", A) == [A]


@given(EXPRESSIONS)
@settings(max_examples=300, deadline=None)
def test_a_rendered_expression_is_read_back_and_libxml2_evaluates_it(expression: Expression) -> None:
    text = render(expression)
    assert parse(text, NAMESPACES) == expression
    assert libxml2_compiles(text)
    libxml2_evaluates(text)


@given(EXPRESSIONS, st.data())
@settings(max_examples=100, deadline=None)
def test_space_between_tokens_means_nothing(expression: Expression, data: st.DataObject) -> None:
    spaces = st.sampled_from([" ", "\t", "\r\n "])
    text = "".join(data.draw(spaces) + token.text for token in tokenize(render(expression)))
    assert parse(text, NAMESPACES) == expression


@given(EXPRESSIONS)
@settings(max_examples=100, deadline=None)
def test_the_static_type_is_the_type_libxml2_gives(expression: Expression) -> None:
    types = {list: "node-set", bool: "boolean", float: "number"}
    free_of_context = render(expression).replace("position()", "1").replace("last()", "1")
    result = etree.XPath(free_of_context, namespaces=NAMESPACES)(DOCUMENT)
    assert value_type(expression).value == types.get(type(result), "string")


@given(mutated_texts())
@settings(max_examples=600, deadline=None)
@example("///a")
@example("1/.")
@example("a/.[1]")
@example("a :: b")
@example("p:*(1)")
@example("*(1)")
@example("a[")
def test_what_is_accepted_libxml2_accepts_and_evaluates(text: str) -> None:
    if accepts(text):
        assert libxml2_compiles(text)
        libxml2_evaluates(text)


@given(NUMBERS)
@settings(max_examples=200, deadline=None)
@example("9007199254740993")
@example("0." + "0" * 330 + "1")
@example("1" + "0" * 400)
@example("4.35")
def test_a_number_has_the_bits_libxml2_gives_it(text: str) -> None:
    number = Number.read(text)
    assert bits(number.value) == bits(etree.XPath(text)(DOCUMENT))
    assert bits(parse(render(number)).value) == bits(number.value)


def test_long_digits_are_rounded_as_libxml2_rounds_them() -> None:
    random = Random(1)
    for _ in range(2_000):
        whole, fraction = (str(random.randrange(10 ** random.randrange(1, 31))) for _ in range(2))
        text = f"{whole}.{'0' * random.choice([0, 0, 3])}{fraction}"
        assert bits(Number.read(text).value) == bits(etree.XPath(text)(DOCUMENT)), text


@pytest.mark.parametrize("build", STRUCTURES_AT_A_LIMIT.values(), ids=STRUCTURES_AT_A_LIMIT)
def test_the_largest_accepted_is_safe_for_libxml2_and_for_recursion(build: Callable[[int], str]) -> None:
    largest = largest_accepted(build)
    text = build(largest)

    def use() -> bool:
        expression = parse(text)
        return parse(render(expression)) == expression and hash(expression) == hash(parse(text))

    assert not accepts(build(largest + 1))
    if largest:
        assert under_frames(200, use)
        etree.XPath(text)(DOCUMENT)


@pytest.mark.parametrize("build", STRUCTURES_AT_A_LIMIT.values(), ids=STRUCTURES_AT_A_LIMIT)
@pytest.mark.parametrize("size", [10, 60, 500, 3_000])
def test_no_size_ends_in_a_recursion_error(build: Callable[[int], str], size: int) -> None:
    under_frames(200, lambda: accepts(build(size)))


def test_a_thousand_alternatives_are_accepted() -> None:
    expression = parse(" or ".join(f"@symbol = 'S{number}'" for number in range(1000)))
    assert len(operands("or", expression)) == 1000


@pytest.mark.skipif(not CONFORMANCE.exists(), reason=f"no conformance cases at {CONFORMANCE}")
def test_conformance_cases_parse_unless_they_must_fail() -> None:
    cases = [json.loads(line) for line in CONFORMANCE.read_text("utf-8").splitlines()]
    wrong = [case["expr"] for case in cases if accepts_case(case) != (case["matches"] is not None)]
    assert len(cases) > 700
    assert wrong == []


def accepts_case(case: dict[str, Any]) -> bool:
    try:
        expression = parse(case["expr"], case["ns"])
    except XPathSyntaxError:
        return False
    return parse(render(expression), case["ns"]) == expression
