"""What was measured: rows for people as a table, for programs as JSON.

scenario   what                          subscriptions   measured   floor
loop       faster than a loop over lxml        100,000     831 ×    ≥ 400 ×   ok
growth     cost at the larger size           1,000,000     5.2 ×    ≤ 7 ×     ok
"""

import json
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import llvmlite
import lxml.etree
import numba
import numpy as np

from benchmarks.floors import bound

__all__ = ["COST", "EVENT_COST", "Row", "machine", "number", "ratio", "table", "write_json"]

COST = "ms a document"
"""The unit of the rows that the plot is drawn from."""
EVENT_COST = "µs an event"


@dataclass(frozen=True)
class Row:
    """One measurement; it should be at least, or at most, its bound."""

    scenario: str
    what: str
    subscriptions: int
    measured: float
    unit: str
    at_least: float | None = None
    at_most: float | None = None

    @property
    def ok(self) -> bool | None:
        """Whether the bound is kept; None without one."""
        if self.at_least is not None:
            return self.measured >= self.at_least
        return None if self.at_most is None else self.measured <= self.at_most

    @property
    def bound(self) -> str:
        if self.at_least is not None:
            return f"≥ {number(self.at_least)}"
        return "" if self.at_most is None else f"≤ {number(self.at_most)}"


def ratio(scenario: str, what: str, n: int, measured: float) -> Row:
    """How many times as fast, held against its floor if there is one for `n` subscriptions."""
    return Row(scenario, what, n, measured, "×", at_least=bound(what, n))


def table(rows: Sequence[Row]) -> str:
    """The rows in aligned columns."""
    head = ("scenario", "what", "subscriptions", "measured", "", "floor", "")
    cells = [head, *(_cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(head))]
    return "\n".join(_line(line, widths) for line in cells)


def _cells(row: Row) -> tuple[str, ...]:
    verdict = {None: "", True: "ok", False: "MISSED"}[row.ok]
    measured = number(row.measured)
    return row.scenario, row.what, f"{row.subscriptions:,}", measured, row.unit, row.bound, verdict


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    aligned = [
        cell.rjust(width) if column in (2, 3) else cell.ljust(width)
        for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    return "  ".join(aligned).rstrip()


def number(value: float) -> str:
    """Three digits that count; more only before the point."""
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if value >= 1e-3 or value <= 0 else "< 0.001"


def machine() -> dict[str, Any]:
    """Where the numbers come from."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "load_average": os.getloadavg()[0],
        "platform": platform.platform(),
        "python": platform.python_version(),
        "lxml": lxml.etree.__version__,
        "libxml2": ".".join(map(str, lxml.etree.LIBXML_VERSION)),
        "numba": numba.__version__,
        "llvmlite": llvmlite.__version__,
        "numpy": np.__version__,
    }


def _processor() -> str:
    described = Path("/proc/cpuinfo")
    lines = described.read_text().splitlines() if described.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def write_json(path: Path, rows: Sequence[Row], facts: Mapping[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    listed = [asdict(row) | {"ok": row.ok} for row in rows]
    path.write_text(json.dumps({**facts, "rows": listed}, indent=2) + "\n")
