"""Over Spark Connect, where the driver is a server of Spark's, matching, writing and reading say the same."""

import json
from pathlib import Path

import pytest

from pathsieve import AsyncClient
from server.server_process import ServerProcess
from tests.integration.spark_scene import driver
from tests.spark import lacking_for_spark

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(300)]


async def test_a_client_of_spark_connect_matches_writes_and_reads(tmp_path: Path) -> None:
    if lacking := lacking_for_spark():
        pytest.skip(f"no Spark on this machine: {'; '.join(lacking)}")
    log, module = tmp_path / "driver.log", "tests.integration.spark_over_connect"
    async with ServerProcess(tmp_path) as server, AsyncClient(server.address, timeout=60) as client:
        await client.subscribe(id="all", xpath="//a")
        async with driver(log, module, server.address, speaks=True) as process:
            output, _ = await process.communicate()
    assert process.returncode == 0, log.read_text()[-5000:]
    said = [json.loads(line[line.index(b"{") :]) for line in output.splitlines() if b"{" in line]
    assert said[:3] == [{"1": ["all", "deep"], "2": ["all"], "3": None}] * 3
    assert said[3] == {"1": ["all"], "2": ["all"]}
