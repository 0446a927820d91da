"""How long an update takes while a million subscriptions are loaded, and what a matcher feels of it.

    matcher     ▬▬ ▬▬ ▬▬ ▬▬ ▬▬  │  ▬▬ ▬▬▬ ▬▬ ▬▬▬▬ ▬▬      each document compared with its own usual time
    updates                     │  + + + + - - - - -
                    alone       │      meanwhile

Documents differ in cost, so a pause is how much longer a document took than its own median when nothing else
went on. The longest pause meanwhile, less the longest pause alone, is what updates and merges cost a matcher.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import perf_counter, sleep
from typing import Any

import numpy as np

from benchmarks.answers import WrongAnswerError, XPathLoop
from benchmarks.floors import bound
from benchmarks.measure import quiet
from benchmarks.report import Row
from benchmarks.workbench import Load, Workbench, progress

__all__ = ["update"]


def update(bench: Workbench) -> list[Row]:
    """Add and remove one by one, first alone, then beside a matcher; all answers compared."""
    n = bench.sizes.million
    updates = Updates(bench, bench.load(n))
    progress(f"{2 * bench.sizes.n_updates:,} updates of {n:,} subscriptions, alone, then beside a matcher")
    with quiet():
        alone = updates.run()
        still = updates.watch(lambda: sleep(bench.sizes.watch_seconds))
        beside: list[tuple[str, np.ndarray]] = []
        busy = updates.watch(lambda: beside.extend(updates.run()))
    updates.check_as_before()
    return [
        *(row for verb, times in alone for row in _update_rows(verb, n, times)),
        *(row for verb, times in beside for row in _update_rows(f"{verb}, beside a matcher", n, times)),
        *_pause_rows(n, still, busy),
    ]


class Updates:
    """Expressions that come and go on top of a loaded index, and what documents match before and after."""

    def __init__(self, bench: Workbench, load: Load) -> None:
        self._bench, self._load = bench, load
        self._texts = bench.expressions(bench.sizes.n_updates, after=len(load.ids))
        self._expected = [load.index.match(document) for document in bench.documents]

    def run(self) -> list[tuple[str, np.ndarray]]:
        """Add all, check, remove all; the seconds of each call."""
        index = self._load.index
        ids, adding = _timed(index.add, self._texts)
        self._check_added(np.array(ids))
        _, removing = _timed(index.remove, ids)
        return [("add", adding), ("remove", removing)]

    def watch(self, meanwhile: Callable[[], None]) -> list[np.ndarray]:
        """The seconds of each document, time after time, that a matcher took meanwhile."""
        with _matching(Matcher(self._load, self._bench.documents, self._expected)) as matcher:
            meanwhile()
        return [np.array(times) for times in matcher.times]

    def check_as_before(self) -> None:
        for position, document in enumerate(self._bench.documents):
            found = self._load.index.match(document)
            self._bench.checks.equal(f"document {position} after updates", found, self._expected[position])

    def _check_added(self, ids: np.ndarray) -> None:
        step = max(1, len(ids) // self._bench.sizes.n_sampled)
        sample, loop = ids[::step], XPathLoop(self._texts[::step])
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


def _timed(action: Callable[[Any], Any], arguments: Sequence[Any]) -> tuple[list[Any], np.ndarray]:
    """The result of each call, and its seconds."""
    results, times = [], np.empty(len(arguments))
    for position, argument in enumerate(arguments):
        start = perf_counter()
        results.append(action(argument))
        times[position] = perf_counter() - start
    return results, times


def _update_rows(what: str, n: int, times: np.ndarray) -> list[Row]:
    half, most = np.percentile(times * 1e3, (50, 99))
    ceiling = bound("ms of 99% of updates", n)
    return [
        Row("update", f"{what}, median", n, float(half), "ms"),
        Row("update", f"{what}, 99th percentile", n, float(most), "ms", at_most=ceiling),
        Row("update", f"{what}, slowest", n, float(times.max()) * 1e3, "ms"),
    ]


def _pause_rows(n: int, still: list[np.ndarray], busy: list[np.ndarray]) -> list[Row]:
    usual = [float(np.median(times)) for times in still]
    pauses = [_pauses(times, usual) * 1e3 for times in (still, busy)]
    longest = [float(pause.max()) for pause in pauses]
    return [
        Row("update", "matcher's usual time", n, float(np.mean(usual)) * 1e3, "ms"),
        Row("update", "matcher's longest pause, alone", n, longest[0], "ms"),
        Row("update", "matcher's 99th percentile of pauses, beside updates", n, _percentile(pauses[1]), "ms"),
        Row("update", "matcher's longest pause, beside updates", n, longest[1], "ms"),
        Row(
            "update",
            "longer by",
            n,
            longest[1] - longest[0],
            "ms",
            at_most=bound("ms that updates pause a matcher", n),
        ),
    ]


def _pauses(times: list[np.ndarray], usual: list[float]) -> np.ndarray:
    return np.concatenate([document - median for document, median in zip(times, usual, strict=True)])


def _percentile(pauses: np.ndarray) -> float:
    return float(np.percentile(pauses, 99))
