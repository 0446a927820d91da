"""Three real replicas, three ZooKeepers and PostgreSQL: whatever is killed, paused or cut off, nothing is lost.

The history is judged as it is written down, and once more from its file, against what one server that never fails would
have done.

    PATHSIEVE_TEST_SOAK=1800 pytest -s tests/integration/test_cluster_nemesis.py     so many seconds, and a summary
    PATHSIEVE_TEST_HISTORY=history.jsonl                                             where the history is kept
"""

import asyncio
import os
import random
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.integration.chronicle import Chronicle
from tests.integration.clusters import new_folder
from tests.integration.crowd import crowds
from tests.integration.judge import Judge, judged
from tests.integration.nemesis import Nemesis
from tests.integration.token_watch import TokenWatch
from tests.integration.wired_cluster import wired_clusters

SECONDS = float(os.environ.get("PATHSIEVE_TEST_SOAK", "0"))
SEED = int(os.environ.get("PATHSIEVE_TEST_SEED", "7"))
HISTORY = os.environ.get("PATHSIEVE_TEST_HISTORY")
SESSION = 4.0
PACE = 0.05
FAULTS_SHORT, FAULTS_AT_ONCE = 3, 12
SETTINGS = {
    "DELIVERY__ACK_DEADLINE": "2",
    "DELIVERY__MAX_ATTEMPTS": "1000",
    "DELIVERY__MIN_BACKOFF": "0.01",
    "DELIVERY__MAX_BACKOFF": "1",
}


@pytest.mark.slow
@pytest.mark.timeout(600 + 2 * SECONDS)
@pytest.mark.usefixtures("cluster_parts")
async def test_whatever_is_killed_paused_or_cut_off_nothing_is_lost() -> None:
    with new_folder() as folder:
        history = Path(HISTORY) if HISTORY else folder / "history.jsonl"
        with Chronicle(history) as chronicle:
            async with stages(folder / "cluster", chronicle) as nemesis:
                started = time.monotonic()
                while time.monotonic() - started < SECONDS or not chronicle.count("settled"):
                    await nemesis.rage(FAULTS_AT_ONCE if SECONDS else FAULTS_SHORT)
                    await nemesis.calm()
                    await nemesis.outage()
            took = time.monotonic() - started
        with history.open() as lines:
            judge = judged(lines)
        print(summary(judge, took))
        assert judge.faults == chronicle.judge.faults == []
        assert min(judge.counts[what] for what in ("delivered", "moves", "create done", "delete done")) > 0


@asynccontextmanager
async def stages(folder: Path, chronicle: Chronicle) -> AsyncIterator[Nemesis]:
    """A cluster, a crowd and a nemesis, each with a chance of its own from the one seed."""
    async with (
        wired_clusters(folder, SESSION, SETTINGS) as wired,
        crowds(chronicle, random.Random(f"crowd {SEED}"), wired.addresses, PACE) as crowd,
    ):
        watch = TokenWatch(chronicle, wired.hosts, wired.store_url, SESSION)
        async with asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(watch.run()), tasks.create_task(crowd.run())]
            yield Nemesis(wired, crowd, watch, chronicle, random.Random(f"nemesis {SEED}"), SESSION)
            for task in running:
                task.cancel()


def summary(judge: Judge, seconds: float) -> str:
    """What was done how often, and what came of it."""
    counts = judge.counts
    lines = [f"{seconds:,.0f} seconds, seed {SEED}"]
    for title, names in SAID.items():
        lines.append(f"{title}: " + ", ".join(f"{counts[name]:,} {said}" for name, said in names.items()))
    lines.append(f"verdict: {len(judge.faults)} faults")
    return "\n".join(lines + judge.faults[:20])


SAID = {
    "nemesis": {"fault begun": "faults", "calm done": "calms", "outage done": "outages of ZooKeeper"},
    "subscriptions": {"create done": "created", "update done": "changed", "delete done": "deleted"},
    "documents": {"publish begun": "attempts", "accepted": "accepted", "repetitions": "repetitions seen"},
    "deliveries": {"delivery": "in all", "delivered": "different ones"},
    "tokens": {"moves": "moves"},
}
