"""A cluster whose parts reach each other over links that can be broken.

    clients, other replicas ──entrance──▶ replica ──▶ a link to each ZooKeeper
                                             └──────▶ a link to PostgreSQL

An entrance is what the replica advertises, so whoever wants it comes that way; the process that has the socket tells
who it is. ZooKeepers reach each other, and the test reaches ZooKeeper and PostgreSQL, directly.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.request import urlopen

from server.dev_cluster import DevCluster, Replica
from tests.integration.link import Link

__all__ = ["CLIENT", "WiredCluster", "wired_clusters"]

CLIENT = "client"
OWNED = re.compile(r'^pathsieve_cluster_tokens_owned\{kind="(\w+)"\} (\S+)$', re.MULTILINE)


class WiredCluster:
    """A cluster that is not started yet, and all its links."""

    def __init__(self, cluster: DevCluster) -> None:
        self.cluster = cluster
        self.entrances: dict[str, Link] = {}
        self.zookeepers: dict[str, list[Link]] = {}
        self.stores: dict[str, Link] = {}
        assert cluster.postgres is not None
        for replica in cluster.replicas:
            self._wire(replica, cluster.postgres.port)

    def _wire(self, replica: Replica, postgres: int) -> None:
        name = replica.name
        self.entrances[name] = entrance = Link(f"{name}'s entrance", replica.port, self._who)
        self.stores[name] = store = Link(f"{name} to PostgreSQL", postgres)
        self.zookeepers[name] = zookeepers = [
            Link(f"{name} to ZooKeeper {place}", one.port) for place, one in enumerate(self.cluster.zookeepers, 1)
        ]
        replica.settings["CLUSTER__ADVERTISE"] = entrance.address
        replica.settings["CLUSTER__ZOOKEEPER"] = ",".join(link.address for link in zookeepers)
        replica.settings["STORE__URL"] = replica.settings["STORE__URL"].replace(f":{postgres}/", f":{store.port}/")

    @property
    def addresses(self) -> list[str]:
        """Where clients reach the replicas."""
        return [link.address for link in self.entrances.values()]

    @property
    def store_url(self) -> str:
        assert self.cluster.postgres is not None
        return self.cluster.postgres.url()

    @property
    def hosts(self) -> str:
        return ",".join(zookeeper.hosts for zookeeper in self.cluster.zookeepers)

    def links(self) -> Iterator[Link]:
        yield from self.entrances.values()
        yield from self.stores.values()
        for links in self.zookeepers.values():
            yield from links

    async def open(self) -> None:
        for link in self.links():
            await link.start()

    async def close(self) -> None:
        for link in self.links():
            await link.close()

    def heal(self) -> None:
        for link in self.links():
            link.heal()

    async def owned(self) -> Mapping[str, int]:
        """How many tokens of each kind the replicas say they have, together."""
        owned = {"matching": 0, "notifying": 0}
        for address in self.cluster.http_addresses:
            for kind, number in OWNED.findall(await asyncio.to_thread(_page, f"http://{address}/metrics")):
                owned[kind] += int(float(number))
        return owned

    async def loaded(self) -> int:
        """How many matching tokens all engines have, together; some have those they have lost a moment ago."""
        pages = [await asyncio.to_thread(_page, f"http://{one}/varz") for one in self.cluster.http_addresses]
        return sum(json.loads(page)["cluster"]["loaded_tokens"] for page in pages)

    def _who(self, port: int) -> str:
        """The replica that calls from a port, or a client."""
        inode = _inode_of(port)
        callers = [replica for replica in self.cluster.replicas if replica.is_running and _has(replica.pid, inode)]
        return callers[0].name if callers else CLIENT


def _page(url: str) -> str:
    with urlopen(url, timeout=5.0) as answer:
        return str(answer.read().decode())


def _inode_of(port: int) -> str:
    """Of the socket on this side that is bound to a port and connected."""
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if int(fields[1].rpartition(":")[2], 16) == port and fields[3] == "01":
            return fields[9]
    return ""


def _has(pid: int, inode: str) -> bool:
    try:
        return any(str(file.readlink()) == f"socket:[{inode}]" for file in Path(f"/proc/{pid}/fd").iterdir())
    except OSError:  # it has just ended, or closed one of them
        return False


@asynccontextmanager
async def wired_clusters(folder: Path, session: float, settings: Mapping[str, str]) -> AsyncIterator[WiredCluster]:
    """Three replicas and three ZooKeepers, wired, that serve."""
    cluster = DevCluster(folder, replicas=3, zookeepers=3, session_timeout=session, durable=False, settings=settings)
    wired = WiredCluster(cluster)
    await wired.open()
    try:
        async with cluster:
            yield wired
    finally:
        await wired.close()
