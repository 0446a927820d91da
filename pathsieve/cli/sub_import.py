"""pathsieve sub import: many subscriptions from a file, fast, and which lines were refused."""

import time
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import Progress, TaskID

from pathsieve.cli.connection import Connection, connected
from pathsieve.cli.exits import REFUSED
from pathsieve.cli.printing import Output, OutputOption, counted, note, print_json, progress_bar
from pathsieve.cli.wish_files import Format, read_lines
from pathsieve.errors import AlreadyExists
from pathsieve.results import Imported
from pathsieve.wishes import Wish

__all__ = ["import_"]

SHOWN = 20
"""Refused lines that are shown to people; programs get all of them."""

STEP = 1000
"""Subscriptions between two movements of the bar."""


@dataclass
class Report:
    """How an import went."""

    n_imported: int = 0
    n_existing: int = 0
    refused: list[dict[str, Any]] = field(default_factory=list)

    def refuse(self, line: int, message: str, facts: dict[str, str] | None = None) -> None:
        self.refused.append({"line": line, "message": message, **(facts or {})})


@connected
def import_(
    connection: Connection,
    path: Annotated[str, typer.Argument(help="A file; - is stdin.")],
    format: Annotated[Format | None, typer.Option(help="How it is written; else its name says so. stdin: txt.")] = None,
    boolean: Annotated[bool, typer.Option("--boolean", help="Plain expressions are Boolean, not XPath.")] = False,
    skip_existing: Annotated[bool, typer.Option("--skip-existing", help="Ids that are taken are not refused.")] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Create many subscriptions at once.

    One bad line does not stop the others: what was refused is listed, with its line number, and the exit code is 1.

      $ pathsieve sub import subscriptions.jsonl      {"id": "ibm", "xpath": "//quote[@symbol='IBM']"}

      $ pathsieve sub import subscriptions.csv        id,xpath,labels.team

      $ pathsieve sub import expressions.txt          an XPath expression on each line
    """
    report, started = Report(), time.perf_counter()
    with connection.open() as client, progress_bar("Importing") as progress:
        bar = progress.add_task("", total=_n_lines(path), said="")
        numbers = array("q")
        results = client.import_subscriptions(_wishes(path, format, boolean, numbers, report))
        for result in _moving(results, progress, bar):
            _count(result, numbers[result.index], skip_existing, report)
    _show(report, time.perf_counter() - started, output)
    if report.refused:
        raise typer.Exit(REFUSED)


def _n_lines(path: str) -> int | None:
    if path == "-":
        return None
    with Path(path).open("rb") as lines:
        return sum(1 for _ in lines)


def _wishes(path: str, format: Format | None, boolean: bool, numbers: "array[int]", report: Report) -> Iterator[Wish]:
    """The wishes of a file; their line numbers go to `numbers`, the lines that are none to the report."""
    for line in read_lines(path, format, boolean):
        if line.wish is None:
            report.refuse(line.number, line.problem)
        else:
            numbers.append(line.number)
            yield line.wish


def _moving(results: Iterator[Imported], progress: Progress, bar: TaskID) -> Iterator[Imported]:
    for n_results, result in enumerate(results, start=1):
        yield result
        if n_results % STEP == 0:
            progress.update(bar, completed=n_results)


def _count(result: Imported, line: int, skip_existing: bool, report: Report) -> None:
    if result.error is None:
        report.n_imported += 1
    elif skip_existing and isinstance(result.error, AlreadyExists):
        report.n_existing += 1
    else:
        report.refuse(line, str(result.error), result.error.facts)


def _show(report: Report, seconds: float, output: Output) -> None:
    report.refused.sort(key=lambda refusal: refusal["line"])
    if output is Output.JSON:
        print_json({"imported": report.n_imported, "existing": report.n_existing, "refused": report.refused})
        return
    rate = f"{report.n_imported / seconds:,.0f} a second" if seconds else ""
    existing = f"; {report.n_existing:,} were there already" if report.n_existing else ""
    note(f"imported {counted(report.n_imported, 'subscription')} in {seconds:.1f} s, {rate}{existing}")
    if report.refused:
        note(f"refused {len(report.refused):,}:")
    for refusal in report.refused[:SHOWN]:
        note(f"  line {refusal['line']:,}: " + refusal["message"].replace("\n", "\n    "))
    if len(report.refused) > SHOWN:
        note(f"  and {len(report.refused) - SHOWN:,} more; -o json lists all of them")
