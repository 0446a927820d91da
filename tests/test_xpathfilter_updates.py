"""Adding and removing: every match sees one version of the subscriptions, and lxml agrees about it.

A state machine plays random updates against a plain dict. Threads then match while others update, and each result
must be right for a version between the start and the end of its match.
"""

import itertools
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import oracle
import pytest
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

N_UPDATES = 150

clock = itertools.count()  # next() is one step of the interpreter, so that ticks are in order


@dataclass
class Life:
    """When a subscription's updates started and ended; None while they have not."""

    expression: str
    add_started: int
    added: int
    removal_started: int | None = None
    removed: int | None = None

    def must_be_seen(self, started: int, ended: int) -> bool:
        return self.added < started and (self.removal_started is None or self.removal_started > ended)

    def may_be_seen(self, started: int, ended: int) -> bool:
        return self.add_started < ended and (self.removed is None or self.removed > started)


@dataclass
class History:
    """What updaters did and what matchers saw."""

    lives: dict[int, Life] = field(default_factory=dict)
    matches: list[tuple[int, int, str, list[int]]] = field(default_factory=list)

    def update(self, index: XPathIndex, random: Random) -> None:
        mine: list[int] = []
        for _ in range(N_UPDATES):
            if mine and random.random() < 0.45:
                self.remove(index, [mine.pop(random.randrange(len(mine)))])
            make = random.choice((native_expression, native_expression, other_expression))
            mine += self.add(index, [make(random.choice) for _ in range(random.choice((1, 1, 1, 20)))])

    def add(self, index: XPathIndex, expressions: list[str]) -> list[int]:
        started = next(clock)
        if len(expressions) == 1:
            ids = [index.add(expressions[0], NAMESPACES)]
        else:
            ids = index.add_many(expressions, NAMESPACES).tolist()
        ended = next(clock)
        for number, expression in zip(ids, expressions, strict=True):
            self.lives[number] = Life(expression, started, ended)
        return ids

    def remove(self, index: XPathIndex, ids: list[int]) -> None:
        for number in ids:
            self.lives[number].removal_started = next(clock)
            index.remove(number)
            self.lives[number].removed = next(clock)

    def match(self, match: Callable[[str], Any], texts: list[str], done: threading.Event) -> None:
        for text in itertools.cycle(texts):
            if done.is_set():
                return
            started = next(clock)
            found = match(text).tolist()
            self.matches.append((started, next(clock), text, found))

    def mistakes(self) -> list[str]:
        expressions = {number: life.expression for number, life in self.lives.items()}
        texts = {text for _, _, text, _ in self.matches}
        right = {text: set(oracle.matching(expressions, text, NAMESPACES)) for text in texts}
        return [
            mistake
            for started, ended, text, found in self.matches
            for mistake in self.mistakes_between(started, ended, right[text], set(found))
        ]

    def mistakes_between(self, started: int, ended: int, right: set[int], found: set[int]) -> Iterator[str]:
        may = {number for number in right if self.lives[number].may_be_seen(started, ended)}
        must = {number for number in right if self.lives[number].must_be_seen(started, ended)}
        yield from (f"subscription {number} was missed" for number in sorted(must - found))
        yield from (f"subscription {number} was found" for number in sorted(found - may))


@both_algorithms
def test_threads_match_while_others_update(algorithm: str) -> None:
    index, history, done = XPathIndex(algorithm=algorithm), History(), threading.Event()
    random = Random(41)
    texts = [document(random.choice, random.randrange(1, 30)) for _ in range(8)]

    def match_in_a_crew(text: str) -> Any:
        return index.match_many([text], threads=2)[0]

    with ThreadPoolExecutor(5) as pool:
        matchers = [pool.submit(history.match, index.match, texts, done) for _ in range(2)]
        matchers.append(pool.submit(history.match, match_in_a_crew, texts, done))
        updaters = [pool.submit(history.update, index, Random(seed)) for seed in (1, 2)]
        wait(updaters)
        done.set()
    for thread in (*updaters, *matchers):
        thread.result()
    assert len(history.lives) > 2 * N_UPDATES
    assert len(history.matches) > len(texts)
    assert history.mistakes() == []


def test_the_check_of_histories_can_fail() -> None:
    history = History({1: Life("//a", 0, 1), 2: Life("//a", 0, 1, 2, 3)}, [(4, 5, "<a/>", [2])])
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
