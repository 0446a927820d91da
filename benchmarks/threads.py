"""What a second thread is worth: for documents that queue, and for one large document that waits.

A control runs beside both: hashing of bytes, which shares nothing between threads. Where it does not come near
2, the machine had no second core to give, and the other ratios say little.
"""

import hashlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from benchmarks.floors import bound
from benchmarks.measure import interleave, seconds
from benchmarks.report import Row
from benchmarks.workbench import Workbench, progress
from xpathfilter import DocumentError, XPathIndex

__all__ = ["latency", "throughput"]

QUEUE_PASSES = 4
HASHED = [bytes(20_000_000)] * 4


def throughput(bench: Workbench) -> list[Row]:
    """Documents in a queue, me-cp; every answer compared with that of `match`."""
    n = bench.sizes.many
    index, queue = bench.load(n).index, bench.documents * QUEUE_PASSES
    progress(f"queue of {len(queue)} documents, one and two threads, {n:,} subscriptions")
    _check(bench, index, queue, "me-cp")
    one, two, control = _one_and_two(bench, index, queue, "me-cp", "threads", n)
    return [
        Row("threads", "me-cp, 1 thread", n, len(queue) / one, "documents/s"),
        Row("threads", "me-cp, 2 threads", n, len(queue) / two, "documents/s"),
        _ratio("threads", "throughput of 2 threads over 1", n, one / two),
        control,
    ]


def latency(bench: Workbench) -> list[Row]:
    """One large document, se-cp; every answer compared with that of `match`."""
    return [row for n in (bench.sizes.many, bench.sizes.million) for row in _latency(bench, n)]


def _latency(bench: Workbench, n: int) -> list[Row]:
    index, alone = bench.load(n).index, [bench.large_document]
    n_elements = bench.large_document.count(b"</")
    progress(f"one document of {n_elements:,} elements, one and two threads, {n:,} subscriptions")
    _check(bench, index, alone, "se-cp")
    one, two, control = _one_and_two(bench, index, alone, "se-cp", "latency", n)
    what = f"{n_elements:,} elements, se-cp"
    return [
        Row("latency", f"{what}, 1 thread", n, one * 1e3, "ms"),
        Row("latency", f"{what}, 2 threads", n, two * 1e3, "ms"),
        _ratio("latency", "speed of 2 threads over 1", n, one / two),
        control,
    ]


def _ratio(scenario: str, what: str, n: int, ratio: float) -> Row:
    return Row(scenario, what, n, ratio, "×", at_least=bound(what, n))


def _check(bench: Workbench, index: XPathIndex, documents: Sequence[bytes], mode: str) -> None:
    expected = [index.match(document) for document in documents]
    for threads in (1, 2):
        for position, found in enumerate(index.match_many(documents, mode=mode, threads=threads)):
            if isinstance(found, DocumentError):
                raise found
            what = f"document {position}, {mode} with {threads} threads and match"
            bench.checks.equal(what, found, expected[position])


def _one_and_two(
    bench: Workbench, index: XPathIndex, documents: Sequence[bytes], mode: str, scenario: str, n: int
) -> tuple[float, float, Row]:
    """Seconds with one thread and with two, and what the control made of two meanwhile."""
    sides = {f"match {threads}": _matching(index, documents, mode, threads) for threads in (1, 2)}
    with ThreadPoolExecutor(1) as one, ThreadPoolExecutor(2) as two:
        sides |= {"hash 1": _hashing(one), "hash 2": _hashing(two)}
        medians = interleave(sides, 2 * bench.sizes.n_rounds + 1)
    first, second, hash_first, hash_second = (float(medians[name][0]) for name in sides)
    control = Row(scenario, "control: hashing, 2 threads over 1", n, hash_first / hash_second, "×")
    return first, second, control


def _matching(index: XPathIndex, documents: Sequence[bytes], mode: str, threads: int) -> Callable[[], list[float]]:
    return lambda: [seconds(lambda: index.match_many(documents, mode=mode, threads=threads))]


def _hashing(pool: ThreadPoolExecutor) -> Callable[[], list[float]]:
    return lambda: [seconds(lambda: list(pool.map(hashlib.sha256, HASHED)))]
