"""The first taste shows what is true: its documents and subscriptions are good, its answers are lxml's."""

import re

import pytest

from tests.oracle import disagreements
from xpathfilter import XPathIndex
from xpathfilter.taste import NAMED, generate_documents, generate_subscriptions, loop_over_lxml, taste

pytestmark = pytest.mark.kernels


def test_each_run_generates_the_same() -> None:
    assert generate_subscriptions(50) == generate_subscriptions(50)
    assert generate_documents(50) == generate_documents(50)
    assert generate_documents(50) != generate_documents(50, seed=1)


def test_the_index_and_the_oracle_agree_on_what_is_generated() -> None:
    subscriptions = dict(enumerate([*NAMED.values(), *generate_subscriptions(300)], start=1))
    index = XPathIndex()
    assert index.add_many(subscriptions.values()).tolist() == list(subscriptions)
    for document in generate_documents(30):
        assert disagreements(index.match(document), subscriptions, document) == {}


def test_all_named_subscribers_want_some_documents_and_not_all() -> None:
    index = XPathIndex()
    ids = index.add_many(NAMED.values()).tolist()
    results = index.match_many(generate_documents(2_000), threads=1)
    wanted = [sum(subscription_id in found for found in results) for subscription_id in ids]
    assert all(0 < n_wanted < len(results) // 3 for n_wanted in wanted), wanted


def test_the_named_subscribers_are_decided_in_three_ways() -> None:
    index = XPathIndex()
    index.add_many(NAMED.values())
    assert index.stats()["lanes"] == {"indexed": 3, "formula": 1, "verified": 1, "unindexed": 0}


def test_the_loop_tells_the_places_of_those_that_match() -> None:
    wanted, seconds = loop_over_lxml(["/a", "//b", "/a/b = 3"], ["<a/>", "<c><b/></c>", "<a><b>3</b></a>"])
    assert wanted == [[0], [1], [0, 1, 2]]
    assert seconds > 0


def test_the_taste_shows_matches_reasons_and_speed(capsys: pytest.CaptureFixture[str]) -> None:
    taste(n_subscriptions=200, n_documents=1_000)
    shown = capsys.readouterr().out
    assert "Loaded 200 subscriptions" in shown
    assert re.search(r"\n      ?\d+ <quotes><quote .*KOVA", shown), "Ada's first document is shown"
    assert "found nothing above it" in shown
    assert shown.count("        matches: ") == 2
    assert "Its answers were the same." in shown
    assert max(map(len, shown.splitlines())) <= 110


def test_the_taste_would_tell_of_a_wrong_answer(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("xpathfilter.taste.loop_over_lxml", lambda subscriptions, documents: ([[0]], 1.0))
    taste(n_subscriptions=200, n_documents=1_000)
    assert "DIFFERENT" in capsys.readouterr().out
