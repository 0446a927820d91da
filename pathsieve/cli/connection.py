"""How a command finds its server: flags, or variables of the environment.

@app.command()
@connected                                   adds --address, --token, --tls …, --timeout, --wait to the command
def get(connection: Connection, name: str):
    with connection.open() as client: …
"""

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from pathsieve.cli.exits import reported
from pathsieve.client import Client
from pathsieve.endpoints import DEFAULT_ADDRESS, Tls

__all__ = ["Connection", "connected"]

PANEL = "Connection"


def _option(flag: str, variable: str, help: str, **more: Any) -> Any:
    return typer.Option(flag, envvar=variable, help=help, rich_help_panel=PANEL, show_default=False, **more)


OPTIONS: dict[str, tuple[Any, Any, Any]] = {
    "address": (str, DEFAULT_ADDRESS, _option("--address", "PATHSIEVE_ADDRESS", f"host:port [{DEFAULT_ADDRESS}]")),
    "token": (str, "", _option("--token", "PATHSIEVE_TOKEN", "Who you are, if the server asks.")),
    "tls": (bool, False, _option("--tls", "PATHSIEVE_TLS", "Encrypted, with the system's certificates.")),
    "tls_ca": (Path | None, None, _option("--tls-ca", "PATHSIEVE_TLS_CA", "Certificate of the server's authority.")),
    "tls_cert": (Path | None, None, _option("--tls-cert", "PATHSIEVE_TLS_CERT", "Your certificate.")),
    "tls_key": (Path | None, None, _option("--tls-key", "PATHSIEVE_TLS_KEY", "Its key.")),
    "timeout": (float, 30.0, _option("--timeout", "PATHSIEVE_TIMEOUT", "Seconds an answer may take [30]")),
    "wait": (float, 0.0, _option("--wait", "PATHSIEVE_WAIT", "Seconds to go on trying while nobody answers [0]")),
}


@dataclass(frozen=True, slots=True)
class Connection:
    """What the flags say."""

    address: str = DEFAULT_ADDRESS
    token: str = ""
    tls: bool = False
    tls_ca: Path | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None
    timeout: float = 30.0
    wait: float = 0.0

    @property
    def security(self) -> Tls:
        given = self.tls_ca, self.tls_cert, self.tls_key
        return given if any(given) else self.tls

    def open(self) -> Client:
        """A client for it."""
        return Client(self.address, token=self.token, tls=self.security, timeout=self.timeout, patience=self.wait)


def connected(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of a connection, and its errors a reader."""

    @functools.wraps(command)
    def with_connection(*args: Any, **kwargs: Any) -> None:
        chosen = {name: kwargs.pop(name) for name in OPTIONS}
        with reported():
            command(Connection(**chosen), *args, **kwargs)

    own = list(inspect.signature(command).parameters.values())[1:]
    shared = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, option])
        for name, (kind, default, option) in OPTIONS.items()
    ]
    with_connection.__signature__ = inspect.Signature([*own, *shared])  # type: ignore[attr-defined]
    with_connection.__annotations__ = {parameter.name: parameter.annotation for parameter in [*own, *shared]}
    del with_connection.__wrapped__
    return with_connection
