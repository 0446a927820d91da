"""From options to a client of the servers that they name.

Options ──▶ Connection ──▶ open() ──▶ pathsieve.Client
                │
                └── travels to the executors; each task has a client of its own, and starts at another endpoint
"""

import os
from dataclasses import dataclass
from typing import Self

from pathsieve import Client
from pathsieve.endpoints import Tls
from pathsieve.errors import PathSieveError, PermissionDenied, Unauthenticated
from pyspark_pathsieve.errors import CannotConnect, OptionError
from pyspark_pathsieve.options import Options

__all__ = ["Connection", "cannot_connect"]

FILES = ("tlsCa", "tlsCert", "tlsKey")


@dataclass(frozen=True, slots=True)
class Connection:
    """How to reach the servers."""

    endpoints: tuple[str, ...]
    token: str = ""
    tls: Tls = False
    timeout: float = 60.0
    patience: float = 120.0

    @classmethod
    def of(cls, options: Options) -> Self:
        """What the options say; files that they name must be there."""
        files = {name: options[name] for name in FILES}
        for name, file in files.items():
            if file and not os.access(file, os.R_OK):
                raise OptionError(f"option {name}: no file {file} that can be read", {"option": name, "given": file})
        if bool(files["tlsCert"]) != bool(files["tlsKey"]):
            raise OptionError("options tlsCert and tlsKey go together: give both", {"option": "tlsCert"})
        if any(files.values()) and options.is_given("tls") and not options["tls"]:
            raise OptionError("option tls is false, but certificates are given", {"option": "tls", "given": "false"})
        authority, certificate, key = files.values()
        tls: Tls = (authority, certificate, key) if any(files.values()) else options["tls"]
        return cls(options["endpoint"], options["token"] or "", tls, options["timeout"], options["patience"])

    def open(self, turn: int = 0, patience: float | None = None) -> Client:
        """A client that starts with endpoint number `turn`, round and round."""
        start = turn % len(self.endpoints)
        addresses = self.endpoints[start:] + self.endpoints[:start]
        given = self.patience if patience is None else patience
        return Client(addresses, token=self.token, tls=self.tls, timeout=self.timeout, patience=given)


def cannot_connect(endpoints: tuple[str, ...], error: PathSieveError) -> CannotConnect:
    """The error of a driver that got no further than to a server's door."""
    where = ", ".join(endpoints)
    if isinstance(error, Unauthenticated):
        words = f"{where} does not know who asks: {error}; check the option token"
    elif isinstance(error, PermissionDenied):
        words = f"{where} refuses: {error}"
    else:
        words = f"no server at {where}: {error}; check the option endpoint, and that the server runs"
    return CannotConnect(words, {"endpoint": where, **error.facts})
