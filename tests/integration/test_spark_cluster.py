"""A cluster of Spark, master, workers and executors in processes of their own: the same as on one machine's threads."""

import json
import os
import signal
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from pathsieve import AsyncClient
from server.server_process import ServerProcess
from tests.integration.spark_scene import N, connected_to, driver, received, staged, until
from tests.spark import lacking_for_spark
from tests.spark_cluster import SparkCluster, running_spark_cluster

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[ServerProcess]:
    async with ServerProcess(tmp_path) as running, AsyncClient(running.address, timeout=60) as client:
        await client.subscribe(id="all", xpath="//a")
        yield running


async def test_an_executor_is_killed_in_mid_write_and_all_arrives_once(server: ServerProcess, tmp_path: Path) -> None:
    if lacking := lacking_for_spark():
        pytest.skip(f"no Spark on this machine: {'; '.join(lacking)}")
    log, module, gate = tmp_path / "driver.log", "tests.integration.spark_on_cluster", tmp_path / "gate"
    with running_spark_cluster(tmp_path) as cluster:
        async with driver(log, module, cluster.master, server.address, str(gate), speaks=True) as process:
            said = [await _said(process, log) for _ in range(3)]
            assert said[:2] == [{"matched": [["all"]] * 19 + [["all", "seven"]]}] * 2, "in one piece, and in two shards"
            assert set(said[2]["executors"]) == cluster.executors()
            assert len(cluster.executors()) == 2
            await _kill_one_in_mid_write(cluster, server)
            gate.touch()
            assert await _said(process, log) == {"written": True}
            assert await _said(process, log) == {"sequences": list(range(1, N + 1))}
            assert await process.wait() == 0
    assert await received(server.address) == dict.fromkeys(range(N), 1)
    assert staged(server) == 0


async def _said(process: Process, log: Path) -> Any:
    """The next thing that the driver says."""
    assert process.stdout is not None
    while line := await process.stdout.readline():
        if line.startswith(b"{"):
            return json.loads(line)
    raise AssertionError(log.read_text()[-5000:])


async def _kill_one_in_mid_write(cluster: SparkCluster, server: ServerProcess) -> None:
    await until(lambda: len(connected_to(server.port)) == 2 and staged(server) > 0)
    before = cluster.executors()
    os.kill(min(before), signal.SIGKILL)
    await until(lambda: bool(cluster.executors() - before))
