"""Three real replicas, ZooKeeper and PostgreSQL: some replica is killed or paused, again and again; nothing is lost.

The storm is that of a single server; whichever replica is hit, the history must be that of one that never failed.

    PATHSIEVE_TEST_KILLS=40 pytest tests/integration/test_cluster_kills.py      longer
"""

import asyncio
import os
import random
from dataclasses import dataclass, field

import pytest

from server.dev_cluster import DevCluster, Replica
from tests.integration.clusters import clusters, new_folder
from tests.integration.storm import Storm

N_KILLS = int(os.environ.get("PATHSIEVE_TEST_KILLS", "4"))
SESSION = 2.0
SEED = int(os.environ.get("PATHSIEVE_TEST_SEED", "7"))


@dataclass
class OneOfThem:
    """Looks like one server, and is a cluster: each kill hits some replica, and the next start starts it again."""

    cluster: DevCluster
    chance: random.Random
    hit: Replica | None = None
    hits: list[str] = field(default_factory=list)

    @property
    def address(self) -> list[str]:
        return self.cluster.addresses

    def _pick(self) -> Replica:
        if self.hit is None:
            self.hit = self.chance.choice(self.cluster.replicas)
            self.hits.append(self.hit.name)
        return self.hit

    async def kill(self) -> None:
        replica = self._pick()
        if self.chance.random() < 0.4 and replica.is_running:
            replica.pause()  # long enough to lose its session, or not
            await asyncio.sleep(self.chance.uniform(0.5, 2 * SESSION))
            replica.resume()
            if self.chance.random() < 0.5:
                return
        await replica.kill()

    def terminate(self) -> None:
        self._pick().terminate()

    async def start(self, wait: bool = True) -> None:
        assert self.hit is not None
        if not self.hit.is_running:
            await self.hit.start(wait)
        if wait:
            self.hit = None


@pytest.mark.slow
@pytest.mark.timeout(120 + 60 * N_KILLS)
@pytest.mark.usefixtures("cluster_parts")
async def test_replicas_that_are_killed_or_paused_lose_nothing() -> None:
    settings = {"DELIVERY__ACK_DEADLINE": "2", "DELIVERY__MAX_ATTEMPTS": "1000", "DELIVERY__MIN_BACKOFF": "0.01"}
    with new_folder() as folder:
        async with clusters(folder, replicas=3, session_timeout=SESSION, settings=settings) as cluster:
            victims = OneOfThem(cluster, random.Random(SEED))
            storm = Storm(victims, SEED)  # type: ignore[arg-type]
            await storm.rage(N_KILLS)
            assert len(victims.hits) == N_KILLS
            print(dict(storm.seen), victims.hits)
