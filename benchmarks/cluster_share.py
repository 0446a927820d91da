"""What two replicas save each other: CPU time a document, shared by two and done by one alone, in turns.

    shared   replica-1 ◀─ documents ─▶ replica-2     each matches half of the subscriptions
    alone    replica-1 ◀─ documents                  replica-2 is drained, and is not asked

It is CPU time, as each process counts its own, because both share the cores of one machine. Whatever a process used
beside matching is the rest; by how much the rest of both grows is what it takes to pass a document on, to answer, and
for a second replica to follow the log.
"""

import asyncio
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import httpx
import numpy as np

from benchmarks.floors import bound
from benchmarks.measure import quiet
from benchmarks.report import Row
from benchmarks.server_workbench import PATIENT, ServerWorkbench, Workload
from benchmarks.workbench import progress
from pathsieve import AsyncClient
from server.dev_cluster import DevCluster, Replica

__all__ = ["shared_matching"]

Item = TypeVar("Item")

TICKS = os.sysconf("SC_CLK_TCK")
LOOK = 0.2
SETTINGS = {"MATCHING__THREADS": "1", "LOG__LEVEL": "warning"}
"""One thread: the engines count what one has used."""


@dataclass(frozen=True, slots=True)
class Spent:
    """CPU seconds of one replica: all of it, and what matching took; and how many documents it has matched."""

    process: float
    matching: float
    n_documents: int

    def since(self, before: "Spent") -> "Spent":
        return Spent(
            self.process - before.process, self.matching - before.matching, self.n_documents - before.n_documents
        )

    @property
    def rest(self) -> float:
        return self.process - self.matching


def shared_matching(bench: ServerWorkbench) -> list[Row]:
    """Matching and the rest, in CPU time a document; every document's number of matches is the engine's."""
    return asyncio.run(_shared_matching(bench, bench.workload()))


async def _shared_matching(bench: ServerWorkbench, workload: Workload) -> list[Row]:
    progress(f"two replicas, {workload.n:,} subscriptions")
    with TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)  # PostgreSQL, which is not root, has to get in
        async with (
            DevCluster(folder / "cluster", replicas=2, durable=False, settings=SETTINGS) as cluster,
            AsyncClient(cluster.addresses[0], timeout=PATIENT) as client,
        ):
            async for imported in client.import_subscriptions({"xpath": text} for text in workload.expressions):
                assert imported.error is None, imported.error
            turns = Turns(bench, workload, cluster.replicas, client)
            with quiet():
                rounds = [await turns.both() for _ in range(max(2, bench.sizes.n_rounds // 2))]
    return _rows(workload.n, bench.sizes.n_streamed, {name: [one[name] for one in rounds] for name in rounds[0]})


class Turns:
    """The documents, by two replicas and by one."""

    def __init__(
        self, bench: ServerWorkbench, workload: Workload, replicas: list[Replica], client: AsyncClient
    ) -> None:
        self._bench = bench
        self._workload = workload
        self._replicas = replicas
        self._client = client

    async def both(self) -> dict[str, list[Spent]]:
        """What each replica spent, shared and alone."""
        return {"shared": await self._turn(n_owners=2), "alone": await self._turn(n_owners=1)}

    def _work(self, items: Sequence[Item]) -> Iterator[Item]:
        return islice(cycle(items), self._bench.sizes.n_streamed)

    async def _turn(self, n_owners: int) -> list[Spent]:
        await self._client.drain(self._replicas[1].name, undo=n_owners == 2)
        await self._until_shared_by(n_owners)
        await self._publish()  # what has just been loaded is merged, and in the caches
        before = [_spent(replica) for replica in self._replicas]
        await self._publish()
        return [_spent(replica).since(one) for replica, one in zip(self._replicas, before, strict=True)]

    async def _until_shared_by(self, n_owners: int) -> None:
        """Tokens are where they belong, and what lingers at their old owner has gone."""
        async with asyncio.timeout(PATIENT):
            while (held := [_n_held(replica) for replica in self._replicas]) and not (
                sum(held) == self._workload.n and np.count_nonzero(held) == n_owners
            ):
                await asyncio.sleep(LOOK)

    async def _publish(self) -> None:
        found = [result.matches async for result in self._client.publish_many(self._work(self._workload.documents))]
        wanted = [len(answer) for answer in self._work(self._workload.answers)]
        self._bench.checks.equal("matches of each document", np.array(found), np.array(wanted))


def _variables(replica: Replica) -> Mapping[str, Any]:
    told: Mapping[str, Any] = httpx.get(f"http://{replica.http_address}/varz", timeout=PATIENT).json()
    return told


def _n_held(replica: Replica) -> int:
    """How many subscriptions its engines hold."""
    return sum(engines["xpath"]["subscriptions"] for engines in _variables(replica)["engines"].values())


def _spent(replica: Replica) -> Spent:
    cluster = _variables(replica)["cluster"]
    user, system = Path(f"/proc/{replica.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return Spent((int(user) + int(system)) / TICKS, cluster["match_cpu_seconds"], cluster["matched_documents"])


def _rows(n: int, n_documents: int, rounds: Mapping[str, list[list[Spent]]]) -> list[Row]:
    def cost(turn: str, replica: int) -> float:
        return float(np.median([one[replica].matching / one[replica].n_documents for one in rounds[turn]])) * 1e3

    def rest(turn: str) -> float:
        return float(np.median([sum(spent.rest for spent in one) for one in rounds[turn]])) / n_documents * 1e3

    alone, shares = cost("alone", 0), [cost("shared", replica) for replica in (0, 1)]
    what = "matching on each of two, of one alone"
    return [
        Row("cluster-share", "matching by one alone", n, alone, "ms of CPU a document"),
        Row("cluster-share", "matching by the busier of two", n, max(shares), "ms of CPU a document"),
        Row("cluster-share", what, n, max(shares) / alone, "×", at_most=bound(what, n)),
        Row("cluster-share", "all else, by one alone", n, rest("alone"), "ms of CPU a document"),
        Row("cluster-share", "passing a document on", n, rest("shared") - rest("alone"), "ms of CPU a document"),
    ]
