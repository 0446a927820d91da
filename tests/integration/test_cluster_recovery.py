"""A replica is killed, drained or stopped while documents come steadily: others take its tokens, and all arrives.

How long it takes is printed and not judged:

    PATHSIEVE_TEST_SUBSCRIPTIONS=100000 PATHSIEVE_TEST_RUNS=5 pytest -s tests/integration/test_cluster_recovery.py
"""

import asyncio
import os
import re
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from urllib.request import urlopen

import pytest

from pathsieve import AsyncClient
from pathsieve.wishes import Wish
from server.dev_cluster import DevCluster, Replica
from tests.integration.clusters import clusters, new_folder
from tests.integration.steady import Steady

N_SUBSCRIPTIONS = int(os.environ.get("PATHSIEVE_TEST_SUBSCRIPTIONS", "2000"))
N_RUNS = int(os.environ.get("PATHSIEVE_TEST_RUNS", "1"))
SESSION = 2.0
LOOK = 0.02
SECONDS = 120.0
ALL = {"matching": 256, "notifying": 256}
XML = "<quote symbol='S7'/>"
OWNED = re.compile(r'^pathsieve_cluster_tokens_owned\{kind="(\w+)"\} (\S+)$', re.MULTILINE)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300 + 120 * N_RUNS),
    pytest.mark.usefixtures("cluster_parts"),
]


@dataclass
class Scene:
    """Three replicas with subscriptions, and one subscriber who wants every document."""

    cluster: DevCluster
    client: AsyncClient
    got: set[str] = field(default_factory=set)

    async def owned(self, *replicas: Replica) -> dict[str, int]:
        """How many tokens of each kind these have, loaded."""
        owned = dict.fromkeys(ALL, 0)
        for page in await asyncio.gather(*(asyncio.to_thread(_metrics, replica) for replica in replicas)):
            for kind, number in OWNED.findall(page):
                owned[kind] += int(float(number))
        return owned

    async def have(self, wanted: dict[str, int], *replicas: Replica) -> float:
        """Wait until these have so many tokens; when that was."""
        async with asyncio.timeout(SECONDS):
            while await self.owned(*replicas) != wanted:
                await asyncio.sleep(LOOK)
        return time.monotonic()

    async def arrived(self, steady: Steady) -> None:
        """Wait until the subscriber has all that was accepted."""
        async with asyncio.timeout(SECONDS):
            while not self.got.issuperset(steady.ids):
                await asyncio.sleep(LOOK)


def _metrics(replica: Replica) -> str:
    with urlopen(f"http://{replica.http_address}/metrics", timeout=10.0) as answer:
        return str(answer.read().decode())


@asynccontextmanager
async def scenes() -> AsyncIterator[Scene]:
    with new_folder() as folder:
        async with (
            clusters(folder, replicas=3, session_timeout=SESSION) as cluster,
            AsyncClient(cluster.addresses, patience=SECONDS) as client,
        ):
            await client.subscribe(id="all", xpath="//quote")
            async for result in client.import_subscriptions(_wishes()):
                assert result.error is None
            scene = Scene(cluster, client)
            consuming = asyncio.create_task(_consume(scene))
            yield scene
            consuming.cancel()


def _wishes() -> Iterator[Wish]:
    for number in range(N_SUBSCRIPTIONS):
        yield {"id": f"s{number}", "xpath": f"//quote[@symbol='S{number}' and price > {number % 100}]"}


async def _consume(scene: Scene) -> None:
    async with scene.client.attach("all", consumer="all") as messages:
        async for message in messages:
            scene.got.add(message.document.id)
            message.ack()


async def test_a_killed_replica_is_replaced_and_documents_only_wait() -> None:
    async with scenes() as scene:
        for turn in range(N_RUNS):
            killed, *others = scene.cluster.replicas[turn % 3 :] + scene.cluster.replicas[: turn % 3]
            await scene.have(ALL, *scene.cluster.replicas)
            async with Steady([replica.address for replica in others], XML) as steady:
                await steady.more(50)
                started = time.monotonic()
                await killed.kill()
                recovered = await scene.have(ALL, *others) - started
                await steady.more(50)
                worst = steady.since(started)[-1]
            await scene.arrived(steady)
            _say(
                f"killed: owned and loaded again in {recovered:.2f} s, longest wait of a document {worst:.2f} s", steady
            )
            await killed.start()


async def test_a_drained_replica_holds_up_nobody() -> None:
    async with scenes() as scene:
        for turn in range(N_RUNS):
            drained = scene.cluster.replicas[turn % 3]
            await scene.have(ALL, *scene.cluster.replicas)
            async with Steady(scene.cluster.addresses, XML) as steady:
                await steady.more(100)
                at_rest = steady.since(0.0)
                started = time.monotonic()
                await scene.client.drain(drained.name)
                took = await scene.have(dict.fromkeys(ALL, 0), drained) - started
                await steady.more(50)
                waits = steady.since(started)
            await scene.arrived(steady)
            _say(f"drained in {took:.2f} s: {_waits(waits)}, before {_waits(at_rest)}", steady)
            await scene.client.drain(drained.name, undo=True)


async def test_a_stopped_replica_holds_up_nobody() -> None:
    async with scenes() as scene:
        for turn in range(N_RUNS):
            stopped, *others = scene.cluster.replicas[turn % 3 :] + scene.cluster.replicas[: turn % 3]
            await scene.have(ALL, *scene.cluster.replicas)
            async with Steady([replica.address for replica in others], XML) as steady:
                await steady.more(100)
                at_rest = steady.since(0.0)
                started = time.monotonic()
                assert await stopped.stop() == 0
                took = time.monotonic() - started
                await scene.have(ALL, *others)
                await steady.more(50)
                waits = steady.since(started)
            await scene.arrived(steady)
            _say(f"stopped in {took:.2f} s: {_waits(waits)}, before {_waits(at_rest)}", steady)
            await stopped.start()


def _waits(seconds: list[float]) -> str:
    p99 = seconds[int(0.99 * (len(seconds) - 1))]
    return f"longest wait {1000 * seconds[-1]:.0f} ms, p99 {1000 * p99:.0f} ms"


def _say(told: str, steady: Steady) -> None:
    print(f"\n{N_SUBSCRIPTIONS:,} subscriptions, {told}; {len(steady.ids)} documents, all delivered")
