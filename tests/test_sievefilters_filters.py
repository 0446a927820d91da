"""A tenant's filters: XPath, Boolean and both in one expression give the oracle's answers, while they come and go."""

import json
import random
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boolmatch import BooleanSyntaxError, EventError
from server.documents import Document
from server.subscriptions import Filter
from sievefilters import Extractors, Handle, StandingFilters
from tests.server_oracle import wanted, wants
from xpathfilter import DocumentError, NamespaceError, XPathSyntaxError

pytestmark = pytest.mark.kernels

PATHS = ["//a", "/a/b", "//b[@x='1']", "//c[b > 2]", "not(//b)", "count(//b) > 1", "/c", "//p:d"]
PREDICATES = [
    "price > 10",
    "price <= 10",
    "symbol = 'IBM'",
    "symbol LIKE 'I%'",
    "price IS NULL",
    "price BETWEEN 5 AND 20",
]
XMLS = [b"", b"<a><b x='1'>3</b></a>", b"<c><b>3</b><b>1</b></c>", b"<a/>", b"<d xmlns='urn:d'/>"]
ATTRIBUTES = [{}, {"price": 7}, {"price": 15, "symbol": "IBM"}, {"symbol": ["SUN", "ICE"]}]
NAMESPACES = (("p", "urn:d"),)


def atoms() -> st.SearchStrategy[str]:
    return st.one_of(st.sampled_from(PREDICATES), st.sampled_from(PATHS).map(quoted))


def quoted(path: str) -> str:
    return "XPATH '" + path.replace("'", "''") + "'"


def booleans() -> st.SearchStrategy[str]:
    def larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        joined = st.tuples(inner, st.sampled_from(["AND", "OR"]), inner).map(lambda parts: f"({' '.join(parts)})")
        return st.one_of(joined, inner.map(lambda part: f"NOT ({part})"))

    return st.recursive(atoms(), larger, max_leaves=5)


def filters() -> st.SearchStrategy[Filter]:
    xpath = st.sampled_from(PATHS).map(lambda text: Filter("xpath", text, NAMESPACES))
    return st.one_of(xpath, booleans().map(lambda text: Filter("boolean", text, NAMESPACES)))


DOCUMENTS = [
    Document(str(number), xml=xml, attributes=attributes)
    for number, (xml, attributes) in enumerate((xml, attributes) for xml in XMLS for attributes in ATTRIBUTES)
]


@given(st.lists(filters(), min_size=1, max_size=12), st.randoms(use_true_random=False))
def test_every_filter_gets_the_documents_that_the_oracle_says(chosen: list[Filter], choice: random.Random) -> None:
    ours = StandingFilters()
    handles = [handle for handle in ours.prepare_many(chosen) if isinstance(handle, Handle)]
    assert len(handles) == len(chosen)
    ours.reveal_many(handles, range(1, len(chosen) + 1))
    alive = dict(enumerate(chosen, start=1))
    for number in choice.sample(sorted(alive), len(alive) // 2):
        ours.discard(handles[number - 1])
        del alive[number]
    assert_wanted(ours, alive)


@given(st.lists(filters(), max_size=12), st.randoms(use_true_random=False))
@settings(max_examples=30)
def test_stored_filters_answer_the_same_and_go_on_changing(chosen: list[Filter], choice: random.Random) -> None:
    ours = StandingFilters()
    handles = ours.prepare_many(chosen)
    ours.reveal_many(handles, range(1, len(chosen) + 1))
    alive = dict(enumerate(chosen, start=1))
    for number in choice.sample(sorted(alive), len(alive) // 3):
        ours.discard(handles[number - 1])
        del alive[number]
    arrays, metadata = ours.stored()
    again = StandingFilters.from_stored(arrays, json.loads(json.dumps(metadata)))
    assert_wanted(again, alive)
    for number in choice.sample(sorted(alive), len(alive) // 2):
        again.discard(handles[number - 1])
        del alive[number]
    added = [Filter("boolean", quoted(path), NAMESPACES) for path in PATHS]
    again.reveal_many(again.prepare_many(added), range(100, 100 + len(added)))
    assert_wanted(again, alive | dict(enumerate(added, start=100)))


def assert_wanted(ours: StandingFilters, alive: dict[int, Filter]) -> None:
    for document, found in zip(DOCUMENTS, ours.match_many(DOCUMENTS), strict=True):
        assert isinstance(found, np.ndarray)
        assert found.tolist() == wanted(alive, document)


@given(filters())
@settings(max_examples=30)
def test_trying_a_filter_gives_the_oracle_s_answer_and_a_reason(filter: Filter) -> None:
    for document in DOCUMENTS[::3]:
        matches, why = StandingFilters().test(filter, document)
        assert matches == wants(filter, document)
        assert why


def test_a_prepared_filter_is_nobody_s_until_it_is_revealed() -> None:
    ours = StandingFilters()
    handle = ours.prepare(Filter("xpath", "//a"))
    document = Document("1", xml=b"<a/>")
    assert ours.match_many([document])[0].tolist() == []
    ours.reveal(handle, 5)
    assert ours.match_many([document])[0].tolist() == [5]
    ours.discard(handle)
    assert ours.match_many([document])[0].tolist() == []


def test_two_filters_of_one_owner_are_one_match() -> None:
    ours = StandingFilters()
    for filter in (Filter("xpath", "//a"), Filter("boolean", "XPATH '//a'")):
        ours.reveal(ours.prepare(filter), 5)
    assert ours.match_many([Document("1", xml=b"<a/>")])[0].tolist() == [5]


def test_atoms_are_shared_and_go_with_the_last_who_uses_them() -> None:
    ours = StandingFilters()
    handles = [ours.prepare(Filter("boolean", f"price > {n} AND XPATH '//a'")) for n in range(3)]
    assert len(ours.xpath) == 1
    for handle in handles:
        assert len(ours.xpath) == 1
        ours.discard(handle)
    assert len(ours.xpath) == 0


def test_a_refused_filter_leaves_no_atom_behind() -> None:
    ours = StandingFilters()
    with pytest.raises(XPathSyntaxError) as refused:
        ours.prepare(Filter("boolean", "XPATH '//a' AND XPATH '//['"))
    assert refused.value.column == 3
    assert len(ours.xpath) == 0


def test_bad_filters_among_many_are_refused_alone() -> None:
    chosen = [
        Filter("xpath", "//a"),
        Filter("xpath", "//["),
        Filter("boolean", "price >"),
        Filter("boolean", "price > 1"),
        Filter("xpath", "//a", (("", "urn:x"),)),
        Filter("boolean", "XPATH '//['"),
    ]
    kinds = [type(outcome) for outcome in StandingFilters().prepare_many(chosen)]
    assert kinds == [Handle, XPathSyntaxError, BooleanSyntaxError, Handle, NamespaceError, XPathSyntaxError]


def test_bad_documents_among_many_are_refused_alone() -> None:
    ours = StandingFilters()
    ours.reveal(ours.prepare(Filter("xpath", "//a")), 1)
    documents = [
        Document("good", xml=b"<a/>"),
        Document("broken", xml=b"<a>"),
        Document("not a number", xml=b"<a/>", attributes={"price": float("nan")}),
        Document("also good", xml=b"<a/>", attributes={"price": 3}),
    ]
    found = ours.match_many(documents)
    assert [type(outcome) for outcome in found] == [np.ndarray, DocumentError, EventError, np.ndarray]


def test_extractors_feed_boolean_filters_and_what_the_document_brings_wins() -> None:
    ours = StandingFilters(Extractors({"price": "number(//price)", "symbol": "//@symbol"}))
    ours.reveal(ours.prepare(Filter("boolean", "price > 100 AND symbol = 'IBM'")), 1)
    xml = b"<quotes><quote symbol='SUN'/><quote symbol='IBM'/><price>120</price></quotes>"
    plain, overruled = Document("1", xml=xml), Document("2", xml=xml, attributes={"price": 5})
    assert [found.tolist() for found in ours.match_many([plain, overruled])] == [[1], []]


def test_no_document_sees_half_of_a_filter_while_filters_come_and_go() -> None:
    """`NOT XPATH` of an atom that was not there yet would be true of every document."""
    ours = StandingFilters()
    ours.reveal(ours.prepare(Filter("xpath", "//halted")), 1)
    stop, wrong = threading.Event(), []
    halted = Document("1", xml=b"<quote><halted/></quote>", attributes={"price": 5})

    def come_and_go() -> None:
        number = 2
        while not stop.is_set():
            handle = ours.prepare(Filter("boolean", f"NOT XPATH '//halted[{number} > 0]' AND price < {number + 10}"))
            ours.reveal(handle, number)
            ours.discard(handle)
            number += 1

    changing = threading.Thread(target=come_and_go)
    changing.start()
    for _ in range(400):
        wrong += [found.tolist() for found in ours.match_many([halted] * 3) if found.tolist() != [1]]
    stop.set()
    changing.join()
    assert wrong == []
