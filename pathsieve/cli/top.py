"""pathsieve top: a server at work, from the figures of its HTTP port."""

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Annotated

import typer
from rich.box import SIMPLE
from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from pathsieve.cli.exits import reported
from pathsieve.cli.figures import DEFAULT_HTTP, Figures, Rates, rates_between, read_figures
from pathsieve.cli.http_pages import fetch
from pathsieve.cli.printing import Output, OutputOption, console, print_json

__all__ = ["top"]

HttpOption = Annotated[str, typer.Option("--http", envvar="PATHSIEVE_HTTP", help="Where the server's HTTP port is.")]


def top(
    http: HttpOption = DEFAULT_HTTP,
    interval: Annotated[float, typer.Option(help="Seconds between two looks.", min=0.1)] = 1.0,
    count: Annotated[int, typer.Option(help="Leave after so many looks; 0: never.")] = 0,
    output: OutputOption = Output.TABLE,
) -> None:
    """Watch a server at work, until you press Ctrl-C.

    Where there is no terminal, and with -o json, each look is printed below the last one.

      $ pathsieve top

      $ pathsieve top --http http://sieve.example.org:7480 -o json --count 60
    """
    with reported():
        if output is Output.TABLE and sys.stdout.isatty():
            with Live(console=console(), screen=False, auto_refresh=False) as live:
                _watch(http, interval, count, lambda now, rates: live.update(_view(http, now, rates), refresh=True))
        elif output is Output.TABLE:
            _watch(http, interval, count, lambda now, rates: console().print(_view(http, now, rates)))
        else:
            _watch(http, interval, count, lambda now, rates: print_json(_facts(now, rates)))


def _watch(http: str, interval: float, count: int, show: Callable[[Figures, Rates], None]) -> None:
    before = read_figures(fetch(http, "/metrics").text)
    n_looks = 0
    while not count or n_looks < count:
        time.sleep(interval)
        now = read_figures(fetch(http, "/metrics").text)
        show(now, rates_between(before, now))
        before, n_looks = now, n_looks + 1


def _view(http: str, now: Figures, rates: Rates) -> Group:
    ready = "ready" if now.total("pathsieve_ready") else "not ready"
    table = Table(box=SIMPLE, show_header=False, pad_edge=False)
    table.add_column(style="dim")
    table.add_column(justify="right", style="bold")
    table.add_column(style="dim")
    for row in _rows(now, rates):
        table.add_row(*row)
    return Group(Text(f"PathSieve at {http}: {ready}"), table)


def _rows(now: Figures, rates: Rates) -> Iterator[tuple[str, str, str]]:
    kinds = now.by_label("pathsieve_subscriptions", "kind")
    outcomes = now.by_label("pathsieve_documents_total", "outcome")
    yield "documents", f"{rates.documents:,.0f}/s", _shares(outcomes)
    yield "matches", f"{rates.matches:,.0f}/s", f"{now.total('pathsieve_matches_total'):,.0f} so far"
    within = f"99% within {_milliseconds(rates.match_p99)}" if rates.match_p99 else ""
    yield "matching", _milliseconds(rates.match_mean), within
    yield "store", _milliseconds(rates.commit_mean), "a group commit"
    yield "delivered", f"{rates.delivered:,.0f}/s", f"{rates.redelivered:,.0f}/s again"
    waiting = now.total("pathsieve_backlog_messages")
    yield "waiting", f"{waiting:,.0f}", f"the oldest for {now.total('pathsieve_backlog_oldest_age_seconds'):,.0f} s"
    yield "streams", f"{now.total('pathsieve_attached_streams'):,.0f}", "attached"
    yield "subscriptions", f"{sum(kinds.values()):,.0f}", _shares(kinds)
    yield "indexes", f"{now.total('pathsieve_index_bytes') / 1e6:,.1f} MB", ""
    dead, duplicates = now.total("pathsieve_dead_lettered_total"), now.total("pathsieve_duplicates_dropped_total")
    yield "given up", f"{dead:,.0f}", f"{duplicates:,.0f} duplicates dropped"


def _shares(parts: dict[str, float]) -> str:
    return ", ".join(f"{value:,.0f} {name}" for name, value in parts.items() if value)


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:,.2f} ms" if seconds else "–"


def _facts(now: Figures, rates: Rates) -> dict[str, object]:
    return {
        "ready": bool(now.total("pathsieve_ready")),
        **asdict(rates),
        "backlog": now.total("pathsieve_backlog_messages"),
        "streams": now.total("pathsieve_attached_streams"),
        "subscriptions": now.total("pathsieve_subscriptions"),
    }
