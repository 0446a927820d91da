"""Bit 63 is not the end of the world: deep documents are answered exactly, with either algorithm."""

import functools
from random import Random

import oracle
import pytest
from strategies import NAMESPACES, native_expression, other_expression, tree

from xpathfilter import DocumentError, DocumentLimits, XPathIndex

pytestmark = pytest.mark.kernels

both_algorithms = pytest.mark.parametrize("algorithm", ["suffix", "delta"])

DEPTHS = [1, 2, 62, 63, 64, 65, 66, 127, 128, 129, 200, 500]


def chain(depth: int, names: str = "ab") -> str:
    """One path of `depth` elements, named in turn, with its depth as an attribute of each."""
    chosen = [names[level % len(names)] for level in range(depth)]
    starts = [f"<{name} d='{level}'>" for level, name in enumerate(chosen, start=1)]
    return "".join(starts) + "end" + "".join(f"</{name}>" for name in reversed(chosen))


def paths(depth: int) -> list[str]:
    """What a chain of `depth` elements may be asked."""
    near = [level for level in range(depth - 2, depth + 3) if level > 0]
    places = sorted({1, 2, 63, 64, 65, *near})
    return [
        *(f"//*[@d = {level}]" for level in places),
        *(f"//a[@d = {level}]/b" for level in places),
        *(f"//a//b[@d >= {level}]//a" for level in places),
        *(f"/a//b[@d = {level}]/a[@d = {level + 1}]" for level in places),
        *(f"//*[@d < {level}]//*[@d > {level}]" for level in places),
        *("/*" * level for level in near),
        *("//a/b" * level for level in (1, 10, 32, 33)),
        *("/a/b" * level for level in (1, 16, 31, 32, 33)),
        *("//a//a//a", "//b/b", "//*[. = 'end'][not(*)]", "//*[text() = 'end']/@d", "/a[not(@d = 2)]//b//text()"),
        *("not(//c)", "//a and //c", "//a | //c", "count(//*) > 64", "//a[last()]/b[1]//a", "//*[a]/following::b"),
    ]


@functools.cache
def right_answers(depth: int, names: str) -> list[bool]:
    return oracle.outcomes(paths(depth), chain(depth, names))


@both_algorithms
@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("names", ["ab", "a"], ids=["in_turn", "recursive"])
def test_a_chain_of_elements(depth: int, names: str, algorithm: str) -> None:
    index, asked = XPathIndex(algorithm=algorithm), paths(depth)
    index.add_many(asked)
    found = set(index.match(chain(depth, names)).tolist())
    answers = dict(zip(asked, (number in found for number in range(1, len(asked) + 1)), strict=True))
    assert answers == dict(zip(asked, right_answers(depth, names), strict=True))


@both_algorithms
@pytest.mark.parametrize("n_steps", [1, 2, 33, 63, 64, 65, 66, 120])
def test_a_path_of_many_steps(n_steps: int, algorithm: str) -> None:
    index = XPathIndex(algorithm=algorithm)
    children, descendants, turns = index.add_many(["/*" * n_steps, "//*" * n_steps, "//a/b" * n_steps]).tolist()
    below, just, twice = (index.match(chain(depth)).tolist() for depth in (n_steps - 1 or 1, n_steps, 2 * n_steps))
    assert below == ([] if n_steps > 1 else just)
    assert just == [children, descendants]
    assert twice == [children, descendants, turns]


@both_algorithms
@pytest.mark.parametrize("max_depth", [63, 64, 65, 66, 130, 500])
def test_documents_that_are_deep_and_wide(max_depth: int, algorithm: str) -> None:
    random = Random(max_depth)
    below, beside = (tree(random.choice, 60, max_depth=10) for _ in range(2))
    text = f"<a>{chain(max_depth - 11, 'abc').replace('end', below)}{beside}</a>"
    expressions = [native_expression(random.choice) for _ in range(150)]
    expressions += [other_expression(random.choice) for _ in range(20)]
    index = XPathIndex(algorithm=algorithm)
    subscriptions = dict(zip(index.add_many(expressions, NAMESPACES).tolist(), expressions, strict=True))
    assert oracle.disagreements(index.match(text), subscriptions, text, NAMESPACES) == {}


@both_algorithms
def test_deep_and_shallow_documents_take_turns(algorithm: str) -> None:
    index = XPathIndex(algorithm=algorithm)
    subscriptions = dict(enumerate(paths(65), start=1))
    index.add_many(subscriptions.values())
    for depth in (3, 300, 3, 65, 64, 400, 2, 66):
        text = chain(depth)
        assert oracle.disagreements(index.match(text), subscriptions, text) == {}


@both_algorithms
def test_a_deep_document_among_others_in_every_mode(algorithm: str) -> None:
    index = XPathIndex(algorithm=algorithm)
    index.add_many(paths(65))
    texts = [chain(depth) for depth in (3, 500, 64, 65, 7, 129)]
    expected = [index.match(text).tolist() for text in texts]
    for mode in ("me-ip", "se-cp", "me-cp"):
        assert [found.tolist() for found in index.match_many(texts, mode=mode, threads=3)] == expected


def test_the_deepest_document_has_its_limit() -> None:
    index = XPathIndex(limits=DocumentLimits(max_depth=100))
    index.add("//a")
    assert index.match(chain(100)).tolist() == [1]
    with pytest.raises(DocumentError, match="too deep"):
        index.match(chain(101))


def test_a_deep_document_is_explained() -> None:
    index = XPathIndex()
    found, missed = index.add_many(["//a[@d = 299]/b", "//a[@d = 300]/b"]).tolist()
    assert index.explain(found, chain(300)).matched
    assert not index.explain(missed, chain(300)).matched
