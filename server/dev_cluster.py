"""A cluster on one machine, to try things out with and to test with: real replicas, ZooKeeper and PostgreSQL.

    replica-1  replica-2  replica-3     `pathsieve serve`, each in a process and a folder of its own
        └──────────┼──────────┘
         ZooKeeper, PostgreSQL          started here, or those that one names

All of it ends with the process that started it, even if that is killed (`tether`).
"""

import asyncio
import importlib.util
import secrets
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from server.errors import CannotStart
from server.local_postgres import LocalPostgres, find_binaries
from server.local_zookeeper import LocalEnsemble, LocalZooKeeper, find_jars, find_java
from server.server_process import ServerProcess
from server.tether import Tether

__all__ = ["DevCluster", "Replica", "missing"]

HTTP_AFTER = 37
"""Ports after the first one of gRPC come those of HTTP, as 7480 comes after 7443."""
MOST_REPLICAS = HTTP_AFTER
PATIENCE = 300.0
LOOK = 0.2
TICKS_IN_A_SESSION = 4


def missing(zookeeper: bool = True, postgres: bool = True) -> list[str]:
    """What has to be installed before a cluster can run here, with a ZooKeeper and a PostgreSQL of our own or not."""
    needs = {
        "kazoo: pip install 'pathsieve[cluster]'": _has("kazoo"),
        "psycopg: pip install 'pathsieve[postgres]'": _has("psycopg") and _has("psycopg_pool"),
        "Java, for ZooKeeper: apt install default-jre-headless (or use --zookeeper host:port)": (
            not zookeeper or find_java() is not None
        ),
        "the jars of ZooKeeper, which pyspark brings: pip install 'pathsieve[spark]' (or use --zookeeper host:port)": (
            not zookeeper or find_jars() is not None
        ),
        "PostgreSQL: apt install postgresql (or use --postgres postgresql://user@host/database)": (
            not postgres or find_binaries() is not None
        ),
    }
    return [what for what, is_there in needs.items() if not is_there]


def _has(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


class Replica(ServerProcess):
    """One server of the cluster."""

    patience = PATIENCE

    def __init__(self, name: str, folder: Path, port: int, settings: Mapping[str, str]) -> None:
        super().__init__(folder, port, **settings)
        self.name = name
        self.settings |= {"CLUSTER__REPLICA": name, "CLUSTER__ADVERTISE": self.address}
        self.folder = folder


class DevCluster:
    """Give it a folder, and it is a cluster inside `async with`; the folder is deleted afterwards unless `keep`.

    `settings` are for every replica, as in DELIVERY__ACK_DEADLINE; until a replica is started, its own may be changed.
    """

    def __init__(
        self,
        folder: Path,
        replicas: int = 3,
        zookeepers: int = 1,
        session_timeout: float = 6.0,
        *,
        zookeeper: str = "",
        postgres: str = "",
        base_port: int = 0,
        settings: Mapping[str, str] | None = None,
        keep: bool = False,
        durable: bool = True,
    ) -> None:
        if not 1 <= replicas <= MOST_REPLICAS:
            raise CannotStart(f"expected 1 to {MOST_REPLICAS} replicas, found {replicas}")
        self.folder = folder
        self.zookeeper = None if zookeeper else _zookeeper(folder, zookeepers, session_timeout, durable)
        self.postgres = None if postgres else LocalPostgres(folder / "postgres", durable=durable)
        self._keep = keep
        self._tether: Tether | None = None
        self._stores: list[asyncio.Task[None]] = []
        shared = {
            "STORE__URL": postgres or (self.postgres.url() if self.postgres else ""),
            "CLUSTER__ZOOKEEPER": zookeeper or (self.zookeeper.hosts if self.zookeeper else ""),
            "CLUSTER__SECRET": secrets.token_hex(16),
            "CLUSTER__SESSION_TIMEOUT": str(session_timeout),
            **(settings or {}),
        }
        self.replicas = [_replica(folder, number, base_port, shared) for number in range(replicas)]

    @property
    def zookeepers(self) -> list[LocalZooKeeper]:
        """The servers of our own ZooKeeper."""
        if isinstance(self.zookeeper, LocalEnsemble):
            return list(self.zookeeper.servers)
        return [self.zookeeper] if self.zookeeper else []

    @property
    def addresses(self) -> list[str]:
        """Where the replicas take calls."""
        return [replica.address for replica in self.replicas]

    @property
    def http_addresses(self) -> list[str]:
        return [replica.http_address for replica in self.replicas]

    # -- start and stop ----------------------------------------------------------------------------

    async def start(self) -> None:
        """Start everything; when this returns, every replica serves."""
        self.folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        self._tie()
        starts = self._start_zookeeper, self._start_postgres
        self._stores = [asyncio.create_task(asyncio.to_thread(start)) for start in starts]
        await asyncio.gather(*map(asyncio.shield, self._stores))
        for replica in self.replicas:
            replica.folder.mkdir(exist_ok=True)
        await asyncio.gather(*(replica.start() for replica in self.replicas))

    async def stop(self) -> None:
        """Have the replicas hand over and finish, one after the other, and then everything end."""
        for replica in self.replicas:
            if replica.is_running:
                replica.resume()
                await replica.stop()
        await self.close()

    async def close(self) -> None:
        """End everything at once."""
        if self._tether is None:
            return
        await asyncio.gather(*self._stores, return_exceptions=True)  # what is just being started could get away
        await asyncio.to_thread(self._tether.close)
        for replica in self.replicas:
            if replica.was_started:
                await replica.ended()
        for zookeeper in self.zookeepers:
            zookeeper.kill()

    async def deaths(self) -> AsyncIterator[str]:
        """Say who has ended by himself, as it happens."""
        seen = {name for name, is_running in self._running() if is_running}
        while True:
            running = {name for name, is_running in self._running() if is_running}
            for name in sorted(seen - running):
                yield name
            seen = running
            await asyncio.sleep(LOOK)

    def _running(self) -> list[tuple[str, bool]]:
        zookeepers = [(f"zookeeper-{place}", one.is_running) for place, one in enumerate(self.zookeepers, 1)]
        return [(replica.name, replica.is_running) for replica in self.replicas] + zookeepers

    def _tie(self) -> None:
        pid_files = [self.postgres.pid_file] if self.postgres else []
        self._tether = Tether(pid_files, None if self._keep else self.folder)
        for replica in self.replicas:
            replica.group = self._tether.group
        for zookeeper in self.zookeepers:
            zookeeper.group = self._tether.group

    def _start_zookeeper(self) -> None:
        if self.zookeeper:
            self.zookeeper.start()

    def _start_postgres(self) -> None:
        if self.postgres:
            if not self.postgres.pid_file.parent.exists():
                self.postgres.create()
            self.postgres.start()

    async def __aenter__(self) -> Self:
        try:
            await self.start()
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def _zookeeper(folder: Path, n: int, session_timeout: float, durable: bool) -> LocalZooKeeper | LocalEnsemble:
    tick = min(2000, int(session_timeout * 1000 / TICKS_IN_A_SESSION))
    if n == 1:
        return LocalZooKeeper(folder / "zookeeper", durable=durable, tick=tick)
    return LocalEnsemble(folder / "zookeeper", n, durable=durable, tick=tick)


def _replica(folder: Path, number: int, base_port: int, settings: Mapping[str, str]) -> Replica:
    name = f"replica-{number + 1}"
    http = {"HTTP__PORT": str(base_port + HTTP_AFTER + number)} if base_port else {}
    return Replica(name, folder / name, base_port + number if base_port else 0, {**settings, **http})
