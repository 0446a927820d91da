"""pathsieve serve: a server, here. The server and its engines are imported when they are needed."""

import asyncio
import sys
from pathlib import Path
from typing import Annotated, Protocol

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from pathsieve.cli.exits import REFUSED, reported
from pathsieve.cli.printing import complain, console, note
from pathsieve.endpoints import DEFAULT_ADDRESS

__all__ = ["serve"]

HINT = """\
In another terminal:
  pathsieve sub add --id first --xpath "//quote[price > 100]"{address}
  pathsieve attach first{address}
  echo "<quote><price>120</price></quote>" | pathsieve publish -{address}
Ctrl-C stops it; nothing that was acknowledged is lost."""


class Loading(Protocol):
    """How far the server's loading has come."""

    @property
    def what(self) -> str: ...
    @property
    def done(self) -> int: ...
    @property
    def total(self) -> int: ...


class Serving(Protocol):
    """A server that is ready: where it is."""

    address: str
    http_address: str


def serve(
    config: Annotated[Path | None, typer.Option(help="Settings in TOML; else ./pathsieve.toml if it is there.")] = None,
    host: Annotated[str | None, typer.Option(help="Where gRPC is served: only this machine by default.")] = None,
    port: Annotated[int | None, typer.Option(help="Its port; 0 takes any that is free [7443]")] = None,
    http_host: Annotated[str | None, typer.Option(help="Where /healthz, /readyz, /metrics, /varz are.")] = None,
    http_port: Annotated[int | None, typer.Option(help="Their port [7480]")] = None,
    store: Annotated[str | None, typer.Option(help="A file, or postgresql://user@host/database.")] = None,
    tokens: Annotated[Path | None, typer.Option(help="A file of tokens, their roles and tenants.")] = None,
    certificate: Annotated[Path | None, typer.Option(help="For TLS.")] = None,
    key: Annotated[Path | None, typer.Option(help="Its key.")] = None,
    client_ca: Annotated[Path | None, typer.Option(help="For mutual TLS: who signs clients' certificates.")] = None,
    threads: Annotated[int | None, typer.Option(help="That match; 0: one a processor.")] = None,
    log_level: Annotated[str | None, typer.Option(help="debug, info, warning or error.")] = None,
    log_format: Annotated[str | None, typer.Option(help="plain or json.")] = None,
    ready_file: Annotated[Path | None, typer.Option(help="Gets the addresses, as JSON, once it serves.")] = None,
) -> None:
    """Start a server. Nothing has to be set: it keeps what must not be lost in ./pathsieve-data.

    Settings are from flags, from PATHSIEVE_… variables, or from a file; `pathsieve doctor --settings` shows all of them
    and where each is from. The first start compiles the engines, which takes a minute.

      $ pathsieve serve

      $ pathsieve serve --store /var/lib/pathsieve/sieve.db --port 7443 --log-format json

      $ PATHSIEVE_LIMITS__MAX_DOCUMENT_BYTES=1000000 pathsieve serve --config pathsieve.toml
    """
    flags: dict[str, object] = {
        "listen.host": host,
        "listen.port": port,
        "listen.ready_file": ready_file,
        "http.host": http_host,
        "http.port": http_port,
        "store.url": store,
        "security.tokens": tokens,
        "security.certificate": certificate,
        "security.key": key,
        "security.client_ca": client_ca,
        "matching.threads": threads,
        "log.level": log_level,
        "log.format": log_format,
    }
    with reported():
        raise typer.Exit(_serve(config, flags))


def _serve(config: Path | None, flags: dict[str, object]) -> int:
    from server import daemon
    from server.settings_sources import SettingsError, load_settings

    try:
        settings = load_settings(config, flags)
    except SettingsError as error:
        complain(str(error), "`pathsieve doctor --settings` shows all settings and where they are from.")
        return REFUSED
    bar = LoadingBar()
    try:
        return asyncio.run(daemon.serve(settings, bar.move, lambda ready: _greet(bar, ready)))
    finally:
        bar.stop()


class LoadingBar:
    """How far loading has come, where there is a terminal; elsewhere the log tells."""

    def __init__(self) -> None:
        columns = TextColumn("Loading {task.description}"), BarColumn(), MofNCompleteColumn()
        self._bar = Progress(*columns, console=console(stderr=True), transient=True, disable=not sys.stderr.isatty())
        self._task = self._bar.add_task("", total=None)

    def move(self, progress: Loading) -> None:
        self._bar.start()
        self._bar.update(self._task, description=progress.what, completed=progress.done, total=progress.total or None)

    def stop(self) -> None:
        self._bar.stop()


def _greet(bar: LoadingBar, daemon: Serving) -> None:
    """Where it is, and what to type next; only for people, a log has it already."""
    bar.stop()
    if not sys.stderr.isatty():
        return
    address = "" if daemon.address == DEFAULT_ADDRESS else f" --address {daemon.address}"
    note(f"Serving gRPC on {daemon.address}" + (f", HTTP on {daemon.http_address}" if daemon.http_address else ""))
    note(HINT.format(address=address))
