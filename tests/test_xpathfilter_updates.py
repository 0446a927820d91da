"""Adding and removing: every match sees one version of the subscriptions, and lxml agrees about it.

A state machine plays random updates against a plain dict. Threads then match while others update, and each result
must be right for a version between the start and the end of its match.
"""

import itertools
import threading
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import oracle
import pytest
from histories import N_UPDATES, History, Life
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test
from strategies import NAMESPACES, document, documents, drawn, fewer, native_expression, other_expression

from xpathfilter import UnknownSubscription, XPathIndex

pytestmark = pytest.mark.kernels

both_algorithms = pytest.mark.parametrize("algorithm", ["suffix", "delta"])

expressions = drawn(native_expression) | drawn(other_expression)


class Updates(RuleBasedStateMachine):
    """The index against a dict from ids to expressions, with lxml to say who matches."""

    algorithm = "suffix"

    def __init__(self) -> None:
        super().__init__()
        self.index = XPathIndex(algorithm=self.algorithm)
        self.model: dict[int, str] = {}
        self.highest = 0

    @rule(expression=expressions)
    def add(self, expression: str) -> None:
        self.remember([self.index.add(expression, NAMESPACES)], [expression])

    @rule(several=st.lists(expressions, max_size=6), copies=st.sampled_from([1, 1, 30]))
    def add_many(self, several: list[str], copies: int) -> None:
        self.remember(self.index.add_many(several * copies, NAMESPACES).tolist(), several * copies)

    @rule(good=st.lists(expressions, max_size=3), bad=st.sampled_from(["a[", "//", "f()"]))
    def add_many_with_a_bad_one(self, good: list[str], bad: str) -> None:
        errors: list[Any] = []
        ids = self.index.add_many([*good, bad], NAMESPACES, errors=errors).tolist()
        assert [position for position, _ in errors] == [len(good)]
        assert ids[-1] == -1
        self.remember(ids[:-1], good)

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        subscription = data.draw(st.sampled_from(sorted(self.model)))
        self.index.remove(subscription)
        del self.model[subscription]

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def remove_many(self, data: st.DataObject) -> None:
        gone = data.draw(st.lists(st.sampled_from(sorted(self.model)), unique=True))
        self.index.remove_many(gone)
        for subscription in gone:
            del self.model[subscription]

    @rule(ahead=st.integers(1, 3))
    def remove_an_unknown_one(self, ahead: int) -> None:
        gone = [number for number in range(1, self.highest + 1) if number not in self.model]
        for unknown in (*gone[:2], self.highest + ahead, 0, -1):
            with pytest.raises(UnknownSubscription):
                self.index.remove(unknown)

    @rule(text=documents)
    def match(self, text: str) -> None:
        found = self.index.match(text).tolist()
        assert found == sorted(found)
        assert oracle.disagreements(found, self.model, text, NAMESPACES) == {}

    @rule()
    def wait_until_merged(self) -> None:
        self.index.wait_until_merged()

    @rule(mmap=st.booleans())
    def save_and_load(self, mmap: bool) -> None:
        with TemporaryDirectory() as folder:
            self.index.save(Path(folder) / "index.sieve")
            self.index = XPathIndex.load(Path(folder) / "index.sieve", mmap=mmap)

    @invariant()
    def the_living_are_known(self) -> None:
        assert len(self.index) == len(self.model)
        assert all(subscription in self.index for subscription in itertools.islice(self.model, 5))

    def remember(self, ids: list[int], added: list[str]) -> None:
        assert all(number > self.highest for number in ids)
        assert ids == sorted(set(ids))
        self.highest = max(ids, default=self.highest)
        self.model |= zip(ids, added, strict=True)


@both_algorithms
def test_random_updates_leave_what_a_dict_would_hold(algorithm: str) -> None:
    machine = type("Updates", (Updates,), {"algorithm": algorithm})
    run_state_machine_as_test(machine, settings=settings(fewer(2), stateful_step_count=25))


# Many updates ----------------------------------------------------------------------------------------


@both_algorithms
def test_hundreds_of_single_updates_and_merges(algorithm: str) -> None:
    random, index, model = Random(31), XPathIndex(algorithm=algorithm), {}
    texts = [document(random.choice, size) for size in (3, 12, 40)]
    for number in range(700):
        if model and random.random() < 0.4:
            gone = random.choice(list(model))
            index.remove(gone)
            del model[gone]
        expression = random.choice((native_expression, native_expression, other_expression))(random.choice)
        model[index.add(expression, NAMESPACES)] = expression
        if number % 50 == 0:
            text = random.choice(texts)
            assert oracle.disagreements(index.match(text), model, text, NAMESPACES) == {}
    index.wait_until_merged()
    for text in texts:
        assert oracle.disagreements(index.match(text), model, text, NAMESPACES) == {}


def test_merging_keeps_the_number_of_segments_small() -> None:
    index = XPathIndex()
    for number in range(600):
        index.add(f"//a{number}")
    index.wait_until_merged()
    assert index.stats()["segments"] < 10
    assert index.match("<a599><a0/><a300/></a599>").tolist() == [1, 301, 600]


def test_what_is_removed_gives_its_memory_back() -> None:
    index = XPathIndex()
    kept = index.add_many(["//kept"])
    gone = index.add_many([f"//a[@x = 'value-{number}']" for number in range(5_000)])
    before = index.stats()["bytes"]
    index.remove_many(gone)
    index.wait_until_merged()
    assert index.stats()["bytes"] < before / 5
    assert index.match("<kept><a x='value-7'/></kept>").tolist() == kept.tolist()


def test_remove_many_removes_all_or_none() -> None:
    index = XPathIndex()
    ids = index.add_many(["//a", "//a", "//a"]).tolist()
    with pytest.raises(UnknownSubscription) as caught:
        index.remove_many([ids[0], 99])
    assert caught.value.subscription_id == 99
    assert index.match("<a/>").tolist() == ids
    index.remove_many([])
    index.remove_many(iter(ids[:2]))
    assert index.match("<a/>").tolist() == ids[2:]


def test_a_twin_stays_when_the_other_is_removed() -> None:
    index = XPathIndex()
    for expression in ("//a", "//a or //b", "count(//a) = 1"):
        first, second = index.add(expression), index.add(expression)
        index.remove(first)
        assert index.match("<a/>").tolist()[-1] == second
        assert first not in index.match("<a/>").tolist()


# Threads ---------------------------------------------------------------------------------------------


def history_of(index: XPathIndex) -> History:
    def add(expressions: list[str]) -> list[int]:
        if len(expressions) == 1:
            return [index.add(expressions[0], NAMESPACES)]
        return index.add_many(expressions, NAMESPACES).tolist()

    def right(expressions: dict[int, str], text: str) -> set[int]:
        return set(oracle.matching(expressions, text, NAMESPACES))

    return History(add, index.remove, right)


def some_expression(random: Random) -> str:
    return random.choice((native_expression, native_expression, other_expression))(random.choice)


@both_algorithms
def test_threads_match_while_others_update(algorithm: str) -> None:
    index, done, random = XPathIndex(algorithm=algorithm), threading.Event(), Random(41)
    history = history_of(index)
    history.items = [document(random.choice, random.randrange(1, 30)) for _ in range(8)]

    def match_in_a_crew(text: str) -> Any:
        return index.match_many([text], threads=2)[0]

    with ThreadPoolExecutor(5) as pool:
        matchers = [pool.submit(history.watch, index.match, done) for _ in range(2)]
        matchers.append(pool.submit(history.watch, match_in_a_crew, done))
        updaters = [pool.submit(history.update, some_expression, Random(seed)) for seed in (1, 2)]
        wait(updaters)
        done.set()
    for thread in (*updaters, *matchers):
        thread.result()
    assert len(history.lives) > 2 * N_UPDATES
    assert len(history.matches) > len(history.items)
    assert history.mistakes() == []


def test_the_check_of_histories_can_fail() -> None:
    history = history_of(XPathIndex())
    history.items, history.matches = ["<a/>"], [(4, 5, 0, [2])]
    history.lives = {1: Life("//a", 0, 1), 2: Life("//a", 0, 1, 2, 3)}
    assert history.mistakes() == ["subscription 1 was missed", "subscription 2 was found"]


def test_a_batch_is_seen_whole_or_not_at_all() -> None:
    index, done = XPathIndex(), threading.Event()
    counts: list[int] = []

    def watch() -> None:
        while not done.is_set():
            counts.append(len(index.match("<a/>")))

    with ThreadPoolExecutor(1) as pool:
        watcher = pool.submit(watch)
        for _ in range(20):
            ids = index.add_many(["//a", "//a or //b", "count(//a) = 1", "/a"] * 10)
            index.remove_many(ids)
        done.set()
    watcher.result()
    assert set(counts) <= {0, 40}
