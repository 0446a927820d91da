"""A ZooKeeper of one's own: in a folder, on free ports, for tests and for trying things out.

    stopped ── start ──▶ running ── pause ──▶ paused
       ▲                  │   ▲                 │
       └── stop, kill ────┘   └──── resume ─────┘

pyspark brings the jars of ZooKeeper along, so Java and pyspark are all that it takes; a folder of jars does as well.
Every server keeps its ports and its data from start to start, and listens on the loopback address alone.
"""

import contextlib
import importlib.util
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from signal import SIGCONT, SIGKILL, SIGSTOP, SIGTERM, Signals

from server.errors import CannotStart
from server.free_ports import free_ports

__all__ = ["LocalEnsemble", "LocalZooKeeper", "find_jars", "find_java"]

JARS = ("zookeeper-3*.jar", "zookeeper-jute-*.jar", "slf4j-api-*.jar", "metrics-core-*.jar", "snappy-java-*.jar")
ALONE = "org.apache.zookeeper.server.ZooKeeperServerMain"
ONE_OF_SEVERAL = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
SMALL_AND_QUICK = ("-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
HOST = "127.0.0.1"
SECONDS = 60.0
PAUSE = 0.05

Settings = Mapping[str, str | int | Path]


def find_java() -> str | None:
    """The `java` on PATH."""
    return shutil.which("java")


def find_jars(folder: Path | None = None) -> list[Path] | None:
    """The jars that ZooKeeper needs, from `folder`, or else from the installed pyspark; None if one is missing."""
    folder = folder or _pyspark_jars()
    found = [max(folder.glob(pattern), default=None) for pattern in JARS] if folder else []
    jars = [jar for jar in found if jar is not None]
    return jars if len(jars) == len(JARS) else None


def _pyspark_jars() -> Path | None:
    spec = importlib.util.find_spec("pyspark")
    places = spec.submodule_search_locations if spec else None
    return Path(next(iter(places))) / "jars" if places else None


class LocalZooKeeper:
    """One server in a folder. With `durable=False` it is faster, and a power cut may cost data.

    Sessions last from two to twenty ticks, so a short `tick` (in milliseconds) allows short sessions. The process joins
    the process group `group`, or that of the caller.
    """

    group: int | None = None

    def __init__(
        self,
        folder: Path,
        port: int = 0,
        jars: Path | None = None,
        durable: bool = True,
        tick: int = 2000,
        settings: Settings | None = None,
    ) -> None:
        self.folder = folder
        self.port = port or free_ports(1)[0]
        self._command = _command(folder, jars, ONE_OF_SEVERAL if settings else ALONE)
        self._settings = _settings(folder, self.port, durable, tick) | dict(settings or {})
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def hosts(self) -> str:
        """What clients are given."""
        return f"{HOST}:{self.port}"

    @property
    def log(self) -> Path:
        return self.folder / "zookeeper.log"

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """stopped → running: when this returns, it serves sessions."""
        self.launch()
        self.wait()

    def launch(self) -> None:
        """Start the process, and do not wait: a server of an ensemble serves once most of them are there."""
        if self.mode() is not None:
            raise CannotStart(f"another ZooKeeper has port {self.port}; stop it, or choose another port")
        self.folder.mkdir(parents=True, exist_ok=True)
        lines = "".join(f"{name}={value}\n" for name, value in self._settings.items())
        (self.folder / "zoo.cfg").write_text(lines)
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, process_group=self.group
            )

    def wait(self, seconds: float = SECONDS) -> None:
        """Until it serves sessions."""
        until = time.monotonic() + seconds
        while self.mode() is None:
            if not self.is_running or time.monotonic() > until:
                self.kill()
                raise CannotStart(f"ZooKeeper in {self.folder} does not serve: {self._last_lines()}")
            time.sleep(PAUSE)

    def mode(self) -> str | None:
        """standalone, leader or follower; None while it does not serve."""
        answer = _ask(self.port, b"srvr")
        modes = [line.removeprefix("Mode: ") for line in answer.splitlines() if line.startswith("Mode: ")]
        return modes[0] if modes else None

    def stop(self) -> None:
        """running → stopped"""
        self._end(SIGTERM)

    def kill(self) -> None:
        """running → stopped, like a crash; a paused one goes too."""
        self._end(SIGKILL)

    def pause(self) -> None:
        """running → paused: connections stay open, and nothing answers from now on."""
        self._signal(SIGSTOP)
        if self._process is not None:  # a signal takes its time to reach all threads
            os.waitid(os.P_PID, self._process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def resume(self) -> None:
        """paused → running"""
        self._signal(SIGCONT)

    def _signal(self, signal: Signals) -> None:
        if self._process is not None:
            self._process.send_signal(signal)

    def _end(self, signal: Signals) -> None:
        self._signal(signal)
        if self._process is not None:
            self._process.wait(SECONDS)
            self._process = None

    def _last_lines(self) -> str:
        lines = self.log.read_text(errors="replace").strip().splitlines()
        return " / ".join(lines[-3:]) or "it says nothing"


class LocalEnsemble:
    """Several servers that are one ZooKeeper, as long as most of them run."""

    def __init__(
        self, folder: Path, size: int = 3, jars: Path | None = None, durable: bool = True, tick: int = 2000
    ) -> None:
        ports = free_ports(3 * size)
        peers = {f"server.{n + 1}": f"{HOST}:{ports[3 * n + 1]}:{ports[3 * n + 2]}" for n in range(size)}
        shared: Settings = {"initLimit": 20, "syncLimit": 10, **peers}
        self.servers: Sequence[LocalZooKeeper] = [
            LocalZooKeeper(folder / str(n + 1), ports[3 * n], jars, durable, tick, shared) for n in range(size)
        ]

    @property
    def hosts(self) -> str:
        return ",".join(server.hosts for server in self.servers)

    @property
    def leader(self) -> LocalZooKeeper:
        """The server that the others follow; an error while they are choosing."""
        return next(server for server in self.servers if server.mode() == "leader")

    def start(self) -> None:
        """Start all that do not run, and wait until they serve."""
        for number, server in enumerate(self.servers, 1):
            data = server.folder / "data"
            data.mkdir(parents=True, exist_ok=True)
            (data / "myid").write_text(str(number))
            if not server.is_running:
                server.launch()
        for server in self.servers:
            server.wait()

    def stop(self) -> None:
        for server in self.servers:
            server.stop()

    def kill(self) -> None:
        """All at once, like a power cut."""
        for server in self.servers:
            server.kill()


def _command(folder: Path, jars: Path | None, main: str) -> list[str]:
    java, found = find_java(), find_jars(jars)
    if java is None:
        raise CannotStart("ZooKeeper needs Java, and there is no `java` on PATH; install one")
    if found is None:
        raise CannotStart(f"ZooKeeper's jars are not in {jars or 'an installed pyspark'}: needed are {', '.join(JARS)}")
    return [java, *SMALL_AND_QUICK, "-cp", ":".join(map(str, found)), main, str(folder / "zoo.cfg")]


def _settings(folder: Path, port: int, durable: bool, tick: int) -> dict[str, str | int | Path]:
    return {
        "dataDir": folder / "data",
        "clientPort": port,
        "clientPortAddress": HOST,
        "tickTime": tick,
        "maxClientCnxns": 0,
        "admin.enableServer": "false",
        "4lw.commands.whitelist": "srvr,ruok,mntr",
        "forceSync": "yes" if durable else "no",
        "preAllocSize": 1024,
    }


def _ask(port: int, command: bytes) -> str:
    """The answer to a command of four letters; "" if there is none."""
    with contextlib.suppress(OSError), socket.create_connection((HOST, port), timeout=1.0) as connection:
        connection.sendall(command)
        return b"".join(iter(lambda: connection.recv(4096), b"")).decode()
    return ""
