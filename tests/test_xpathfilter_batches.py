"""Documents that are matched in one batch have the answers of lxml, whatever stands beside them."""

from random import Random
from typing import Any

import pytest
from oracle import disagreements
from strategies import NAMESPACES, document, native_expression

from xpathfilter import DocumentError, DocumentLimits, XPathIndex, batches
from xpathfilter.flat_document import new_flat_document
from xpathfilter.reading import flat_documents

pytestmark = pytest.mark.kernels

SUBSCRIPTIONS = ["//a", "//b[@i > 1]", "/a/b", "//*[. = 'x']", "//c//d", "/*[not(@i)]", "//n1999", "/a/a//b", "//@*"]
DOCUMENTS: dict[str, Any] = {
    "plain": "<a><b i='2'>x</b></a>",
    "plain_bytes": b"<?xml version='1.0' encoding='UTF-8'?><c i=''><d/></c>",
    "other_bytes": bytearray(b"<a/>"),
    "not_plain": "<a><?p?><b i='2'/></a>",
    "with_a_prefix": "<p:a xmlns:p='urn:x'><b/></p:a>",
    "with_a_path_as_deep_as_a_record": "<a>" * 63 + "<b/>" + "</a>" * 63,
    "with_a_path_that_is_deeper": "<a>" * 64 + "<b/>" + "</a>" * 64,
    "with_many_elements": "<a>" + "<b i='2'/>" * 3000 + "</a>",
    "with_many_names": "<a>" + "".join(f"<n{i} a{i}='{i}'/>" for i in range(2000)) + "</a>",
    "with_many_nodes": "<a>" + "".join("<b>" * (i % 9) + "<c><d/></c>" + "</b>" * (i % 9) for i in range(900)) + "</a>",
    "with_a_long_text": "<a><b>" + "x" * 50_000 + "</b></a>",
    "found_by_nobody": "<z i=''/>",
}
BAD = {"cut": "<a><b i='2'>", "empty": b"", "of_no_xml": "no xml", "half_a_pair": "<a>\ud800</a>"}


def written(document: Any) -> bytes:
    return document.encode() if isinstance(document, str) else bytes(document)


@pytest.fixture
def index() -> XPathIndex:
    index = XPathIndex()
    index.add_many(SUBSCRIPTIONS)
    assert batches.takes_batches(index._overlay.snapshot.layers[0].segment)
    return index


def check(index: XPathIndex, subscriptions: dict[int, str], documents: list[Any]) -> None:
    """Malformed documents have their error, all others the answers of lxml."""
    for given, found in zip(documents, index.match_many(documents, threads=1), strict=True):
        if any(given is bad for bad in BAD.values()):
            assert isinstance(found, DocumentError)
        else:
            assert not isinstance(found, DocumentError)
            assert found.tolist() == sorted(found.tolist())
            assert disagreements(found, subscriptions, written(given)) == {}


@pytest.mark.parametrize("seed", range(5))
def test_documents_of_all_kinds_beside_each_other(index: XPathIndex, seed: int) -> None:
    documents = [*DOCUMENTS.values(), *BAD.values()] * 6
    Random(seed).shuffle(documents)
    assert len(documents) > batches.BATCH
    check(index, dict(enumerate(SUBSCRIPTIONS, 1)), documents)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_scratch_that_is_too_small_for_the_first_document_grows(name: str) -> None:
    while flat_documents._idle:
        flat_documents.take()
    flat_documents.give_back(new_flat_document(rows=2, text_bytes=8))
    index = XPathIndex()
    index.add_many(SUBSCRIPTIONS)
    check(index, dict(enumerate(SUBSCRIPTIONS, 1)), [DOCUMENTS[name], "<a/>"])


@pytest.mark.parametrize("seed", range(10))
def test_generated_documents(seed: int) -> None:
    random = Random(seed)
    expressions = [native_expression(random.choice) for _ in range(80)]
    documents = [document(random.choice, random.randint(1, 90)) for _ in range(batches.BATCH + 9)]
    index = XPathIndex()
    index.add_many(expressions, NAMESPACES)
    for given, found in zip(documents, index.match_many(documents, threads=1), strict=True):
        assert not isinstance(found, DocumentError)
        assert disagreements(found, dict(enumerate(expressions, 1)), given, NAMESPACES) == {}


def test_there_is_always_room_for_the_ids_of_one_more_document(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "ROOM", 1)
    index = XPathIndex()
    index.add_many(["//a"] * 50)
    found = index.match_many(["<a/>", "<b/>", "<a/>", "<a/>", "<?p?><a/>"] * 40, threads=1)
    assert [len(ids) for ids in found] == [50, 0, 50, 50, 50] * 40  # type: ignore[arg-type]


def test_removed_subscriptions_find_nothing(index: XPathIndex) -> None:
    index.remove(1)
    assert [found.tolist() for found in index.match_many(["<a/>", "<a><b/></a>"], threads=1)] == [[6], [3, 6]]  # type: ignore[union-attr]


def test_limits_hold_in_a_batch() -> None:
    index = XPathIndex(limits=DocumentLimits(max_bytes=30, max_depth=3))
    index.add_many(["//a"])
    documents = [
        "<a><a><a/></a></a>",
        "<a><a><a><a/></a></a></a>",
        "<a>" + "x" * 24 + "</a>",
        "<a>" + "x" * 23 + "</a>",
    ]
    good, too_deep, too_large, not_too_large = index.match_many(documents, threads=1)
    assert [getattr(good, "size", None), getattr(not_too_large, "size", None)] == [1, 1]
    assert "too deep" in str(too_deep)
    assert "too large" in str(too_large)


def test_where_lxml_has_the_last_word_a_batch_waits_for_it_and_goes_on() -> None:
    subscriptions = ["//a", "//b[last() > 1]", "not(//c[last()])", "//a[b]/b[1]", "//b"]
    index = XPathIndex()
    index.add_many(subscriptions)
    documents = [*DOCUMENTS.values(), *BAD.values(), "<a><b/><b/></a>", "<c/>", "<b/>"] * 4
    Random(1).shuffle(documents)
    check(index, dict(enumerate(subscriptions, 1)), documents)
