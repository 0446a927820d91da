"""What one event costs on one thread: against the scan of all subscriptions, and from a table instead of mappings.

An event's time is its share of a `match_many`, from mappings of names to values until ids.
"""

from functools import partial

import numpy as np

from benchmarks.bool_workbench import BooleanWorkbench, match_chunk
from benchmarks.bool_workload import SHAPES
from benchmarks.measure import compare, interleave, timed
from benchmarks.report import EVENT_COST, Row, ratio
from benchmarks.workbench import progress
from boolmatch.algorithms import ALGORITHMS
from boolmatch.auto import AUTO

__all__ = ["FOR_BATCHES", "from_tables", "versus_scan"]

FOR_BATCHES = "a-pcm"
TABLES = ("dense", "ads")


def versus_scan(bench: BooleanWorkbench) -> list[Row]:
    """Each workload, `auto` and what is made for it against the scan, every answer of the scan compared."""
    return [row for name in SHAPES for algorithm in _contenders(name) for row in _versus_scan(bench, name, algorithm)]


def _contenders(name: str) -> list[str]:
    if SHAPES[name].n_copies == 1:
        return [AUTO]
    if FOR_BATCHES not in ALGORITHMS:
        progress(f"{name}: {FOR_BATCHES} is left out, boolmatch.algorithms does not have it")
        return [AUTO]
    return [AUTO, FOR_BATCHES]


def _versus_scan(bench: BooleanWorkbench, name: str, algorithm: str) -> list[Row]:
    n, chunks, chosen = bench.sizes.million, bench.chunks(name), bench.scanned(name)
    quick, scan = bench.load(name, n, algorithm), bench.load(name, n, "scan")
    what = f"{name}, {algorithm}"
    bench.settle(quick, chunks)
    progress(f"{what} against scan, {n:,} subscriptions, {len(chosen)} × {len(chunks[0])} events")
    n_matched = 0
    for position in chosen:
        results = match_chunk(quick)(chunks[position])
        bench.check_same(f"{what}, and scan", (quick, results), (scan, match_chunk(scan)(chunks[position])))
        n_matched += sum(map(len, results))
    bench.check_columns(name, quick, chunks[0], match_chunk(quick)(chunks[0]))
    n_events = len(chosen) * len(chunks[0])
    chunk_seconds = compare(match_chunk(quick), match_chunk(scan), chunks, chosen, bench.sizes.n_rounds)
    quick_micros, scan_micros = (seconds / len(chunks[0]) * 1e6 for seconds in chunk_seconds)
    return [
        Row("bool-match", f"{what}: matches", n, n_matched / n_events / n * 100, "% of subscriptions"),
        Row("bool-match", f"{name}, scan beside {algorithm}", n, scan_micros, EVENT_COST),
        Row("bool-match", what, n, quick_micros, EVENT_COST),
        ratio("bool-match", f"{what}: times faster than scan", n, scan_micros / quick_micros),
    ]


def from_tables(bench: BooleanWorkbench) -> list[Row]:
    """Columns of events against mappings, every answer compared."""
    return [row for name in TABLES for row in _from_table(bench, name)]


def _from_table(bench: BooleanWorkbench, name: str) -> list[Row]:
    n, n_events = bench.sizes.million, bench.n_events(name)
    load, events, table = bench.load(name, n), bench.events(name), bench.workload(name).table(n_events)
    progress(f"{name}, a table of {n_events:,} events, {n:,} subscriptions")
    bench.settle(load, [events])
    from_table = partial(load.index.match_table, threads=1)
    results = match_chunk(load)(events)
    bench.check_same(f"{name}, from a table", (load, from_table(table)), (load, results))
    bench.check_columns(name, load, events, results)
    sides = {"match_many": timed(match_chunk(load), [events]), "match_table": timed(from_table, [table])}
    medians = interleave(sides, bench.sizes.n_rounds)
    micros = {side: float(np.sum(medians[side])) / n_events * 1e6 for side in sides}
    what = f"{name}: times faster from a table"
    return [
        *(Row("bool-lanes", f"{name}, {side}", n, micros[side], EVENT_COST) for side in sides),
        ratio("bool-lanes", what, n, micros["match_many"] / micros["match_table"]),
    ]
