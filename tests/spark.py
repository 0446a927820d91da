"""A real Spark for tests: one small session on this machine, which all tests share.

Python workers run this Python. Nothing is fetched from the network, and there is no page in a browser. A task may fail
three times before its job does, so that a test can kill workers.
"""

import asyncio
import contextlib
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from server.local_zookeeper import find_java

__all__ = ["SETTINGS", "in_thread", "lacking_for_spark", "running_spark", "spark_environment"]

MASTER = "local[2,4]"
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.driver.memory": "1g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.streaming.numRecentProgressUpdates": "20",
    "spark.sql.execution.pyspark.udf.faulthandler.enabled": "true",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "WARN",
}


def lacking_for_spark() -> list[str]:
    """What has to be installed before Spark can run here; pyspark itself comes with the tests."""
    java = find_java()
    return [] if java else ["Java 17 or newer: apt install openjdk-17-jre-headless, or set JAVA_HOME"]


def spark_environment() -> dict[str, str]:
    """What a process that starts Spark needs in its environment."""
    java = find_java()
    assert java is not None
    return {
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "JAVA_HOME": str(Path(java).resolve().parents[1]),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }


@contextlib.contextmanager
def running_spark(master: str = MASTER, more: Mapping[str, str] | None = None) -> Iterator[SparkSession]:
    """One that runs until the block ends; the test is skipped where there is no Java."""
    if lacking := lacking_for_spark():
        pytest.skip(f"no Spark on this machine: {'; '.join(lacking)}")
    os.environ |= spark_environment()
    with tempfile.TemporaryDirectory(prefix="pathsieve-spark-") as folder:
        settings = SETTINGS | {"spark.sql.warehouse.dir": f"{folder}/warehouse"} | dict(more or {})
        builder = SparkSession.Builder().master(master).appName("pathsieve tests")
        for name, value in settings.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        try:
            yield session
        finally:
            session.stop()


async def in_thread(spark: SparkSession, work: Callable[[], Any]) -> Any:
    """What `work` returns, while this thread does other things. Spark finds Python sources through the active session
    of a thread, so the other one gets it too."""

    def with_session() -> Any:
        assert spark._jvm is not None
        spark._jvm.SparkSession.setActiveSession(spark._jsparkSession)
        return work()

    return await asyncio.to_thread(with_session)
