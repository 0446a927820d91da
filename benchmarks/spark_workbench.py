"""What scenarios of Spark share: a local session of two cores, documents in its memory, and how long a job takes.

    documents ─▶ a cached DataFrame of four partitions ─▶ a job that computes every answer and keeps none ─▶ seconds

The session is started, the index loaded and the workers warm before anything is timed.
"""

import os
import sys
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from benchmarks.answers import Checks
from benchmarks.workbench import Sizes, Workbench, progress
from server.local_zookeeper import find_java

__all__ = ["SparkWorkbench", "job_seconds"]

N_PARTITIONS = 4
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.driver.memory": "2g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
}


class SparkWorkbench:
    """The usual expressions and documents, and a Spark to match them in."""

    def __init__(self, sizes: Sizes) -> None:
        self.sizes = sizes
        self.checks = Checks()
        self.bench = Workbench(sizes)
        self.documents = self.bench.documents * sizes.n_spark_passes
        progress("starting Spark")
        self.spark = _session()
        table = pa.table({"id": np.arange(len(self.documents)), "body": [one.decode() for one in self.documents]})
        self.frame = self.spark.createDataFrame(table).repartition(N_PARTITIONS).cache()
        assert self.frame.count() == len(self.documents)


def _session() -> SparkSession:
    java = find_java()
    if java is None:
        raise SystemExit("the scenarios of Spark need Java 17: apt install openjdk-17-jre-headless, or set JAVA_HOME")
    os.environ |= {"JAVA_HOME": str(Path(java).resolve().parents[1]), "SPARK_LOCAL_IP": "127.0.0.1"}
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.Builder().master("local[2]").appName("pathsieve benchmarks")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def job_seconds(frame: Any) -> float:
    """How long it takes to compute all rows and write them nowhere."""
    start = perf_counter()
    frame.write.format("noop").mode("overwrite").save()
    return perf_counter() - start
