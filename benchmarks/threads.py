"""What a second thread is worth: for documents or events that queue, and for one large document that waits.

A control runs beside them: hashing of bytes, which shares nothing between threads. Where it does not come near
2, the machine had no second core to give, and the other ratios say little.
"""

import hashlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np

from benchmarks.answers import Checks
from benchmarks.bool_workbench import BooleanWorkbench
from benchmarks.measure import interleave, seconds
from benchmarks.report import Row, ratio
from benchmarks.workbench import Workbench, progress

__all__ = ["event_throughput", "latency", "throughput"]

QUEUE_PASSES = 4
HASHED = [bytes(20_000_000)] * 4

Match = Callable[..., Sequence[Any]]
"""Matches a queue with as many `threads`."""


def throughput(bench: Workbench) -> list[Row]:
    """Documents in a queue, me-cp; every answer compared with that of `match`."""
    n = bench.sizes.many
    index, queue = bench.load(n).index, bench.documents * QUEUE_PASSES
    progress(f"queue of {len(queue)} documents, one and two threads, {n:,} subscriptions")
    match = partial(index.match_many, queue, mode="me-cp")
    _check(bench.checks, "document", match, [index.match(document) for document in queue])
    one, two, control = _one_and_two("threads", match, n, bench.sizes.n_rounds)
    return [*_throughput_rows("threads", "me-cp", n, len(queue) / one, len(queue) / two, "documents/s"), control]


def event_throughput(bench: BooleanWorkbench) -> list[Row]:
    """Events in a queue; every answer compared with that of `match`."""
    n, workload = bench.sizes.million, "dense"
    load, queue = bench.load(workload, n), bench.events(workload)
    progress(f"queue of {len(queue)} events, one and two threads, {n:,} subscriptions")
    match, expected = partial(load.index.match_many, queue), [load.index.match(event) for event in queue]
    bench.check_columns(workload, load, queue, expected)
    bench.settle(load, [queue])
    _check(bench.checks, "event", match, expected)
    one, two, control = _one_and_two("bool-threads", match, n, bench.sizes.n_rounds)
    return [*_throughput_rows("bool-threads", workload, n, len(queue) / one, len(queue) / two, "events/s"), control]


def latency(bench: Workbench) -> list[Row]:
    """One large document, se-cp; every answer compared with that of `match`."""
    return [row for n in (bench.sizes.many, bench.sizes.million) for row in _latency(bench, n)]


def _latency(bench: Workbench, n: int) -> list[Row]:
    index, document = bench.load(n).index, bench.large_document
    n_elements = document.count(b"</")
    progress(f"one document of {n_elements:,} elements, one and two threads, {n:,} subscriptions")
    match = partial(index.match_many, [document], mode="se-cp")
    _check(bench.checks, "document", match, [index.match(document)])
    one, two, control = _one_and_two("latency", match, n, bench.sizes.n_rounds)
    what = f"{n_elements:,} elements, se-cp"
    return [
        Row("latency", f"{what}, 1 thread", n, one * 1e3, "ms"),
        Row("latency", f"{what}, 2 threads", n, two * 1e3, "ms"),
        ratio("latency", "speed of 2 threads over 1", n, one / two),
        control,
    ]


def _throughput_rows(scenario: str, what: str, n: int, one: float, two: float, unit: str) -> list[Row]:
    """How much goes through with one thread and with two."""
    return [
        Row(scenario, f"{what}, 1 thread", n, one, unit),
        Row(scenario, f"{what}, 2 threads", n, two, unit),
        ratio(scenario, f"{what}: throughput of 2 threads over 1", n, two / one),
    ]


def _check(checks: Checks, item: str, match: Match, expected: Sequence[np.ndarray]) -> None:
    for threads in (1, 2):
        for position, found in enumerate(match(threads=threads)):
            if isinstance(found, Exception):
                raise found
            checks.equal(f"{item} {position} with {threads} threads and match", found, expected[position])


def _one_and_two(scenario: str, match: Match, n: int, n_rounds: int) -> tuple[float, float, Row]:
    """Seconds with one thread and with two, and what the control made of two meanwhile."""
    sides = {f"match {threads}": _timed(partial(match, threads=threads)) for threads in (1, 2)}
    with ThreadPoolExecutor(1) as one, ThreadPoolExecutor(2) as two:
        sides |= {"hash 1": _timed(partial(_hash, one)), "hash 2": _timed(partial(_hash, two))}
        medians = interleave(sides, 2 * n_rounds + 1)
    first, second, hash_first, hash_second = (float(medians[name][0]) for name in sides)
    control = Row(scenario, "control: hashing, 2 threads over 1", n, hash_first / hash_second, "×")
    return first, second, control


def _timed(action: Callable[[], Any]) -> Callable[[], list[float]]:
    return lambda: [seconds(action)]


def _hash(pool: ThreadPoolExecutor) -> list[Any]:
    return list(pool.map(hashlib.sha256, HASHED))
