"""What people and programs get to see: tables and lines, or one JSON object a line.

Results go to stdout; bars, summaries and errors go to stderr, so that results can be piped. Where there is no terminal
there are no colours, no bars, and lines are as long as they need to be.
"""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import IO, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

__all__ = [
    "Output",
    "OutputOption",
    "complain",
    "console",
    "counted",
    "note",
    "print_json",
    "print_table",
    "progress_bar",
]

WIDE = 240
"""Columns where there is no terminal: whoever reads it there cuts it."""


class Output(StrEnum):
    """For people, or for programs."""

    TABLE = "table"
    JSON = "json"


OutputOption = Annotated[Output, typer.Option("--output", "-o", help="For people, or one JSON object a line.")]


def console(stderr: bool = False) -> Console:
    """Where to print, as it is now: tests and shells redirect it."""
    stream: IO[str] = sys.stderr if stderr else sys.stdout
    return Console(file=stream, highlight=False, width=None if stream.isatty() else WIDE, soft_wrap=not stream.isatty())


def print_json(facts: Mapping[str, Any]) -> None:
    """One object on a line of its own, at once: whoever reads a pipe may wait for it."""
    print(json.dumps(facts, ensure_ascii=False, default=str), flush=True)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]], numbers: Sequence[str] = ()) -> None:
    """Rows under their columns; those named in `numbers` are aligned to the right."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for column in columns:
        table.add_column(column, justify="right" if column in numbers else "left", overflow="fold")
    for row in rows:
        table.add_row(*(escape(str(cell)) for cell in row))
    console().print(table)


def counted(number: int, what: str) -> str:
    """So many of something.

    >>> counted(1, "match"), counted(2000, "match"), counted(0, "document")
    ('1 match', '2,000 matches', '0 documents')
    """
    ending = "" if number == 1 else "es" if what.endswith("ch") else "s"
    return f"{number:,} {what}{ending}"


def note(text: str) -> None:
    """Something that is not a result."""
    console(stderr=True).print(text, markup=False)


def complain(text: str, hint: str = "") -> None:
    """An error: what happened, and what to do."""
    where = console(stderr=True)
    where.print("[bold red]error:[/bold red]", escape(text))
    if hint:
        where.print(escape(hint), style="dim")


def progress_bar(what: str) -> Progress:
    """A bar on stderr that goes away when it is done; nothing where there is no terminal."""
    return Progress(
        TextColumn(what),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[said]}"),
        console=console(stderr=True),
        transient=True,
        disable=not sys.stderr.isatty(),
    )
