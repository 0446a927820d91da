"""The face of the index: what comes in, what comes out, and what it costs."""

import gc
import weakref
from random import Random

import numpy as np
import oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import NAMESPACES, document, documents, drawn, fewer, native_expression, other_expression

from xpathfilter import Explanation, UnknownSubscription, XPathIndex

pytestmark = pytest.mark.kernels

both_algorithms = pytest.mark.parametrize("algorithm", ["suffix", "delta"])


@both_algorithms
def test_an_index_without_subscriptions_matches_nothing(algorithm: str) -> None:
    index = XPathIndex(algorithm=algorithm)
    assert index.match("<a/>").tolist() == []
    assert index.match("<a/>").dtype == np.int64
    assert index.match_many(["<a/>", "<b/>"])[1].tolist() == []
    assert len(index) == 0
    assert 1 not in index


@both_algorithms
def test_an_index_whose_subscriptions_are_all_gone_matches_nothing(algorithm: str) -> None:
    index = XPathIndex(algorithm=algorithm)
    index.remove_many(index.add_many(["//a", "//a or //b", "count(//a) = 1"]))
    assert index.match("<a/>").tolist() == []
    assert len(index) == 0


@both_algorithms
def test_a_subscription_is_seen_as_soon_as_it_is_added(algorithm: str) -> None:
    index = XPathIndex(algorithm=algorithm)
    for number in range(200):
        subscription = index.add(f"/a[@n = {number}]")
        assert index.match(f"<a n='{number}'/>").tolist() == [subscription]


def test_ids_ascend_and_are_never_used_again() -> None:
    index = XPathIndex()
    ids = [index.add("//a"), *index.add_many(["//b", "//c", "//a"]).tolist(), index.add("//a")]
    index.remove(ids[-1])
    ids += [index.add("//a"), *index.add_many(["//a"]).tolist()]
    assert ids == sorted(set(ids))
    assert all(type(number) is int for number in ids)


def test_results_are_sorted_and_each_id_comes_once() -> None:
    index = XPathIndex()
    index.add_many([text for _ in range(40) for text in ("//a", "//a | //b", "//b", "/a//b", "not(//c)")])
    found = index.match("<a><b/><b><a/></b></a>")
    assert found.dtype == np.int64
    assert found.tolist() == list(range(1, 201))


def test_a_result_is_the_callers_own() -> None:
    index = XPathIndex()
    index.add_many(["//a", "//b"])
    first = index.match("<a><b/></a>")
    first[:] = 0
    assert index.match("<a><b/></a>").tolist() == [1, 2]
    assert first.tolist() == [0, 0]


def test_len_and_in_count_the_living() -> None:
    index = XPathIndex()
    one, two, three = index.add_many(["//a", "//b", "//c"]).tolist()
    index.remove(two)
    assert len(index) == 2
    assert [number in index for number in (one, two, three, 99, "1")] == [True, False, True, False, False]


def test_a_document_may_be_bytes_or_text() -> None:
    index = XPathIndex()
    index.add("/a[. = 'é']")
    latin = "<?xml version='1.0' encoding='iso-8859-1'?><a>é</a>"
    assert index.match(latin).tolist() == index.match(latin.encode("latin-1")).tolist() == [1]
    assert index.match(bytearray("<a>é</a>".encode())).tolist() == [1]


# The fast lane of add_many ---------------------------------------------------------------------------

MEANINGS = {
    "steps": "/a/b; //a//b; a/b; a//b/*; /*/b[@x = 1]/c; //a[b = '/']/c; //a[@x = '//']//b",
    "attributes_at_the_end": "/a/@x; /a//@x; //a//@x; /a/b/@x; /a//attribute::x; /a// @x; /a/ @x",
    "texts_at_the_end": "/a/text(); /a//text(); /a//child::text(); /a//text (); /a// text(); //text()",
    "steps_from_an_attribute": "/a/@x/b; a/@x//b; /a/text()/b; /a/text()//b; //@x/b; //a/@x/..",
    "constants_in_front": "1 = a/b; '1' = a/b; 0 < a/b//c; 1 = ./a/b; 1 != /a/b; -1 < a//b; '1' = */b",
    "constants_behind": "a/b = 1; /a/b != '1'; //b > 0; a//b/@x = 1; a/text() = '1'",
    "nodes_of_any_kind": "a/.; a//.; //.; a/..; a/node(); a//node(); //node()/b; a//self::a; a//comment()",
    "functions": "boolean(a); not(a/b); count(a/b) = 1; contains(a/b, '1'); string(/a/b) = '1'",
    "groups": "(a)/b; (/a)//b; (a/b)[1]; (a | c)/b; a | c/b; a/b | c; (a/b = 1); (//b)[2]/c",
    "predicates": "a[b/c]/b; a/b[1]; a/b[c]/c; a[not(b/c)]//c; a[b//c = 1]/b; a/b[. = 1]/c",
    "axes_in_full": "child::a/child::b; /descendant::b/c; a/descendant::c; //descendant::c; a//descendant::c",
    "blanks": " /a/b ; / a / b; // b; a [ b ] / b; /a\n//c; 1 =a/b; a/b= 1",
}
SMALL_DOCUMENTS = (
    "<a x='1'>1<b x='1'>1</b></a>",
    "<a>1</a>",
    "<a x='1'/>",
    "<a><b>1<c x='2'>1</c></b></a>",
    "<a><b/><b><c>/</c><b>//</b></b></a>",
    "<c><b/><a>0<b>0</b></a></c>",
)


@pytest.mark.parametrize("expressions", MEANINGS.values(), ids=MEANINGS)
def test_add_many_means_what_add_means(expressions: str) -> None:
    index, texts = XPathIndex(), expressions.split(";")
    together = dict(zip(index.add_many(texts).tolist(), texts, strict=True))
    one_by_one = {index.add(text): text for text in texts}
    for text in SMALL_DOCUMENTS:
        assert oracle.disagreements(index.match(text), together | one_by_one, text) == {}


@fewer(2)
@given(st.lists(drawn(native_expression) | drawn(other_expression), min_size=12, max_size=12), documents)
def test_loading_together_and_one_by_one_is_the_same(expressions: list[str], text: str) -> None:
    index = XPathIndex()
    together = index.add_many(expressions, NAMESPACES)
    one_by_one = [index.add(expression, NAMESPACES) for expression in expressions]
    found = set(index.match(text).tolist())
    assert [number in found for number in together.tolist()] == [number in found for number in one_by_one]


def test_add_many_takes_any_iterable_and_nothing() -> None:
    index = XPathIndex()
    assert index.add_many(text for text in ("//a", "//b")).tolist() == [1, 2]
    assert index.add_many([]).tolist() == []
    assert index.add_many([]).dtype == np.int64


def test_each_subscription_has_prefixes_of_its_own() -> None:
    index = XPathIndex()
    one = index.add("//p:a", {"p": "urn:one"})
    two = index.add("//p:a", {"p": "urn:two"})
    (third,) = index.add_many(["//p:a[count(*) = 0]"], {"p": "urn:one"}).tolist()
    (fourth,) = index.add_many(["//p:a[count(*) = 0]"], {"p": "urn:two"}).tolist()
    assert index.match("<a xmlns='urn:one'/>").tolist() == [one, third]
    assert index.match("<x:a xmlns:x='urn:two'/>").tolist() == [two, fourth]


# Size ------------------------------------------------------------------------------------------------


@both_algorithms
@pytest.mark.parametrize("expression", ["//a/b[@x = 'y']", "//a or //b", "count(//b) > 1"])
def test_identical_subscriptions_share_storage_and_all_come_back(expression: str, algorithm: str) -> None:
    few, many = (XPathIndex(algorithm=algorithm) for _ in range(2))
    few.add_many([expression] * 100)
    ids = many.add_many([expression] * 10_000)
    for index in (few, many):
        index.wait_until_merged()
    bytes_each = (many.stats()["bytes"] - few.stats()["bytes"]) / 9_900
    assert bytes_each < 32
    assert many.match("<a><b x='y'/><b/></a>").tolist() == ids.tolist()


@both_algorithms
def test_a_document_of_thousands_of_elements(algorithm: str) -> None:
    random = Random(21)
    text = document(random.choice, 2_500)
    expressions = [native_expression(random.choice) for _ in range(300)]
    index = XPathIndex(algorithm=algorithm)
    subscriptions = dict(zip(index.add_many(expressions, NAMESPACES).tolist(), expressions, strict=True))
    assert oracle.disagreements(index.match(text), subscriptions, text, NAMESPACES) == {}


@both_algorithms
def test_a_document_with_hundreds_of_names_and_attributes(algorithm: str) -> None:
    text = "<r>" + "".join(f"<n{i} a{i}='{i}' u{i % 7}=''><m{i % 5}>{i}</m{i % 5}></n{i}>" for i in range(900)) + "</r>"
    paths = [f"/r/n{i}[@a{i} = {i}]" for i in range(0, 1000, 3)] + [f"//n{i}[@u3]/m{i % 4}" for i in range(300)]
    wild = ["//*[@a5]", "/*/*[@u6]/m2", "//*[m1 > 890]", "//*[m1 > 900]", "//m4[. = '4']", "//*[@a899]/*"]
    index = XPathIndex(algorithm=algorithm)
    subscriptions = dict(enumerate(paths + wild, start=1))
    index.add_many(subscriptions.values())
    assert oracle.disagreements(index.match(text), subscriptions, text) == {}


@both_algorithms
def test_an_element_with_hundreds_of_attributes_and_children(algorithm: str) -> None:
    values = " ".join(f"a{i}='{i}'" for i in range(400))
    text = f"<r {values}>" + "".join(f"<c{i}>{i}</c{i}>t{i}" for i in range(400)) + "</r>"
    kinds = (
        "/r[@a{0}]",
        "/r[@a{0} = {0}]",
        "/r[c{0} < {0}]",
        "/r[c{0} <= {0}]",
        "/r[text() = 't{0}']",
        "/*[@a{0}][c{0}]",
    )
    subscriptions = dict(enumerate((kind.format(i) for kind in kinds for i in range(0, 420, 5)), start=1))
    index = XPathIndex(algorithm=algorithm)
    index.add_many(subscriptions.values())
    assert oracle.disagreements(index.match(text), subscriptions, text) == {}


@both_algorithms
def test_what_a_large_document_leaves_behind_does_not_show(algorithm: str) -> None:
    random = Random(22)
    texts = [document(random.choice, size) for size in (2, 3_000, 2, 40, 1_500, 1, 70, 70)]
    expressions = [native_expression(random.choice) for _ in range(200)]
    index = XPathIndex(algorithm=algorithm)
    index.add_many(expressions, NAMESPACES)
    fresh = XPathIndex(algorithm=algorithm)
    fresh.add_many(expressions, NAMESPACES)
    alone = [fresh.match(text).tolist() for text in sorted(texts, key=len)]
    assert [index.match(text).tolist() for text in sorted(texts, key=len, reverse=True)] == alone[::-1]
    assert [index.match(text).tolist() for text in sorted(texts, key=len)] == alone


# Stats and explanations -----------------------------------------------------------------------------

LANES = {
    "a_path": ("//a[@x = 1]/b", "indexed"),
    "a_union": ("//a | //b", "formula"),
    "a_combination": ("//a and not(//b = 3)", "formula"),
    "a_position": ("//a[2]", "verified"),
    "a_count": ("count(//a) > 2", "verified"),
    "a_value_of_the_whole": ("string-length(.) > 9", "unindexed"),
    "an_absence_that_needs_a_count": ("count(//a) = 0", "unindexed"),
}


@pytest.mark.parametrize("expression, lane", LANES.values(), ids=LANES)
def test_stats_tell_how_subscriptions_are_decided(expression: str, lane: str) -> None:
    index = XPathIndex()
    index.add_many([expression, expression])
    index.add(expression)
    stats = index.stats()
    expected = dict.fromkeys(("indexed", "formula", "verified", "unindexed"), 0) | {lane: 3}
    assert (stats["subscriptions"], stats["lanes"], stats["algorithm"]) == (3, expected, "suffix")
    assert stats["bytes"] > 0
    assert stats["segments"] > 0


@pytest.mark.parametrize("expression, lane", LANES.values(), ids=LANES)
@pytest.mark.parametrize("text", ["<a x='1'><b/><a/><a/></a>", "<b>0123456789</b>"])
def test_an_explanation_says_how_and_whether(expression: str, lane: str, text: str) -> None:
    index = XPathIndex()
    subscription = index.add(expression)
    explanation = index.explain(subscription, text)
    assert isinstance(explanation, Explanation)
    assert (explanation.lane, explanation.matched) == (lane, oracle.outcomes([expression], text)[0])
    assert ("does not match" in str(explanation)) != explanation.matched


@both_algorithms
@fewer(5)
@given(st.lists(drawn(native_expression) | drawn(other_expression), min_size=6, max_size=6), documents)
def test_explanations_agree_with_the_match(algorithm: str, expressions: list[str], text: str) -> None:
    index = XPathIndex(algorithm=algorithm)
    ids = index.add_many(expressions, NAMESPACES).tolist()
    found = set(index.match(text).tolist())
    explanations = [index.explain(subscription, text) for subscription in ids]
    assert [explanation.matched for explanation in explanations] == [number in found for number in ids]
    assert all(str(explanation) for explanation in explanations)


def test_only_the_living_are_explained() -> None:
    index = XPathIndex()
    subscription = index.add("//a")
    index.remove(subscription)
    for unknown in (subscription, 99, -1):
        with pytest.raises(UnknownSubscription) as caught:
            index.explain(unknown, "<a/>")
        assert caught.value.subscription_id == unknown


def test_an_index_that_nobody_holds_is_gone_at_once() -> None:
    index = XPathIndex()
    index.add_many(["//a", "//a or //b", "count(//a) > 1"])
    index.remove(index.add("//c"))
    index.match("<a/>")
    segments = [weakref.ref(layer.segment) for layer in index._overlay.snapshot.layers]
    gc.disable()
    try:
        index.wait_until_merged()
        del index
        assert [segment() for segment in segments] == [None] * len(segments)
    finally:
        gc.enable()
