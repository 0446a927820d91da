"""How long an update takes while a million subscriptions are loaded, and what a matcher feels of it.

    matcher     ▬▬ ▬▬ ▬▬ ▬▬ ▬▬  │  ▬▬ ▬▬▬ ▬▬ ▬▬▬▬ ▬▬      each item compared with its own usual time
    updates                     │  + + + + - - - - -
                    alone       │      meanwhile

An item is a document or an event. They differ in cost, so a pause is how much longer an item took than its own median
when nothing else went on. The longest pause alone stands beside the longest meanwhile: it is the machine's own.
Updates come paced, one every few milliseconds, then without a break, which is the most a thread can do, and then as
whole loads of many with the merges that follow. An idle process runs beside it all: a pause that it feels too is the
machine's.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from time import perf_counter, sleep
from typing import Any

import numpy as np

from benchmarks.answers import Checks, ColumnLoop, WrongAnswerError, XPathLoop
from benchmarks.bool_workbench import BooleanWorkbench
from benchmarks.floors import bound
from benchmarks.heartbeat import Heartbeat
from benchmarks.measure import quiet, spread
from benchmarks.report import Row
from benchmarks.workbench import Load, Sizes, Workbench, progress

__all__ = ["update", "update_events"]

PACE_SECONDS = 4e-3
N_LOADS = 4
N_CHECKED = 100
"""How many of the added expressions lxml is asked about; it holds the GIL, so a matcher feels it."""

Times = dict[str, np.ndarray]
Loop = XPathLoop | ColumnLoop


@dataclass(frozen=True)
class Scene:
    """What one engine brings: a loaded index, items to match, and subscriptions that come and go."""

    scenario: str
    load: Load
    items: Sequence[Any]
    texts: Callable[[int], list[str]]
    """So many subscriptions, none of which is loaded."""
    loop: Callable[[int], tuple[np.ndarray, Loop]]
    """The oracle of some of those, and which of them it answers for."""
    longest_pause: float | None = None


def update(bench: Workbench) -> list[Row]:
    """Add and remove expressions, documents meanwhile."""
    n = bench.sizes.million

    def loop(n_added: int) -> tuple[np.ndarray, Loop]:
        step = max(1, n_added // N_CHECKED)
        return np.arange(0, n_added, step), XPathLoop(bench.expressions(n_added, after=n)[::step])

    ceiling = bound("ms that updates pause a matcher", n)
    texts = partial(bench.expressions, after=n)
    return _update(Scene("update", bench.load(n), bench.documents, texts, loop, ceiling), bench.sizes, bench.checks)


def update_events(bench: BooleanWorkbench) -> list[Row]:
    """Add and remove Boolean subscriptions, events meanwhile."""
    n, name = bench.sizes.million, "dense"
    workload, load = bench.workload(name), bench.load(name, n)

    def loop(n_added: int) -> tuple[np.ndarray, Loop]:
        return np.arange(n_added), ColumnLoop(workload.columns(n_added, after=n))

    events = workload.events(bench.sizes.n_documents)
    bench.settle(load, [[event] for event in events])
    bench.check_columns(name, load, events, load.index.match_many(events))
    texts = partial(workload.texts, after=n)
    return _update(Scene("bool-update", load, events, texts, loop), bench.sizes, bench.checks)


def _update(scene: Scene, sizes: Sizes, checks: Checks) -> list[Row]:
    """Add and remove one by one, first alone, then beside a matcher; all answers compared."""
    updates, n = Updates(scene, checks), len(scene.load.ids)
    progress(f"{2 * sizes.n_updates:,} updates of {n:,} subscriptions, alone, then beside a matcher")
    with quiet(), Heartbeat() as heart:
        rows = _update_rows(scene, "", updates.run(sizes.n_updates))
        still = updates.watch(lambda: sleep(sizes.watch_seconds))
        paced, paced_times = updates.watch_updates(sizes.n_paced_updates, PACE_SECONDS)
        rushed, rushed_times = updates.watch_updates(sizes.n_updates, 0.0)
        progress(f"{N_LOADS} loads of {sizes.many:,} on top of {n:,} subscriptions, beside a matcher")
        loaded, load_seconds = updates.watch_loads(sizes.many)
    updates.check_as_before()
    return [
        *rows,
        *_update_rows(scene, ", paced, beside a matcher", paced_times),
        *_update_rows(scene, ", without a break, beside a matcher", rushed_times),
        Row(scene.scenario, f"add_many of {sizes.many:,}, beside a matcher", n, sizes.many / load_seconds, "/s"),
        *_pause_rows(scene, still, {"paced updates": paced, "updates without a break": rushed, "add_many": loaded}),
        Row(scene.scenario, "longest pause of an idle process", n, heart.longest_gap * 1e3, "ms"),
    ]


class Updates:
    """Subscriptions that come and go on top of a loaded index, and what items match before and after."""

    def __init__(self, scene: Scene, checks: Checks) -> None:
        self._scene, self._checks = scene, checks
        self._match = scene.load.index.match
        self._expected = [self._match(item) for item in scene.items]

    def run(self, n_updates: int, break_seconds: float = 0.0) -> Times:
        """Add so many, check, remove them; the seconds of each call."""
        index = self._scene.load.index
        ids, adding = _timed(index.add, self._scene.texts(n_updates), break_seconds)
        self._check_added(np.array(ids))
        _, removing = _timed(index.remove, ids, break_seconds)
        return {"add": adding, "remove": removing}

    def watch(self, meanwhile: Callable[[], None]) -> list[np.ndarray]:
        """The seconds of each item, time after time, that a matcher took meanwhile."""
        with _matching(Matcher(self._scene, self._expected)) as matcher:
            meanwhile()
        return [np.array(times) for times in matcher.times]

    def watch_updates(self, n_updates: int, break_seconds: float) -> tuple[list[np.ndarray], Times]:
        """The seconds of items beside updates, and those of the updates."""
        times: Times = {}
        items = self.watch(lambda: times.update(self.run(n_updates, break_seconds)))
        return items, times

    def watch_loads(self, n_each: int) -> tuple[list[np.ndarray], float]:
        """The seconds of items beside loads of many, with the merges that follow, and those of one load."""
        index, texts = self._scene.load.index, self._scene.texts(N_LOADS * n_each)
        times, ids = [], []

        def load() -> None:
            for first in range(0, len(texts), n_each):
                start = perf_counter()
                ids.append(index.add_many(texts[first : first + n_each]))
                times.append(perf_counter() - start)
                index.wait_until_merged()

        items = self.watch(load)
        self._check_added(np.concatenate(ids))
        index.remove_many(np.concatenate(ids))
        return items, float(np.median(times))

    def check_as_before(self) -> None:
        for position, item in enumerate(self._scene.items):
            self._checks.equal(f"item {position} after updates", self._match(item), self._expected[position])

    def _check_added(self, ids: np.ndarray) -> None:
        places, loop = self._scene.loop(len(ids))
        sample = ids[places]
        for position in spread(3, len(self._scene.items)):
            item = self._scene.items[position]
            found = np.intersect1d(self._match(item), sample)
            self._checks.equal(f"item {position} after adds", found, sample[loop.match(item)])


class Matcher(threading.Thread):
    """Matches the items over and over and notes each time; what was loaded before must keep matching."""

    def __init__(self, scene: Scene, expected: Sequence[np.ndarray]) -> None:
        super().__init__(name="matcher", daemon=True)
        self.times: list[list[float]] = [[] for _ in scene.items]
        self.stopping = threading.Event()
        self.wrong: WrongAnswerError | None = None
        self._scene, self._expected = scene, expected

    def run(self) -> None:
        while not self.stopping.is_set() and self.wrong is None:
            for position, item in enumerate(self._scene.items):
                start = perf_counter()
                matched = self._scene.load.index.match(item)
                self.times[position].append(perf_counter() - start)
                self._check(position, matched)

    def _check(self, position: int, matched: np.ndarray) -> None:
        old, expected = matched[matched <= self._scene.load.ids[-1]], self._expected[position]
        if not np.array_equal(old, expected):
            self.wrong = WrongAnswerError(f"item {position} during updates", old, expected)


@contextmanager
def _matching(matcher: Matcher) -> Iterator[Matcher]:
    matcher.start()
    try:
        yield matcher
    finally:
        matcher.stopping.set()
        matcher.join()
    if matcher.wrong is not None:
        raise matcher.wrong


def _timed(
    action: Callable[[Any], Any], arguments: Sequence[Any], break_seconds: float
) -> tuple[list[Any], np.ndarray]:
    """The result of each call, and its seconds."""
    results, times = [], np.empty(len(arguments))
    for position, argument in enumerate(arguments):
        start = perf_counter()
        results.append(action(argument))
        times[position] = perf_counter() - start
        if break_seconds:
            sleep(break_seconds)
    return results, times


def _update_rows(scene: Scene, how: str, seconds: Times) -> list[Row]:
    scenario, n = scene.scenario, len(scene.load.ids)
    ceiling = bound("ms of 99% of updates", n)
    rows = []
    for verb, times in seconds.items():
        half, most = np.percentile(times * 1e3, (50, 99))
        rows += [
            Row(scenario, f"{verb}{how}, median", n, float(half), "ms"),
            Row(scenario, f"{verb}{how}, 99th percentile", n, float(most), "ms", at_most=ceiling),
            Row(scenario, f"{verb}{how}, slowest", n, float(times.max()) * 1e3, "ms"),
        ]
    return rows


def _pause_rows(scene: Scene, still: list[np.ndarray], busy: dict[str, list[np.ndarray]]) -> list[Row]:
    scenario, n = scene.scenario, len(scene.load.ids)
    usual = [float(np.median(times)) for times in still]
    pauses = {what: _pauses(times, usual) for what, times in {"alone": still, **busy}.items()}
    rows = [Row(scenario, "matcher's usual time", n, float(np.mean(usual)) * 1e3, "ms")]
    for what, late in pauses.items():
        most, last = float(np.percentile(late, 99)), float(late.max())
        ceiling = scene.longest_pause if what in busy else None
        rows += [
            Row(scenario, f"matcher's pauses, {what}, 99th percentile", n, most, "ms"),
            Row(scenario, f"matcher's pauses, {what}, longest", n, last, "ms", at_most=ceiling),
        ]
    return rows


def _pauses(times: list[np.ndarray], usual: list[float]) -> np.ndarray:
    """How many milliseconds each match took beyond what is usual for its item."""
    return np.concatenate([item - median for item, median in zip(times, usual, strict=True)]) * 1e3
