"""pathsieve doctor: what is well and what is not, here and between here and the server."""

from pathlib import Path
from typing import Annotated, Any

import typer

from pathsieve.cli.checks import Finding, State, check_machine, check_server, versions
from pathsieve.cli.connection import Connection, connected
from pathsieve.cli.exits import REFUSED, UNREACHABLE
from pathsieve.cli.figures import DEFAULT_HTTP
from pathsieve.cli.printing import Output, OutputOption, complain, console, print_json, print_table
from pathsieve.cli.top import HttpOption

__all__ = ["doctor"]


@connected
def doctor(
    connection: Connection,
    config: Annotated[Path | None, typer.Option(help="Settings of a server here, to be shown with origins.")] = None,
    settings: Annotated[bool, typer.Option("--settings", help="Show the settings a server here would have.")] = False,
    http: HttpOption = DEFAULT_HTTP,
    output: OutputOption = Output.TABLE,
) -> None:
    """Look for what is wrong: the server, its clock, TLS, what the token allows, this machine.

    With --settings or --config also each setting that a server started here would have, and where it is from. The
    exit code is 1 if something is broken, 3 if the server does not answer.

      $ pathsieve doctor

      $ pathsieve doctor --config pathsieve.toml
    """
    rows = _setting_rows(config) if settings or config else []
    store = next((value for key, value, _ in rows if key == "store.url"), None)
    findings = [*check_machine(Path(str(store)) if store and "://" not in str(store) else None)]
    findings += check_server(connection, http)
    if output is Output.JSON:
        _print_json(findings, rows)
    else:
        _print_tables(findings, rows)
    if any(finding.state is State.BROKEN for finding in findings):
        broken_server = any(one.what == "server" and one.state is State.BROKEN for one in findings)
        raise typer.Exit(UNREACHABLE if broken_server else REFUSED)


def _setting_rows(config: Path | None) -> list[tuple[str, Any, str]]:
    from server.settings_sources import SettingsError, load_settings

    try:
        return list(load_settings(config).rows())
    except SettingsError as error:
        complain(str(error))
        raise typer.Exit(REFUSED) from None


def _print_json(findings: list[Finding], rows: list[tuple[str, Any, str]]) -> None:
    for one in findings:
        print_json({"check": one.what, "state": one.state, "found": one.found, "hint": one.hint})
    for key, value, origin in rows:
        print_json({"setting": key, "value": value, "origin": origin})


def _print_tables(findings: list[Finding], rows: list[tuple[str, Any, str]]) -> None:
    console().print(versions(), markup=False)
    console().print()
    print_table(["check", "", "found"], [(one.what, one.state, one.found) for one in findings])
    for one in findings:
        if one.state is not State.FINE and one.hint:
            console().print(f"{one.what}: {one.hint}", markup=False)
    if rows:
        console().print()
        print_table(["setting", "value", "from"], rows)
