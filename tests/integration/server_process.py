"""A real server in a process of its own: started, stopped, killed and started again on the same port and store."""

import asyncio
import json
import os
import socket
import sys
from pathlib import Path
from signal import SIGKILL, SIGTERM, Signals
from types import TracebackType

__all__ = ["ServerProcess", "free_port"]

START_SECONDS = 60.0
REPOSITORY = Path(__file__).resolve().parents[2]


def free_port() -> int:
    """A port that nobody listens on just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class ServerProcess:
    """`pathsieve serve` over a store in `folder`. `settings` are variables of its environment, as in LISTEN__PORT."""

    def __init__(self, folder: Path, **settings: str) -> None:
        self.port = free_port()
        self.address = f"127.0.0.1:{self.port}"
        self._ready_file = folder / "ready.json"
        self._log = folder / "server.log"
        self._settings = {
            "STORE__URL": str(folder / "pathsieve.db"),
            "LISTEN__PORT": str(self.port),
            "LISTEN__READY_FILE": str(self._ready_file),
            "HTTP__PORT": "0",
            **settings,
        }
        self._process: asyncio.subprocess.Process | None = None

    @property
    def log(self) -> str:
        return self._log.read_text(errors="replace") if self._log.exists() else ""

    @property
    def http_address(self) -> str:
        return str(json.loads(self._ready_file.read_text())["http"])

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def resident_bytes(self) -> int:
        """The memory that it has now."""
        fields = dict(line.split(":", 1) for line in Path(f"/proc/{self.pid}/status").read_text().splitlines())
        return int(fields["VmRSS"].split()[0]) * 1024

    async def start(self, wait: bool = True) -> None:
        """Start it; with `wait`, until it is ready."""
        self._ready_file.unlink(missing_ok=True)
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PATHSIEVE_")}
        environment |= {f"PATHSIEVE_{name}": value for name, value in self._settings.items()}
        with self._log.open("a") as log:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "pathsieve.cli", "serve", cwd=REPOSITORY, env=environment, stdout=log, stderr=log
            )
        if wait:
            await self.ready()

    async def ready(self) -> None:
        """Wait until it has written its addresses."""
        async with asyncio.timeout(START_SECONDS):
            while not self._ready_file.exists():
                assert self._process is not None
                if self._process.returncode is not None:
                    raise AssertionError(f"the server ended with {self._process.returncode}:\n{self.log}")
                await asyncio.sleep(0.02)

    async def kill(self) -> None:
        """SIGKILL: nothing can be put in order."""
        await self._end(SIGKILL)

    async def stop(self) -> int:
        """SIGTERM: the server drains; its exit code."""
        return await self._end(SIGTERM)

    def terminate(self) -> None:
        """Ask it to stop, and do not wait."""
        self.signal(SIGTERM)

    def signal(self, number: Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    async def _end(self, number: Signals) -> int:
        assert self._process is not None
        if self._process.returncode is None:
            self._process.send_signal(number)
        async with asyncio.timeout(START_SECONDS):
            return await self._process.wait()

    async def __aenter__(self) -> "ServerProcess":
        try:
            await self.start()
        except BaseException:
            await self.kill()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None and self._process.returncode is None:
            await self.kill()
