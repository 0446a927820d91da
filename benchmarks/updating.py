"""How long an update takes while a million subscriptions are loaded, and what a matcher feels of it.

    matcher     ▬▬ ▬▬ ▬▬ ▬▬ ▬▬  │  ▬▬ ▬▬▬ ▬▬ ▬▬▬▬ ▬▬      each document compared with its own usual time
    updates                     │  + + + + - - - - -
                    alone       │      meanwhile

Documents differ in cost, so a pause is how much longer a document took than its own median when nothing else
went on. The longest pause alone stands beside the longest meanwhile: it is the machine's own.
Updates come paced, one every few milliseconds, then without a break, which is the most a thread can do, and then as
whole loads of many with the merges that follow. An idle process runs beside it all: a pause that it feels too is the
machine's.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import perf_counter, sleep
from typing import Any

import numpy as np

from benchmarks.answers import WrongAnswerError, XPathLoop
from benchmarks.floors import bound
from benchmarks.heartbeat import Heartbeat
from benchmarks.measure import quiet
from benchmarks.report import Row
from benchmarks.workbench import Load, Workbench, progress

__all__ = ["update"]

PACE_SECONDS = 4e-3
N_LOADS = 4
N_CHECKED = 100
"""How many of the added expressions lxml is asked about; it holds the GIL, so a matcher feels it."""

Times = dict[str, np.ndarray]


def update(bench: Workbench) -> list[Row]:
    """Add and remove one by one, first alone, then beside a matcher; all answers compared."""
    n, sizes = bench.sizes.million, bench.sizes
    updates = Updates(bench, bench.load(n))
    progress(f"{2 * sizes.n_updates:,} updates of {n:,} subscriptions, alone, then beside a matcher")
    with quiet(), Heartbeat() as heart:
        rows = _update_rows("", n, updates.run(sizes.n_updates))
        still = updates.watch(lambda: sleep(sizes.watch_seconds))
        paced, paced_times = updates.watch_updates(sizes.n_paced_updates, PACE_SECONDS)
        rushed, rushed_times = updates.watch_updates(sizes.n_updates, 0.0)
        progress(f"{N_LOADS} loads of {sizes.many:,} on top of {n:,} subscriptions, beside a matcher")
        loaded, load_seconds = updates.watch_loads(sizes.many)
    updates.check_as_before()
    return [
        *rows,
        *_update_rows(", paced, beside a matcher", n, paced_times),
        *_update_rows(", without a break, beside a matcher", n, rushed_times),
        Row("update", f"add_many of {sizes.many:,}, beside a matcher", n, sizes.many / load_seconds, "/s"),
        *_pause_rows(n, still, {"paced updates": paced, "updates without a break": rushed, "add_many": loaded}),
        Row("update", "longest pause of an idle process", n, heart.longest_gap * 1e3, "ms"),
    ]


class Updates:
    """Expressions that come and go on top of a loaded index, and what documents match before and after."""

    def __init__(self, bench: Workbench, load: Load) -> None:
        self._bench, self._load = bench, load
        self._expected = [load.index.match(document) for document in bench.documents]

    def run(self, n_updates: int, break_seconds: float = 0.0) -> Times:
        """Add so many, check, remove them; the seconds of each call."""
        index, texts = self._load.index, self._bench.expressions(n_updates, after=len(self._load.ids))
        ids, adding = _timed(index.add, texts, break_seconds)
        self._check_added(texts, np.array(ids))
        _, removing = _timed(index.remove, ids, break_seconds)
        return {"add": adding, "remove": removing}

    def watch(self, meanwhile: Callable[[], None]) -> list[np.ndarray]:
        """The seconds of each document, time after time, that a matcher took meanwhile."""
        with _matching(Matcher(self._load, self._bench.documents, self._expected)) as matcher:
            meanwhile()
        return [np.array(times) for times in matcher.times]

    def watch_updates(self, n_updates: int, break_seconds: float) -> tuple[list[np.ndarray], Times]:
        """The seconds of documents beside updates, and those of the updates."""
        times: Times = {}
        documents = self.watch(lambda: times.update(self.run(n_updates, break_seconds)))
        return documents, times

    def watch_loads(self, n_each: int) -> tuple[list[np.ndarray], float]:
        """The seconds of documents beside loads of many, with the merges that follow, and those of one load."""
        index, texts = self._load.index, self._bench.expressions(N_LOADS * n_each, after=len(self._load.ids))
        times, ids = [], []

        def load() -> None:
            for first in range(0, len(texts), n_each):
                start = perf_counter()
                ids.append(index.add_many(texts[first : first + n_each]))
                times.append(perf_counter() - start)
                index.wait_until_merged()

        documents = self.watch(load)
        self._check_added(texts, np.concatenate(ids))
        index.remove_many(np.concatenate(ids))
        return documents, float(np.median(times))

    def check_as_before(self) -> None:
        for position, document in enumerate(self._bench.documents):
            found = self._load.index.match(document)
            self._bench.checks.equal(f"document {position} after updates", found, self._expected[position])

    def _check_added(self, texts: list[str], ids: np.ndarray) -> None:
        step = max(1, len(ids) // N_CHECKED)
        sample, loop = ids[::step], XPathLoop(texts[::step])
        for position in self._bench.some_documents(3):
            document = self._bench.documents[position]
            found = np.intersect1d(self._load.index.match(document), sample)
            self._bench.checks.equal(f"document {position} after adds", found, sample[loop.match(document)])


class Matcher(threading.Thread):
    """Matches the documents over and over and notes each time; what was loaded before must keep matching."""

    def __init__(self, load: Load, documents: Sequence[bytes], expected: Sequence[np.ndarray]) -> None:
        super().__init__(name="matcher", daemon=True)
        self.times: list[list[float]] = [[] for _ in documents]
        self.stopping = threading.Event()
        self.wrong: WrongAnswerError | None = None
        self._load, self._documents, self._expected = load, documents, expected

    def run(self) -> None:
        while not self.stopping.is_set() and self.wrong is None:
            for position, document in enumerate(self._documents):
                start = perf_counter()
                matched = self._load.index.match(document)
                self.times[position].append(perf_counter() - start)
                self._check(position, matched)

    def _check(self, position: int, matched: np.ndarray) -> None:
        old, expected = matched[matched <= self._load.ids[-1]], self._expected[position]
        if not np.array_equal(old, expected):
            self.wrong = WrongAnswerError(f"document {position} during updates", old, expected)


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


def _update_rows(how: str, n: int, seconds: Times) -> list[Row]:
    ceiling = bound("ms of 99% of updates", n)
    rows = []
    for verb, times in seconds.items():
        half, most = np.percentile(times * 1e3, (50, 99))
        rows += [
            Row("update", f"{verb}{how}, median", n, float(half), "ms"),
            Row("update", f"{verb}{how}, 99th percentile", n, float(most), "ms", at_most=ceiling),
            Row("update", f"{verb}{how}, slowest", n, float(times.max()) * 1e3, "ms"),
        ]
    return rows


def _pause_rows(n: int, still: list[np.ndarray], busy: dict[str, list[np.ndarray]]) -> list[Row]:
    usual = [float(np.median(times)) for times in still]
    pauses = {what: _pauses(times, usual) for what, times in {"alone": still, **busy}.items()}
    ceiling = bound("ms that updates pause a matcher", n)
    rows = [Row("update", "matcher's usual time", n, float(np.mean(usual)) * 1e3, "ms")]
    for what, late in pauses.items():
        most, last = float(np.percentile(late, 99)), float(late.max())
        rows += [
            Row("update", f"matcher's pauses, {what}, 99th percentile", n, most, "ms"),
            Row(
                "update", f"matcher's pauses, {what}, longest", n, last, "ms", at_most=ceiling if what in busy else None
            ),
        ]
    return rows


def _pauses(times: list[np.ndarray], usual: list[float]) -> np.ndarray:
    """How many milliseconds each match took beyond what is usual for its document."""
    return np.concatenate([document - median for document, median in zip(times, usual, strict=True)]) * 1e3
