"""Run the scenarios: progress on stderr, the table on stdout, the numbers in a JSON file.

    python -m benchmarks                          everything but ten million
    python -m benchmarks --only delta --only load
    python -m benchmarks --engine boolean         the scenarios of one engine
    python -m benchmarks --markdown               the table as the documentation has it
    python -m benchmarks --ten-million            that scenario alone, so that the peak of memory is its own
    python -m benchmarks --quick                  small sizes: shows that it runs and that answers are right

The exit code tells whether all answers were right. A floor that is missed shows in the table.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.answers import WrongAnswerError
from benchmarks.bool_loading import load_booleans
from benchmarks.bool_matching import from_tables, versus_scan
from benchmarks.bool_table import TABLE, algorithms
from benchmarks.bool_workbench import BooleanWorkbench
from benchmarks.cluster_share import shared_matching
from benchmarks.constants import constants
from benchmarks.loading import load, ten_million
from benchmarks.markdown import markdown
from benchmarks.matching import growth, versus_delta, versus_loop
from benchmarks.plot import draw
from benchmarks.report import Row, machine, table, write_json
from benchmarks.server_idle import idle
from benchmarks.server_million import million
from benchmarks.server_stalled import stalled
from benchmarks.server_streams import notified, streamed
from benchmarks.server_workbench import ServerWorkbench
from benchmarks.spark_matching import shared_memory, versus_library, versus_xpath_boolean
from benchmarks.spark_sink import sink
from benchmarks.spark_workbench import SparkWorkbench
from benchmarks.threads import event_throughput, latency, throughput
from benchmarks.updating import update, update_events
from benchmarks.workbench import QUICK, STANDARD, Sizes, Workbench, progress

__all__ = ["BOOLEAN", "CLUSTER", "SCENARIOS", "SERVER", "SPARK", "XPATH", "main"]

Bench = Workbench | BooleanWorkbench | ServerWorkbench | SparkWorkbench
Scenario = Callable[[Any], list[Row]]

XPATH: dict[str, Scenario] = {
    "load": load,
    "loop": versus_loop,
    "growth": growth,
    "delta": versus_delta,
    "threads": throughput,
    "latency": latency,
    "constants": constants,
    "update": update,
}
BOOLEAN: dict[str, Scenario] = {
    "bool-build": load_booleans,
    "bool-threads": event_throughput,
    "bool-update": update_events,
    "bool-lanes": from_tables,
    "bool-match": versus_scan,
    TABLE: algorithms,
}
SERVER: dict[str, Scenario] = {
    "server-stream": streamed,
    "server-latency": notified,
    "server-stalled": stalled,
    "server-idle": idle,
    "server-million": million,
}
CLUSTER: dict[str, Scenario] = {
    "cluster-share": shared_matching,
}
SPARK: dict[str, Scenario] = {
    "spark-match": versus_library,
    "spark-xpath": versus_xpath_boolean,
    "spark-memory": shared_memory,
    "spark-sink": sink,
}
SCENARIOS = XPATH | BOOLEAN | SERVER | CLUSTER | SPARK
ENGINES = {"xpath": XPATH, "boolean": BOOLEAN, "server": SERVER, "cluster": CLUSTER, "spark": SPARK}


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    bench_of = _benches(QUICK if options.quick else STANDARD)
    chosen = {"ten-million": ten_million} if options.ten_million else ENGINES.get(options.engine, SCENARIOS)
    facts: dict[str, Any] = {"machine": machine(), "checked": {}, "wrong": {}}
    rows: list[Row] = []
    for name, scenario in chosen.items():
        if not options.only or name in options.only:
            rows += _run(name, scenario, bench_of(_workbench(name)), facts)
    print(markdown(rows) if options.markdown else table(rows))
    write_json(options.json, rows, facts)
    if options.plot:
        draw(rows, options.plot)
    return 1 if facts["wrong"] else 0


def _benches(sizes: Sizes) -> Callable[[type[Bench]], Bench]:
    """The workbench of an engine, made when its first scenario asks for it."""
    return cache(lambda workbench: workbench(sizes))


def _workbench(name: str) -> type[Bench]:
    if name in SPARK:
        return SparkWorkbench
    if name in SERVER | CLUSTER:
        return ServerWorkbench
    return BooleanWorkbench if name in BOOLEAN else Workbench


def _run(name: str, scenario: Scenario, bench: Bench, facts: dict[str, Any]) -> list[Row]:
    """The rows of one scenario, or none if an answer is wrong: a speed without answers is no speed."""
    before, start = bench.checks.n_answers, perf_counter()
    rows = []
    try:
        rows = scenario(bench)
    except WrongAnswerError as wrong:
        facts["wrong"][name] = str(wrong)
        print(wrong, file=sys.stderr)
    facts["checked"][name] = bench.checks.n_answers - before
    progress(f"{name}: {facts['checked'][name]:,} answers checked, {perf_counter() - start:.0f} s")
    return rows


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m benchmarks", description="Measure, with checked answers.")
    parser.add_argument("--only", action="append", choices=SCENARIOS, help="run this scenario (repeatable)")
    parser.add_argument("--engine", choices=ENGINES, help="run the scenarios of this engine")
    parser.add_argument("--markdown", action="store_true", help="print tables for the documentation")
    parser.add_argument("--quick", action="store_true", help="small sizes, no floors worth reading")
    parser.add_argument("--ten-million", action="store_true", help="run the scenario of ten million alone")
    parser.add_argument("--json", type=Path, default=Path("build/bench.json"), help="where the numbers go")
    parser.add_argument("--plot", type=Path, help="draw cost against subscriptions, for example as SVG")
    options = parser.parse_args(arguments)
    if options.ten_million and options.only:
        parser.error("--ten-million runs alone, without --only")
    return options


if __name__ == "__main__":
    sys.exit(main())
