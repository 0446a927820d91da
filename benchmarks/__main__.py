"""Run the scenarios: progress on stderr, the table on stdout, the numbers in a JSON file.

    python -m benchmarks                          everything but ten million
    python -m benchmarks --only delta --only load
    python -m benchmarks --ten-million            that scenario alone, so that the peak of memory is its own
    python -m benchmarks --quick                  small sizes: shows that it runs and that answers are right

The exit code tells whether all answers were right. A floor that is missed shows in the table.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.answers import WrongAnswerError
from benchmarks.constants import constants
from benchmarks.loading import load, ten_million
from benchmarks.matching import growth, versus_delta, versus_loop
from benchmarks.plot import draw
from benchmarks.report import Row, machine, table, write_json
from benchmarks.threads import latency, throughput
from benchmarks.updating import update
from benchmarks.workbench import QUICK, STANDARD, Workbench, progress

__all__ = ["SCENARIOS", "main"]

SCENARIOS: dict[str, Callable[[Workbench], list[Row]]] = {
    "load": load,
    "loop": versus_loop,
    "growth": growth,
    "delta": versus_delta,
    "threads": throughput,
    "latency": latency,
    "constants": constants,
    "update": update,
}


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    bench = Workbench(QUICK if options.quick else STANDARD)
    chosen = {"ten-million": ten_million} if options.ten_million else SCENARIOS
    facts: dict[str, Any] = {"machine": machine(), "checked": {}, "wrong": {}}
    rows: list[Row] = []
    for name, scenario in chosen.items():
        if not options.only or name in options.only:
            rows += _run(name, scenario, bench, facts)
    print(table(rows))
    write_json(options.json, rows, facts)
    if options.plot:
        draw(rows, options.plot)
    return 1 if facts["wrong"] else 0


def _run(name: str, scenario: Callable[[Workbench], list[Row]], bench: Workbench, facts: dict[str, Any]) -> list[Row]:
    """The rows of one scenario, or none if an answer is wrong: a speed without answers is no speed."""
    before, start = bench.checks.n_documents, perf_counter()
    rows = []
    try:
        rows = scenario(bench)
    except WrongAnswerError as wrong:
        facts["wrong"][name] = str(wrong)
        print(wrong, file=sys.stderr)
    facts["checked"][name] = bench.checks.n_documents - before
    progress(f"{name}: {facts['checked'][name]:,} answers checked, {perf_counter() - start:.0f} s")
    return rows


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m benchmarks", description="Measure, with checked answers.")
    parser.add_argument("--only", action="append", choices=SCENARIOS, help="run this scenario (repeatable)")
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
