"""What the connector knows of Spark's inside, all in this one place.

    TaskContext ─┬─ partitionId, taskAttemptId          public
                 └─ local properties of its job          not public: names may change with a release
                      sql.streaming.queryId              the id that a checkpoint keeps, over restarts
                      streaming.sql.batchId              the micro-batch

A Python writer is told the batch at its commit only, and the query never. So `write` reads them here. Should a release
change the names, a streaming write fails at once and says so, and `foreachBatch` does the same with public means
(docs/spark.md).
"""

from dataclasses import dataclass

import pyspark
from pyspark import TaskContext

from pyspark_pathsieve.errors import UnknownSpark

__all__ = ["BATCH_ID", "QUERY_ID", "Task", "current_task", "streaming_batch"]

QUERY_ID = "sql.streaming.queryId"
BATCH_ID = "streaming.sql.batchId"


@dataclass(frozen=True, slots=True)
class Task:
    """The task that runs here: which part of the data, and which attempt at it, unique in its application."""

    partition: int
    attempt: int


def current_task() -> Task:
    """The task of this Python worker."""
    context = _context()
    return Task(context.partitionId(), context.taskAttemptId())


def streaming_batch() -> tuple[str, int]:
    """The streaming query and the micro-batch of this task."""
    context = _context()
    query, batch = context.getLocalProperty(QUERY_ID), context.getLocalProperty(BATCH_ID)
    if not query or not batch or not batch.isdecimal():
        raise UnknownSpark(
            f"Spark {pyspark.__version__} does not tell a task its streaming query and batch as {QUERY_ID} and "
            f"{BATCH_ID} any more; write with foreachBatch and the options transactionId and batchId instead",
            {"version": pyspark.__version__},
        )
    return query, int(batch)


def _context() -> TaskContext:
    context = TaskContext.get()
    if context is None:
        raise RuntimeError("expected to run in a task of Spark")
    return context
