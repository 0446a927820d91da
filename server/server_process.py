"""A server in a process of its own: started, stopped, killed and started again on the same port and store.

    absent ── start ──▶ running ◀── pause, resume ──▶ paused
       ▲                   │                             │
       └── stop, kill ─────┴──────────── kill ───────────┘

It is for tests, for measurements and for clusters to try things out with.
"""

import asyncio
import json
import os
import sys
from pathlib import Path
from signal import SIGCONT, SIGKILL, SIGSTOP, SIGTERM, Signals
from types import TracebackType
from typing import Self

from server.errors import CannotStart
from server.free_ports import free_port

__all__ = ["ServerProcess"]

PACKAGES = Path(__file__).resolve().parents[1]


class ServerProcess:
    """`pathsieve serve` over a store in `folder`. `settings` are variables of its environment, as in LISTEN__PORT.

    They may be changed until it is started (again). It joins the process group `group`, or that of the caller.
    """

    group: int | None = None
    patience = 60.0

    def __init__(self, folder: Path, port: int = 0, **settings: str) -> None:
        self.port = port or free_port()
        self.address = f"127.0.0.1:{self.port}"
        self.log_file = folder / "server.log"
        self._ready_file = folder / "ready.json"
        self.settings = {
            "STORE__URL": str(folder / "pathsieve.db"),
            "LISTEN__PORT": str(self.port),
            "LISTEN__READY_FILE": str(self._ready_file),
            "HTTP__PORT": "0",
            **settings,
        }
        self._process: asyncio.subprocess.Process | None = None

    @property
    def log(self) -> str:
        return self.log_file.read_text(errors="replace") if self.log_file.exists() else ""

    @property
    def http_address(self) -> str:
        return str(json.loads(self._ready_file.read_text())["http"])

    @property
    def pid(self) -> int:
        return self._started.pid

    @property
    def was_started(self) -> bool:
        return self._process is not None

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.returncode is None

    @property
    def resident_bytes(self) -> int:
        """The memory that it has now."""
        fields = dict(line.split(":", 1) for line in Path(f"/proc/{self.pid}/status").read_text().splitlines())
        return int(fields["VmRSS"].split()[0]) * 1024

    @property
    def _started(self) -> asyncio.subprocess.Process:
        assert self._process is not None, "it was never started"
        return self._process

    async def start(self, wait: bool = True) -> None:
        """Start it; with `wait`, until it is ready."""
        self._ready_file.unlink(missing_ok=True)
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PATHSIEVE_")}
        environment |= {f"PATHSIEVE_{name}": value for name, value in self.settings.items()}
        command = sys.executable, "-m", "pathsieve.cli", "serve"
        with self.log_file.open("a") as log:
            self._process = await asyncio.create_subprocess_exec(
                *command, cwd=PACKAGES, env=environment, stdout=log, stderr=log, process_group=self.group
            )
        if wait:
            await self.ready()

    async def ready(self) -> None:
        """Wait until it has written its addresses."""
        async with asyncio.timeout(self.patience):
            while not self._ready_file.exists():
                if self._started.returncode is not None:
                    raise CannotStart(f"the server ended with {self._started.returncode}:\n{self.log}")
                await asyncio.sleep(0.02)

    async def ended(self) -> int:
        """Wait until it has ended; its exit code."""
        return await self._started.wait()

    async def kill(self) -> None:
        """SIGKILL: nothing can be put in order."""
        await self._end(SIGKILL)

    async def stop(self) -> int:
        """SIGTERM: the server drains; its exit code."""
        return await self._end(SIGTERM)

    def terminate(self) -> None:
        """Ask it to stop, and do not wait."""
        self.signal(SIGTERM)

    def pause(self) -> None:
        """SIGSTOP: it stands still, and whoever waits for it does not know why."""
        self.signal(SIGSTOP)

    def resume(self) -> None:
        """SIGCONT"""
        self.signal(SIGCONT)

    def signal(self, number: Signals) -> None:
        self._started.send_signal(number)

    async def _end(self, number: Signals) -> int:
        if self.is_running:
            self.signal(number)
        async with asyncio.timeout(self.patience):
            return await self._started.wait()

    async def __aenter__(self) -> Self:
        try:
            await self.start()
        except BaseException:
            if self.was_started:
                await self.kill()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.is_running:
            await self.kill()
