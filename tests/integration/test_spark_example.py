"""The example of Spark runs, and both of its ways say the same."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.spark import lacking_for_spark, spark_environment

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def test_the_example_ends_with_both_ways_saying_the_same(repository: Path) -> None:
    if lacking := lacking_for_spark():
        pytest.skip(f"no Spark on this machine: {'; '.join(lacking)}")
    ended = subprocess.run(
        [sys.executable, "examples/spark_pipeline.py"],
        cwd=repository,
        env=os.environ | spark_environment(),
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "quotes-00.xml is for" in ended.stdout
    assert ended.stdout.splitlines()[-1] == "Both say the same."
