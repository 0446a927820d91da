"""A PostgreSQL of one's own: in a folder, on a free port, for tests and for trying things out.

    absent ── create (initdb) ──▶ stopped ── start ──▶ running ── stop ──▶ stopped

PostgreSQL refuses to run as root; then it runs as the user `postgres`, or else `nobody`, who is given the folder. It
listens on the loopback address alone and trusts everyone there.
"""

import os
import pwd
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from server.errors import StoreError
from server.free_ports import free_port

__all__ = ["LocalPostgres", "find_binaries"]

USUAL_FOLDERS = ("/usr/lib/postgresql", "/usr/local/pgsql", "/opt/homebrew/opt", "/usr/pgsql")
UNPRIVILEGED = ("postgres", "nobody")
SUPERUSER = "pathsieve"
SECONDS = 60


def find_binaries() -> Path | None:
    """The folder that holds initdb, pg_ctl and postgres: the newest of the usual ones, or that on PATH."""
    folders = [path for root in USUAL_FOLDERS for path in Path(root).glob("**/bin") if _is_complete(path)]
    if folders:
        return max(folders, key=_version)
    on_path = shutil.which("initdb")
    folder = Path(on_path).parent if on_path else None
    return folder if folder and _is_complete(folder) else None


def _is_complete(folder: Path) -> bool:
    return all((folder / name).exists() for name in ("initdb", "pg_ctl", "postgres"))


def _version(folder: Path) -> list[int]:
    return [int(part) for part in folder.parts if part.isdigit()]


class LocalPostgres:
    """One PostgreSQL in a folder. With `durable=False` it is faster, and a power cut may cost data."""

    def __init__(self, folder: Path, port: int = 0, durable: bool = True) -> None:
        binaries = find_binaries()
        if binaries is None:
            raise StoreError(
                "postgresql://", "no PostgreSQL on this machine (initdb, pg_ctl); install one, or use a URL"
            )
        self.folder = folder
        self.port = port or free_port()
        self._binaries = binaries
        self._user = _unprivileged_user()
        self._settings = {
            "port": str(self.port),
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": str(folder),
            "fsync": "on" if durable else "off",
        }

    @property
    def pid(self) -> int:
        """The process to which signals can be sent; its children serve the connections."""
        return int(self.pid_file.read_text().split()[0])

    @property
    def pid_file(self) -> Path:
        return self._data / "postmaster.pid"

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://{SUPERUSER}@127.0.0.1:{self.port}/{database}"

    def create(self) -> None:
        """absent → stopped"""
        self.folder.mkdir(parents=True, exist_ok=True)
        if self._user is not None:
            shutil.chown(self.folder, self._user)
        self._run("initdb", "-D", self._data, "-U", SUPERUSER, "-A", "trust", "-E", "UTF8", "--no-sync")

    def start(self) -> None:
        """stopped → running: when this returns, it takes connections."""
        options = " ".join(f"-c {name}={value}" for name, value in self._settings.items())
        log = self.folder / "postgres.log"
        self._run("pg_ctl", "start", "-w", "-t", SECONDS, "-D", self._data, "-l", log, "-o", options)

    def stop(self, at_once: bool = False) -> None:
        """running → stopped; `at_once` is like a crash."""
        self._run("pg_ctl", "stop", "-w", "-D", self._data, "-m", "immediate" if at_once else "fast")

    @property
    def _data(self) -> Path:
        return self.folder / "data"

    def _run(self, program: str, *arguments: str | int | Path) -> None:
        command = [str(self._binaries / program), *map(str, arguments)]
        done = subprocess.run(command, user=self._user, cwd=self.folder, text=True, **_QUIETLY)  # type: ignore[call-overload]
        if done.returncode:
            raise StoreError(f"in {self.folder}", f"{program} failed: {_last_lines(done.stdout)}")


_QUIETLY = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "stdin": subprocess.DEVNULL}


def _last_lines(text: str) -> str:
    return " / ".join(text.strip().splitlines()[-3:])


def _unprivileged_user() -> str | None:
    """Who is to run PostgreSQL; None for whoever runs this."""
    if os.geteuid():
        return None
    known: Iterable[str] = {user.pw_name for user in pwd.getpwall()}
    return next((name for name in UNPRIVILEGED if name in known), None)
