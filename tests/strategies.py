"""Random XML documents and XPath expressions that have something to say to each other.

Both are made of a few names and values, so that matches are frequent and elements recur inside themselves:

    document(choose, 4)          <a x='1'>1e3<b><p:a/></b><!--1--><a/></a>
    native_expression(choose)    //a[@x > 0 and not(b)]//p:*/@y | /b         what the index decides alone
    other_expression(choose)     count(//a[2]/following::b) > 1              what lxml has the last word on
    trees()                      any XPath 1.0 at all, as the parser's tree; `render` makes it text

The first three know only `choose`, which takes one of some choices. Hypothesis does it in `drawn`, and so
finds the simplest failure (the first choice is the simplest one); `Random(seed).choice` does it a hundred
times faster, where many are wanted.

Numbers are odd on purpose: blanks around, an exponent (which libxml2 reads), -0, and no number at all.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any
from xml.sax.saxutils import quoteattr

from hypothesis import settings
from hypothesis import strategies as st

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
    NodeTest,
    Number,
    Path,
    Step,
    chain,
    render,
)
from xpathfilter.functions import CORE_FUNCTIONS, Function
from xpathfilter.parser import AXES

Choose = Callable[[Sequence[Any]], Any]

NAMESPACES = {"p": "urn:p", "q": "urn:q"}


@st.composite
def drawn(draw: st.DrawFn, make: Callable[..., str], *arguments: Any) -> str:
    """What `make` makes of choices by hypothesis."""
    return make(lambda choices: draw(st.sampled_from(choices)), *arguments)


def fewer(times: int) -> settings:
    """So many times fewer examples than the profile asks for, where one example is a lot of work."""
    return settings(max_examples=max(1, settings().max_examples // times))


# Documents ----------------------------------------------------------------------------------------

ELEMENT_NAMES = ("a", "b", "c", "a", "b", "p:a", "p:b", "q:a")
ATTRIBUTE_NAMES = ((), ("x",), (), ("y",), ("x", "y"), ("p:x",), ("p:x", "x"))
VALUES = (
    *("1", "2", "x", "1", "2", "", "xy", " 1 ", "1e3", "1000", "-0", "0", "-1", "1.5", ".5"),
    *("NaN", "+1", "é", "1\t"),
)
DECLARATIONS = ("", "", "", "", "", "", "", " xmlns='urn:p'", " xmlns=''", " xml:lang='en'")
IDENTITIES = ("", "", " xml:id='x'")
PROLOGS = ("", "", "", "<?t d?>", "<!--1-->", "<?xml version='1.0' encoding='utf-8'?>\n")
CONTENTS = (
    *("", "", "", "", "1", "2", "x", "xy", " 1 ", "1e3", "-0", ".5", "NaN", "é", "\n", "1&#9;"),
    *("<!--1-->", "1<!--1-->2", "<?t 1?>", "<![CDATA[1]]>", "<![CDATA[<x>]]>", "x<![CDATA[]]>y"),
)
CLOSES = (True, False)


def document(choose: Choose, n_elements: int, max_depth: int = 12) -> str:
    """A document of so many elements: mixed content, comments, namespaces by prefix and by default."""
    return choose(PROLOGS) + tree(choose, n_elements, max_depth, choose(IDENTITIES))


def tree(choose: Choose, n_elements: int, max_depth: int, identity: str = "") -> str:
    """An element and what is below it, so many elements in all."""
    declared = "".join(f" xmlns:{prefix}='{uri}'" for prefix, uri in NAMESPACES.items())
    open_names = [choose(ELEMENT_NAMES)]
    parts = [_start(choose, open_names[0], declared + identity)]
    for _ in range(n_elements - 1):
        while len(open_names) > 1 and (len(open_names) >= max_depth or choose(CLOSES)):
            parts += [f"</{open_names.pop()}>", choose(CONTENTS)]
        open_names.append(choose(ELEMENT_NAMES))
        parts.append(_start(choose, open_names[-1], choose(DECLARATIONS)))
    return "".join([*parts, *(f"</{name}>" for name in reversed(open_names))])


def _start(choose: Choose, name: str, declared: str) -> str:
    pairs = "".join(f" {key}={quoteattr(choose(VALUES))}" for key in choose(ATTRIBUTE_NAMES))
    return f"<{name}{declared}{pairs}>{choose(CONTENTS)}"


documents = st.integers(1, 24).flatmap(lambda n_elements: drawn(document, n_elements))


# Expressions that the index decides alone ---------------------------------------------------------

STEP_NAMES = ("a", "b", "*", "a", "b", "c", "p:a", "q:a", "p:*", "child::a", "child::*", "child::p:b")
SEPARATORS = ("/", "//", "//", "/descendant-or-self::node()/", "/./", "/descendant::")
STARTS = ("/", "//", "//", "//", "", ".//", "./", "/descendant-or-self::node()/", "//descendant::")
ENDS = (
    *("", "", "", "", "", "", "", "/@x", "//@y", "/text()", "//text()", "/@p:x", "/attribute::x"),
    *("//@x[. > 0]", "/text()[. = '1']", "//text()[1 < .]"),
)
SUBJECTS = (
    *("@x", "@y", "text()", ".", "a", "b"),
    *("@p:x", "attribute::x", "child::b", "p:a", "./b", "self::node()"),
)
CONSTANTS = (
    *("1", "2", "0", "-1", "1000", "1.5", ".5", "-0", "-.5", "99999999999999999999"),
    *("'1'", "'x'", "'2'", "'xy'", "''", "' 1 '", "'1e3'", "'é'", '"NaN"'),
)
PIECES = ("'x'", "'1'", "''", "'xy'", "' '", "'é'")
COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
N_MORE_STEPS = (0, 0, 1, 1, 2, 3)
N_PREDICATES = (0, 0, 0, 1, 1, 2)


def native_expression(choose: Choose, depth: int = 2) -> str:
    """Paths, their unions, their comparisons with constants, and and/or/not of those."""
    kind = choose(("path", "path", "path", "path", "compared", "union", "combined", "combined"))
    if kind == "combined" and depth:
        return combined(choose, lambda: native_expression(choose, depth - 1))
    if kind == "union":
        return f"{native_path(choose)} | {native_path(choose)}"
    path = native_path(choose)
    return compared(choose, path, choose(CONSTANTS)) if kind == "compared" else path


def native_path(choose: Choose) -> str:
    """One to four steps, with conditions about single elements."""
    path = choose(STARTS) + native_step(choose)
    for _ in range(choose(N_MORE_STEPS)):
        path += choose(SEPARATORS) + native_step(choose)
    return one_axis(path + choose(ENDS))


def native_step(choose: Choose) -> str:
    return choose(STEP_NAMES) + "".join(f"[{condition(choose)}]" for _ in range(choose(N_PREDICATES)))


def condition(choose: Choose, depth: int = 2) -> str:
    """What may be asked of one element: its attributes, its text, one child."""
    kind = choose(("exists", "compared", "compared", "compared", "searched", "combined"))
    if kind == "combined" and depth:
        return combined(choose, lambda: condition(choose, depth - 1))
    if kind == "compared":
        return compared(choose, choose(SUBJECTS), choose(CONSTANTS))
    if kind == "searched":
        return f"{choose(('contains', 'starts-with'))}({choose(SUBJECTS)}, {choose(PIECES)})"
    return choose(SUBJECTS)


def compared(choose: Choose, left: str, right: str) -> str:
    """A comparison, either way round."""
    operator = choose(COMPARISONS)
    return f"{left} {operator} {right}" if choose((True, False)) else f"{right} {operator} {left}"


def combined(choose: Choose, part: Callable[[], str]) -> str:
    """Two parts joined by `and` or `or`, or one denied."""
    operator = choose(("and", "or", "not", "and", "or", "boolean"))
    if operator in ("not", "boolean"):
        return f"{operator}({part()})"
    return f"({part()}) {operator} ({part()})"


def one_axis(path: str) -> str:
    """The path with every doubled axis made one: `following::child::a` is no XPath."""
    return path.replace("::child::", "::")


# Expressions that need lxml -------------------------------------------------------------------------


def _listed(text: str) -> tuple[str, ...]:
    """The items of a text that stand at least two blanks apart."""
    return tuple(re.split(r"\s{2,}", text.strip()))


OTHER_PREDICATES = _listed("""
    1   2   last()   position() < 3   position() = last()   b/a   .//b   a[b]   b//@x = 1   0   ''   '0'
    count(b) > 1   count(*) = 0   ../@x   @x = @y   @x = ../@y   . = b   string-length(.) > 1   @x and 1
    not(b/c)   normalize-space() = '1'   sum(b) > 1   following-sibling::b   preceding::a   self::a
    lang('en')   @*   @* = 1   name() = 'a'   local-name() = 'a'   namespace-uri() = 'urn:p'   p:*   *
    node()   comment()   number(.)   boolean(number(@x))   //b   /a   b | c   @x + 1 = 2
    string(@x) = '1'   concat(@x, @y) = '12'   @x or 0   true()   false()   id('x')   descendant::c
    ancestor::a   translate(., '1', 'x') = 'x'   @x = true()   substring(., 1, 1) = '1'   text()[2]
    @x < b   contains(b, @x)   contains(b/a, '1')   -@x = -1
""")
OTHER_SEPARATORS = _listed("""
    /   //   /../   /parent::*/   /ancestor::   /ancestor-or-self::   /following::   /preceding::
    /self::   /following-sibling::   /preceding-sibling::   /descendant-or-self::   //following-sibling::
    //self::
""")
OTHER_ENDS = _listed("""
    /@*   /node()   /comment()   //comment()   /processing-instruction()   /namespace::p   /..   /.
    /@x/a   /text()//b   /@x/..   //.   /descendant-or-self::node()   /text()[1]   /@x[. = 1][1]
    /@*[. > 0]   /text()/..
""")
FUNCTIONS = _listed("""
    count({})   sum({})   string({})   number({})   string-length({})   name({})   local-name({})
    ({})[1]   normalize-space({})   -{}   {} + 1   floor({})   round({})   concat({}, '1')   ({} | //b)
    ({})[last()]   substring-before({}, 'y')   translate({}, 'x', '1')   ({})[2]/b   id({})   ({})[@x]/@y
    contains({}, '1')
""")
CONTEXT_VALUES = _listed("""
    true()   false()   position()   last()   string()   normalize-space()   id('x')   id('x')/a   /   .
    ..   lang('en')   name()   //comment()   /processing-instruction('t')   1 div 0   -1   'x'   0
    //a//@x
""")


def other_expression(choose: Choose, depth: int = 2) -> str:
    """Positions, twigs, all axes, functions, comparisons of two paths; alone and mixed with native ones."""
    kind = choose(("path", "path", "value", "compared", "compared", "native", "combined"))
    if kind == "combined" and depth:
        return combined(choose, lambda: other_expression(choose, depth - 1))
    if kind == "compared":
        return compared(choose, other_value(choose), choose((choose(CONSTANTS), other_value(choose))))
    if kind == "native":
        return native_expression(choose, 0)
    return other_value(choose) if kind == "value" else other_path(choose)


def other_value(choose: Choose) -> str:
    """A path, a function of a path, or something of the context."""
    kind = choose(("path", "function", "function", "context"))
    if kind == "context":
        return choose(CONTEXT_VALUES)
    return choose(FUNCTIONS).format(other_path(choose)) if kind == "function" else other_path(choose)


def other_path(choose: Choose) -> str:
    """Steps along any axis, with any kind of predicate."""
    path = choose(STARTS) + other_step(choose)
    for _ in range(choose(N_MORE_STEPS)):
        path += choose((choose(SEPARATORS), choose(OTHER_SEPARATORS))) + other_step(choose)
    return one_axis(path + choose(("", "", choose(OTHER_ENDS))))


def other_step(choose: Choose) -> str:
    step = choose(STEP_NAMES)
    for _ in range(choose(N_PREDICATES)):
        step += f"[{choose((choose(OTHER_PREDICATES), condition(choose, 0)))}]"
    return step


# Any XPath 1.0, as trees that the parser could have returned --------------------------------------------

LITERALS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cn"]), max_size=4).filter(
    lambda text: not {"'", '"'} <= set(text)
)
NUMBERS = st.from_regex(
    r"[0-9]{1,3}|[0-9]{1,25}(\.[0-9]{0,25})?|\.[0-9]{1,25}|\.0{0,400}[0-9]{1,3}|[0-9]{305,312}",
    fullmatch=True,
)
KIND_TESTS = st.sampled_from([KindTest("node"), KindTest("text"), KindTest("comment")]) | st.sampled_from(
    [KindTest("processing-instruction"), KindTest("processing-instruction", "it's")]
)
DOCUMENT_TESTS: st.SearchStrategy[NodeTest] = (
    st.just(ANY_NAME)
    | st.sampled_from("abx").map(lambda name: NameTest(None, name))
    | st.sampled_from([NameTest("urn:p", None, "p"), NameTest("urn:q", "a", "q")])
    | KIND_TESTS
)


def trees(tests: st.SearchStrategy[NodeTest] = DOCUMENT_TESTS, max_leaves: int = 8) -> st.SearchStrategy[Expression]:
    """Expressions of every kind over these node tests."""
    one_step = st.builds(Step, st.just("child"), tests)
    leaves: st.SearchStrategy[Expression] = (
        st.builds(Literal, LITERALS) | NUMBERS.map(Number.read) | one_step.map(lambda step: Path(False, (step,)))
    )
    return st.recursive(leaves, lambda inner: _larger(inner, tests), max_leaves=max_leaves)


def any_expressions() -> st.SearchStrategy[str]:
    """The text of any XPath 1.0, over the names of `documents`."""
    return trees().map(render)


def _larger(inner: st.SearchStrategy[Expression], tests: st.SearchStrategy[NodeTest]) -> st.SearchStrategy[Expression]:
    steps = st.builds(Step, st.sampled_from(AXES), tests, st.lists(inner, max_size=2).map(tuple))
    steps |= st.sampled_from([SELF, PARENT, DESCENDANTS, DESCENDANTS])
    some_steps = st.lists(steps, min_size=1, max_size=4).map(tuple)
    paths = st.just(ROOT) | st.builds(Path, st.booleans(), some_steps)
    sets = paths | st.builds(lambda text: Call("id", (text,)), inner)
    sets |= st.builds(Filter, sets, st.lists(inner, min_size=1, max_size=2).map(tuple))
    sets |= st.lists(sets, min_size=2, max_size=4).map(lambda parts: chain("|", parts))
    sets |= st.builds(Path, st.just(False), some_steps, sets)
    operators = st.sampled_from(["=", "!=", "<", "<=", ">", ">=", "+", "-", "*", "div", "mod"])
    chains = st.builds(chain, st.sampled_from(["or", "and"]), st.lists(inner, min_size=2, max_size=5))
    functions = st.sampled_from(list(CORE_FUNCTIONS.values()))
    calls = functions.flatmap(lambda function: _call_of(function, inner, sets))
    return sets | chains | calls | st.builds(Binary, operators, inner, inner) | st.builds(Negate, inner)


def _call_of(
    function: Function, values: st.SearchStrategy[Expression], sets: st.SearchStrategy[Expression]
) -> st.SearchStrategy[Expression]:
    n_most = function.n_least + 2 if function.n_most is None else function.n_most
    argument = sets if function.takes_node_set else values
    arguments = st.lists(argument, min_size=function.n_least, max_size=n_most).map(tuple)
    return st.builds(Call, st.just(function.name), arguments)
