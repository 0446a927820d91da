"""Adding and removing Boolean subscriptions: every match sees one version of them, and the oracle agrees about it."""

import itertools
import threading
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from bool_oracle import matches
from bool_strategies import XPATHS, events, expressions
from histories import N_UPDATES, History
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test
from strategies import fewer

from boolmatch import BooleanIndex, UnknownSubscription
from boolmatch.algorithms import ALGORITHMS
from boolmatch.columns import predicate_columns
from boolmatch.expression import render
from boolmatch.parser import parse

pytestmark = pytest.mark.kernels

every_algorithm = pytest.mark.parametrize("algorithm", ["auto", *ALGORITHMS])


@st.composite
def drawn(draw: st.DrawFn, strategy: Any) -> Any:
    """The same, with a short name: hypothesis writes strategies out."""
    return draw(strategy())


texts, some_events = drawn(expressions).map(render), drawn(events)


def agrees(text: str, event: dict[str, Any]) -> bool:
    return matches(parse(text), event, lambda path: path == XPATHS[0])


class Updates(RuleBasedStateMachine):
    """The index against a dict from ids to expressions, with the oracle to say who matches."""

    algorithm = "auto"

    def __init__(self) -> None:
        super().__init__()
        self.index = BooleanIndex(self.algorithm, decide=XPATHS.index)
        self.model: dict[int, str] = {}
        self.highest = 0

    @rule(text=texts)
    def add(self, text: str) -> None:
        self.remember([self.index.add(text)], [text])

    @rule(several=st.lists(texts, max_size=6), copies=st.sampled_from([1, 1, 30]))
    def add_many(self, several: list[str], copies: int) -> None:
        self.remember(self.index.add_many(several * copies).tolist(), several * copies)

    @rule(constants=st.lists(st.integers(-2, 4), min_size=1, max_size=5))
    def add_columns(self, constants: list[int]) -> None:
        columns = predicate_columns([1] * len(constants), ["a"] * len(constants), [">="] * len(constants), constants)
        self.remember(self.index.add_many(columns).tolist(), [f"a >= {constant}" for constant in constants])

    @rule(good=st.lists(texts, max_size=3), bad=st.sampled_from(["a >", "a LIKE 5", "a IN ()"]))
    def add_many_with_a_bad_one(self, good: list[str], bad: str) -> None:
        errors: list[Any] = []
        ids = self.index.add_many([*good, bad], errors=errors).tolist()
        assert [position for position, _ in errors] == [len(good)]
        assert ids[-1] == -1
        self.remember(ids[:-1], good)

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def remove_many(self, data: st.DataObject) -> None:
        gone = data.draw(st.lists(st.sampled_from(sorted(self.model)), unique=True))
        self.index.remove_many(gone)
        for subscription in gone:
            del self.model[subscription]

    @rule()
    def remove_an_unknown_one(self) -> None:
        gone = [number for number in range(1, self.highest + 1) if number not in self.model]
        for unknown in (*gone[:2], self.highest + 1, 0, -1):
            with pytest.raises(UnknownSubscription):
                self.index.remove(unknown)

    @rule(event=some_events)
    def match(self, event: dict[str, Any]) -> None:
        found = self.index.match(event, true_paths=[0]).tolist()
        assert found == [number for number, text in self.model.items() if agrees(text, event)]

    @rule()
    def wait_until_merged(self) -> None:
        self.index.wait_until_merged()

    @rule(mmap=st.booleans())
    def save_and_load(self, mmap: bool) -> None:
        with TemporaryDirectory() as folder:
            self.index.save(Path(folder) / "index.sieve")
            self.index = BooleanIndex.load(Path(folder) / "index.sieve", mmap=mmap, decide=XPATHS.index)

    @invariant()
    def the_living_are_known(self) -> None:
        assert len(self.index) == len(self.model)
        assert all(subscription in self.index for subscription in itertools.islice(self.model, 5))

    def remember(self, ids: list[int], added: list[str]) -> None:
        assert all(number > self.highest for number in ids)
        self.highest = max(ids, default=self.highest)
        self.model |= zip(ids, added, strict=True)


@every_algorithm
def test_random_updates_leave_what_a_dict_would_hold(algorithm: str) -> None:
    machine = type("Updates", (Updates,), {"algorithm": algorithm})
    run_state_machine_as_test(machine, settings=settings(fewer(4), stateful_step_count=20))


def some_text(random: Random) -> str:
    comparisons = (
        f"a = {random.randrange(8)}",
        f"b > {random.randrange(8)}",
        f"c IN ('x{random.randrange(4)}', 'x{random.randrange(4)}')",
        f"NOT d <= {random.randrange(8)}",
        f"a BETWEEN {random.randrange(4)} AND {random.randrange(2, 8)}",
    )
    return random.choice((" AND ", " AND ", " OR ")).join(random.sample(comparisons, random.randrange(1, 4)))


def some_event(random: Random) -> dict[str, Any]:
    numbers = {name: random.randrange(8) for name in random.sample("abd", 2)}
    return {**numbers, "c": f"x{random.randrange(4)}"}


@every_algorithm
def test_hundreds_of_single_updates_and_merges(algorithm: str) -> None:
    random, index, model = Random(31), BooleanIndex(algorithm), {}
    happening = [some_event(random) for _ in range(3)]
    for number in range(700):
        if model and random.random() < 0.4:
            gone = random.choice(list(model))
            index.remove(gone)
            del model[gone]
        text = some_text(random)
        model[index.add(text)] = text
        if number % 100 == 0:
            index.wait_until_merged()
            for event in happening:
                assert index.match(event).tolist() == [i for i, known in model.items() if agrees(known, event)]
    assert len(index.stats()["segments"]) < 10


@every_algorithm
def test_threads_match_while_others_update(algorithm: str) -> None:
    index, done, random = BooleanIndex(algorithm), threading.Event(), Random(41)

    def add(several: list[str]) -> list[int]:
        return [index.add(several[0])] if len(several) == 1 else index.add_many(several).tolist()

    def right(known: dict[int, str], event: dict[str, Any]) -> set[int]:
        return {number for number, text in known.items() if agrees(text, event)}

    def match_with_two_threads(event: dict[str, Any]) -> Any:
        return index.match_many([event] * 20, threads=2)[13]

    history = History(add, index.remove, right)
    history.items = [some_event(random) for _ in range(8)]
    with ThreadPoolExecutor(4) as pool:
        matchers = [pool.submit(history.watch, match, done) for match in (index.match, match_with_two_threads)]
        updaters = [pool.submit(history.update, some_text, Random(seed)) for seed in (1, 2)]
        wait(updaters)
        done.set()
    for thread in (*updaters, *matchers):
        thread.result()
    assert len(history.lives) > 2 * N_UPDATES
    assert len(history.matches) > len(history.items)
    assert history.mistakes() == []
