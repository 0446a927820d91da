"""A driver on a cluster of Spark: matches inside it, writes to a server, reads back. Lines of JSON on stdout.

python -m tests.integration.spark_on_cluster MASTER ENDPOINT GATE
"""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from pyspark_pathsieve import match_documents
from tests.integration.spark_scene import SMALL_BATCHES, documents, gated
from tests.spark import running_spark

SETTINGS = SMALL_BATCHES | {"spark.executor.memory": "512m", "spark.executor.cores": "1"}
SUBSCRIPTIONS: Any = {"all": "//a", "seven": "//a[@n='7']", "none": "//b"}


def main(master: str, endpoint: str, gate: Path) -> None:
    with running_spark(master, SETTINGS) as spark:
        for shards in (1, 2):
            matched = match_documents(
                documents(spark, 20), SUBSCRIPTIONS, output="arrays", keep=["body"], shards=shards
            )
            _say(matched=sorted([row.matches for row in matched.collect()], key=len))
        _say(executors=sorted(_executors(spark)))
        sink = gated(documents(spark), gate).write.format("pathsieve").mode("append")
        sink.options(endpoint=endpoint, batchDocs="20").save()
        _say(written=True)
        notifications = spark.read.format("pathsieve").options(
            endpoint=endpoint, subscription="all", docsPerPartition="300"
        )
        _say(sequences=sorted(row.sequence for row in notifications.load().select("sequence").collect()))


def _executors(spark: SparkSession) -> set[int]:
    """The JVMs above those Python workers that two tasks at the same time have."""

    def asked(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import time

        time.sleep(2)  # so that the other task needs another executor
        daemon = os.getppid()
        executor = int(Path(f"/proc/{daemon}/stat").read_text().rpartition(")")[2].split()[1])
        for _ in batches:
            yield pa.RecordBatch.from_arrays([pa.array([executor])], ["executor"])

    frame: DataFrame = spark.range(0, 2, 1, 2).mapInArrow(asked, "executor long")
    return {row.executor for row in frame.collect()}


def _say(**facts: Any) -> None:
    print(json.dumps(facts), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
