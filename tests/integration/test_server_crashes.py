"""The server is killed again and again, and nothing that it had acknowledged is lost, doubled or out of order.

`make soak` kills it sixty times; here it is a few, from a fixed seed.
"""

import os
from pathlib import Path

import pytest

from server.server_process import ServerProcess
from tests.integration.storm import Storm

N_KILLS = int(os.environ.get("PATHSIEVE_TEST_KILLS", "8"))


@pytest.mark.slow
@pytest.mark.timeout(120 + 20 * N_KILLS)
async def test_nothing_is_lost_however_often_the_server_is_killed(tmp_path: Path) -> None:
    async with ServerProcess(tmp_path, DELIVERY__ACK_DEADLINE="2") as server:
        storm = Storm(server, seed=N_KILLS)
        await storm.rage(N_KILLS)
        assert storm.seen["started"] == N_KILLS
