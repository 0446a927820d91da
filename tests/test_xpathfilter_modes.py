"""However threads share the work, `match_many` gives for each document what `match` gives."""

import threading
from concurrent.futures import ThreadPoolExecutor
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle import matching
from strategies import NAMESPACES, document, documents, drawn, fewer, native_expression, other_expression

from xpathfilter import DocumentError, XPathIndex

pytestmark = pytest.mark.kernels

MODES = ("me-cp", "me-ip", "se-cp")
both_algorithms = pytest.mark.parametrize("algorithm", ["suffix", "delta"])
every_mode = pytest.mark.parametrize("mode", MODES)
some_threads = pytest.mark.parametrize("threads", [1, 2, 5, None])

BAD_DOCUMENTS = ("<a>", "", "not XML", "<!DOCTYPE a [<!ENTITY e 'x'>]><a>&e;</a>", "<a>" * 3000 + "</a>" * 3000)


@pytest.fixture(scope="module")
def expressions() -> list[str]:
    random = Random(51)
    return [make(random.choice) for make in (native_expression,) * 300 + (other_expression,) * 60]


@pytest.fixture(scope="module")
def texts() -> list[str]:
    random = Random(52)
    return [document(random.choice, n_elements) for n_elements in (1, 900, 3, 40, 200, 2, 65, 1, 400, 12) * 2]


@pytest.fixture(scope="module", params=["suffix", "delta"])
def index(request: pytest.FixtureRequest, expressions: list[str]) -> XPathIndex:
    """An index of several segments, the largest with gaps."""
    index = XPathIndex(algorithm=request.param)
    index.add_many(expressions, NAMESPACES)
    for expression in expressions[::40]:
        index.add(expression, NAMESPACES)
    index.remove_many(range(5, 100, 7))
    return index


@pytest.fixture(scope="module")
def alone(index: XPathIndex, texts: list[str]) -> list[list[int]]:
    return [index.match(text).tolist() for text in texts]


@every_mode
@some_threads
def test_every_document_has_the_result_it_has_alone(
    index: XPathIndex, texts: list[str], alone: list[list[int]], mode: str, threads: int | None
) -> None:
    found = index.match_many(texts, mode=mode, threads=threads)
    assert [result.tolist() for result in found] == alone
    assert all(result.dtype == np.int64 for result in found)
    assert sum(map(len, alone)) > 100


@every_mode
@some_threads
def test_a_bad_document_leaves_the_others_intact(
    index: XPathIndex, texts: list[str], alone: list[list[int]], mode: str, threads: int | None
) -> None:
    mixed: list[str] = []
    for text, bad in zip(texts, BAD_DOCUMENTS * len(texts), strict=False):
        mixed += [text, bad]
    found = index.match_many(mixed, mode=mode, threads=threads)
    assert [result.tolist() for result in found[::2]] == alone
    assert all(isinstance(result, DocumentError) for result in found[1::2])
    assert "<a>" not in str(found[3])


@every_mode
@some_threads
def test_documents_that_are_all_bad(index: XPathIndex, mode: str, threads: int | None) -> None:
    found = index.match_many(BAD_DOCUMENTS, mode=mode, threads=threads)
    assert [type(result) for result in found] == [DocumentError] * len(BAD_DOCUMENTS)


@every_mode
@pytest.mark.parametrize("threads", [1, 3])
def test_what_is_no_document_at_all_is_the_callers_mistake(index: XPathIndex, mode: str, threads: int) -> None:
    with pytest.raises(TypeError):
        index.match_many(["<a/>", 7, "<a/>"], mode=mode, threads=threads)
    assert len(index.match_many(["<a/>"], mode=mode, threads=threads)) == 1


@every_mode
@some_threads
def test_no_documents_and_one(index: XPathIndex, texts: list[str], mode: str, threads: int | None) -> None:
    assert index.match_many([], mode=mode, threads=threads) == []
    (found,) = index.match_many(iter(texts[1:2]), mode=mode, threads=threads)
    assert found.tolist() == index.match(texts[1]).tolist()


@every_mode
def test_more_threads_than_a_crew_may_have(index: XPathIndex, texts: list[str], mode: str) -> None:
    found = index.match_many([texts[1]] * 3, mode=mode, threads=20)
    assert [result.tolist() for result in found] == [index.match(texts[1]).tolist()] * 3


def test_callers_do_not_disturb_each_other(index: XPathIndex, texts: list[str], alone: list[list[int]]) -> None:
    def call(mode: str) -> list[list[int]]:
        return [result.tolist() for result in index.match_many(texts, mode=mode, threads=2)]

    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(call, MODES)) == [alone] * 3


def test_no_thread_stays_behind(index: XPathIndex, texts: list[str]) -> None:
    index.wait_until_merged()
    before = threading.active_count()
    for mode in MODES:
        index.match_many([*texts, "<bad"], mode=mode, threads=4)
    assert threading.active_count() == before


@pytest.mark.parametrize("mode", ["", "ME-CP", "mp-ec", None])
def test_an_unknown_mode_is_refused(mode: str) -> None:
    with pytest.raises(ValueError, match="me-ip"):
        XPathIndex().match_many([], mode=mode)


@pytest.mark.parametrize("threads", [0, -1])
def test_a_number_of_threads_that_makes_no_sense_is_refused(threads: int) -> None:
    with pytest.raises(ValueError, match="threads"):
        XPathIndex().match_many(["<a/>"], threads=threads)


@both_algorithms
@fewer(4)
@given(
    st.lists(drawn(native_expression) | drawn(other_expression), min_size=12, max_size=12),
    st.lists(documents, min_size=3, max_size=3),
)
def test_random_subscriptions_agree_with_lxml_in_every_mode(
    algorithm: str, expressions: list[str], texts: list[str]
) -> None:
    index = XPathIndex(algorithm=algorithm)
    subscriptions = dict(zip(index.add_many(expressions, NAMESPACES).tolist(), expressions, strict=True))
    expected = [matching(subscriptions, text, NAMESPACES) for text in texts]
    for mode in MODES:
        found = index.match_many(texts, mode=mode, threads=2)
        assert [result.tolist() for result in found] == expected
