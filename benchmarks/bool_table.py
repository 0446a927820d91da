"""Every algorithm on every workload: what an event costs, how fast it builds, how much memory it takes.

    1%   10%   100% of the subscriptions       an algorithm climbs as long as the next step looks bearable,
    ──▶  ──▶   ──▶                             and is measured where it stops

What is filed, the conjunctions themselves, is the same for all of them; the filing is what an algorithm adds.
"""

from collections.abc import Sequence

from benchmarks.bool_workbench import BooleanWorkbench, match_chunk
from benchmarks.bool_workload import SHAPES, Event
from benchmarks.floors import bound
from benchmarks.measure import interleave, seconds, spread, timed
from benchmarks.report import EVENT_COST, Row
from benchmarks.workbench import Load, progress
from boolmatch import BooleanIndex
from boolmatch.algorithms import ALGORITHMS
from boolmatch.auto import AUTO

__all__ = ["TABLE", "algorithms", "filing_bytes"]

TABLE = "bool-table"
STEP = 10

# What the next step, ten times as large, may take.
BUILD_SECONDS = 120.0
EVENT_SECONDS = 0.05
INDEX_BYTES = 4 << 30

ROUND_SECONDS = 1.0


def algorithms(bench: BooleanWorkbench) -> list[Row]:
    """All of them, every answer of a chunk compared with the scan's."""
    return [row for name in SHAPES for row in _workload_rows(bench, name)]


def _workload_rows(bench: BooleanWorkbench, name: str) -> list[Row]:
    chunks = bench.chunks(name)
    loads = {algorithm: _climb(bench, name, algorithm, chunks[0]) for algorithm in (*ALGORITHMS, AUTO)}
    progress(f"{name}: an event by each algorithm")
    for algorithm, load in loads.items():
        bench.settle(load, chunks)
        _check(bench, name, algorithm, load, chunks[0])
    sides = {algorithm: timed(match_chunk(load), _affordable(load, chunks)) for algorithm, load in loads.items()}
    medians = interleave(sides, min(3, bench.sizes.n_rounds))
    micros = {algorithm: float(medians[algorithm].mean()) / len(chunks[0]) * 1e6 for algorithm in loads}
    return [row for algorithm in loads for row in _rows(name, algorithm, loads[algorithm], micros[algorithm])]


def _climb(bench: BooleanWorkbench, name: str, algorithm: str, chunk: Sequence[Event]) -> Load:
    """The largest index that is bearable."""
    n = bench.sizes.million
    load = bench.load(name, max(1, n // STEP**2), algorithm)
    while len(load.ids) < n and _next_is_bearable(load, chunk):
        load = bench.load(name, min(n, STEP * len(load.ids)), algorithm)
    return load


def _next_is_bearable(load: Load, chunk: Sequence[Event]) -> bool:
    event_seconds = seconds(lambda: match_chunk(load)(chunk)) / len(chunk)
    return (
        STEP * load.merged_seconds <= BUILD_SECONDS
        and STEP * event_seconds <= EVENT_SECONDS
        and STEP * load.index.stats()["bytes"] <= INDEX_BYTES
    )


def _check(bench: BooleanWorkbench, name: str, algorithm: str, load: Load, chunk: list[Event]) -> None:
    scan = bench.load(name, len(load.ids), "scan")
    results = match_chunk(load)(chunk)
    bench.check_same(f"{name}, {algorithm} and scan", (load, results), (scan, match_chunk(scan)(chunk)))
    bench.check_columns(name, load, chunk, results)


def _affordable(load: Load, chunks: list[list[Event]]) -> list[list[Event]]:
    """As many chunks as go into a round, spread over all."""
    n_chunks = int(ROUND_SECONDS / seconds(lambda: match_chunk(load)(chunks[-1])))
    return [chunks[position] for position in spread(max(1, min(n_chunks, len(chunks))), len(chunks))]


def _rows(name: str, algorithm: str, load: Load, micros: float) -> list[Row]:
    n, what = len(load.ids), f"{name}, {algorithm}"
    ceiling = bound("bytes a Boolean subscription", n) if algorithm == AUTO else None
    return [
        Row(TABLE, what, n, micros, EVENT_COST),
        Row(TABLE, what, n, n / load.merged_seconds, "subscriptions built a second"),
        Row(TABLE, what, n, load.index.stats()["bytes"] / n, "bytes a subscription", at_most=ceiling),
        Row(TABLE, what, n, filing_bytes(load.index) / n, "bytes a subscription of the filing"),
    ]


def filing_bytes(index: BooleanIndex) -> int:
    """The bytes of the arrays that the algorithm adds to the conjunctions."""
    segments = [layer.segment for layer in index._overlay.snapshot.layers]
    return sum(array.nbytes for segment in segments for array in segment.filing)
