"""The tables of docs/benchmark.md, from the numbers of a run.

    python -m benchmarks.markdown build/bench.json

| µs an event | scan | pst-bloom |        one for each unit of the scenario that compares all algorithms
|---|---|---|
| dense | 4,100 | 160 |

| what | subscriptions | measured | bar |    and one for each other scenario
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.bool_table import TABLE
from benchmarks.report import Row, number

__all__ = ["markdown", "read_rows"]


def markdown(rows: Sequence[Row]) -> str:
    """All rows as tables, each under the name of its scenario."""
    by_scenario: dict[str, list[Row]] = {}
    for row in rows:
        by_scenario.setdefault(row.scenario, []).append(row)
    tables = [f"### {scenario}\n\n{_scenario(scenario, own)}" for scenario, own in by_scenario.items()]
    return "\n\n".join(tables)


def read_rows(path: Path) -> list[Row]:
    """The rows of a JSON file that a run wrote."""
    listed = json.loads(path.read_text())["rows"]
    return [Row(**{name: value for name, value in row.items() if name != "ok"}) for row in listed]


def _scenario(scenario: str, rows: Sequence[Row]) -> str:
    if scenario != TABLE:
        return _table(("what", "subscriptions", "measured", "bar"), [_cells(row) for row in rows])
    units = dict.fromkeys(row.unit for row in rows)
    return "\n\n".join(_pivot(unit, [row for row in rows if row.unit == unit]) for unit in units)


def _cells(row: Row) -> tuple[str, ...]:
    verdict = " (missed)" if row.ok is False else ""
    return row.what, f"{row.subscriptions:,}", f"{number(row.measured)} {row.unit}", row.bound + verdict


def _pivot(unit: str, rows: Sequence[Row]) -> str:
    """Workloads downwards, algorithms across; a cell of fewer subscriptions than the most says so."""
    cells = {tuple(row.what.split(", ")): row for row in rows}
    workloads, algorithms = (list(dict.fromkeys(names)) for names in zip(*cells, strict=True))
    most = max(row.subscriptions for row in rows)
    lines = [
        (workload, *(_cell(cells[workload, algorithm], most) for algorithm in algorithms)) for workload in workloads
    ]
    return _table((unit, *algorithms), lines)


def _cell(row: Row, most: int) -> str:
    return number(row.measured) + ("" if row.subscriptions == most else f" (of {row.subscriptions:,})")


def _table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, ["---"] * len(head), *lines)).replace(" --- ", "---")


if __name__ == "__main__":
    print(markdown(read_rows(Path(sys.argv[1]))))
