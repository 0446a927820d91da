"""What one document costs on one thread: against a loop over lxml, against delta, and as subscriptions grow."""

from collections.abc import Callable, Sequence

import numpy as np

from benchmarks.answers import XPathLoop
from benchmarks.floors import bound
from benchmarks.measure import compare, interleave, timed
from benchmarks.report import COST, Row, ratio
from benchmarks.workbench import Workbench, progress

__all__ = ["growth", "versus_delta", "versus_loop"]

SLOW_WORK = 500_000
"""How many subscriptions a slow side may look at in one round, all its documents together."""


def versus_loop(bench: Workbench) -> list[Row]:
    """The index against the loop, the same documents, every answer compared."""
    return [row for n in bench.sizes.compared for row in _versus_loop(bench, n)]


def _versus_loop(bench: Workbench, n: int) -> list[Row]:
    load, loop = bench.load(n), XPathLoop(bench.expressions(n))
    chosen = _chosen(bench, n)
    progress(f"loop over lxml's XPath, {n:,} subscriptions, {len(chosen)} documents")
    for position in chosen:
        document = bench.documents[position]
        found = load.positions(load.index.match(document))
        bench.checks.equal(f"document {position}, {n:,} subscriptions, and lxml", found, loop.match(document))
    index_seconds, loop_seconds = _compare(bench, load.index.match, loop.match, chosen)
    return [
        Row("loop", "loop over lxml's XPath", n, loop_seconds * 1e3, COST),
        ratio("loop", "times faster than the loop", n, loop_seconds / index_seconds),
    ]


def versus_delta(bench: Workbench) -> list[Row]:
    """Suffix families against the published clusters, every answer compared."""
    sizes = sorted({*bench.sizes.compared, bench.sizes.million})
    return [row for n in sizes for row in _versus_delta(bench, n)]


def _versus_delta(bench: Workbench, n: int) -> list[Row]:
    suffix, delta = bench.load(n), bench.load(n, "delta")
    chosen = _chosen(bench, n)
    progress(f"suffix against delta, {n:,} subscriptions, {len(chosen)} documents")
    for position in chosen:
        document = bench.documents[position]
        found, expected = (load.positions(load.index.match(document)) for load in (suffix, delta))
        bench.checks.equal(f"document {position}, {n:,} subscriptions, suffix and delta", found, expected)
    suffix_seconds, delta_seconds = _compare(bench, suffix.index.match, delta.index.match, chosen)
    return [
        Row("delta", "delta", n, delta_seconds * 1e3, COST),
        ratio("delta", "times faster than delta", n, delta_seconds / suffix_seconds),
    ]


def growth(bench: Workbench) -> list[Row]:
    """How the cost of a document grows with the subscriptions; samples compared with lxml."""
    sizes = sorted({*bench.sizes.compared, bench.sizes.many, bench.sizes.million})
    loads = {n: bench.load(n) for n in sizes}
    progress(f"growth from {sizes[0]:,} to {sizes[-1]:,} subscriptions")
    for n, load in loads.items():
        bench.check_sample(load, n, n_documents=5)
    sides = {str(n): timed(load.index.match, bench.documents) for n, load in loads.items()}
    medians = interleave(sides, bench.sizes.n_rounds)
    milliseconds = {n: float(medians[str(n)].mean()) * 1e3 for n in sizes}
    what, largest = "times the cost of a tenth", bench.sizes.million
    times = milliseconds[largest] / milliseconds[bench.sizes.many]
    return [
        *(Row("growth", "suffix", n, milliseconds[n], COST) for n in sizes),
        Row("growth", what, largest, times, "×", at_most=bound(what, largest)),
    ]


def _chosen(bench: Workbench, n: int) -> list[int]:
    """Few documents for many subscriptions, so that the slow side of a comparison ends in time."""
    return bench.some_documents(max(5, min(len(bench.documents), SLOW_WORK // n)))


def _compare(
    bench: Workbench,
    quick: Callable[[bytes], np.ndarray],
    slow: Callable[[bytes], np.ndarray],
    chosen: Sequence[int],
) -> tuple[float, float]:
    """Mean seconds of the chosen documents on both sides."""
    return compare(quick, slow, bench.documents, chosen, min(3, bench.sizes.n_rounds))
