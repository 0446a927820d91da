"""A Spark session whose workers are forked by our daemon, and what they say of themselves: lines of JSON on stdout.

python -m tests.integration.spark_with_daemon
"""

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from pyspark_pathsieve import match_documents
from tests.spark import running_spark

DAEMON = {"spark.python.daemon.module": "pyspark_pathsieve.daemon"}


def main() -> None:
    with running_spark(more=DAEMON) as spark:
        for row in spark.range(0, 2, 1, 2).mapInArrow(asked, "said string").collect():
            print(row.said)
        frame = spark.createDataFrame([(1, "<a><b/></a>"), (2, "<b/>")], "id int, body string").repartition(2)
        subscriptions: Any = ["//b", "/a", {"boolean": "XPATH '/b'"}]
        for threads in (1, 2):
            matched = match_documents(frame, subscriptions, output="arrays", threads=threads, keep=["id"])
            print(json.dumps({str(row.id): row.matches for row in matched.collect()}))


def asked(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """In a worker that has matched nothing yet: who has forked it, and what it has from there."""
    import os
    import sys
    import time
    from pathlib import Path

    modules = [sys.modules.get(name) for name in ("boolmatch.stream", "xpathfilter.batches")]
    kernels = [len(module.match_batch.signatures) if module else 0 for module in modules]
    time.sleep(1)  # so that the other task needs a worker of its own
    command = Path(f"/proc/{os.getppid()}/cmdline").read_bytes().decode().split("\0")
    said = {"worker": os.getpid(), "parent": os.getppid(), "command": command, "kernels": kernels}
    for _ in batches:
        yield pa.RecordBatch.from_arrays([pa.array([json.dumps(said)])], ["said"])


if __name__ == "__main__":
    main()
