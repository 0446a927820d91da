"""Workers that our daemon has forked have engines and kernels from the start, and match like all others."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.spark import lacking_for_spark, spark_environment

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def said(repository: Path) -> list[dict[str, Any]]:
    """What two workers say, and then the answers with one thread and with two."""
    if lacking := lacking_for_spark():
        pytest.skip(f"no Spark on this machine: {'; '.join(lacking)}")
    ended = subprocess.run(
        [sys.executable, "-m", "tests.integration.spark_with_daemon"],
        cwd=repository,
        env=os.environ | spark_environment(),
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return [json.loads(line) for line in ended.stdout.splitlines() if line.startswith("{")]


def test_workers_are_forked_from_a_process_that_has_engines_and_kernels(said: list[dict[str, Any]]) -> None:
    workers = said[:2]
    assert len({one["worker"] for one in workers}) == 2
    assert len({one["parent"] for one in workers}) == 1
    for one in workers:
        assert "pyspark_pathsieve.daemon" in one["command"]
        assert min(one["kernels"]) > 0, "kernels have their machine code before the first document"


def test_they_match_with_threads_of_their_own(said: list[dict[str, Any]]) -> None:
    assert said[2:] == [{"1": [0, 1], "2": [0, 2]}] * 2
