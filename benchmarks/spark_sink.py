"""What the way through Spark costs: the same documents by `publish_many`, and out of a data frame.

    documents in memory ──▶ publish_many ─────────────────────▶ server ──▶ one subscription, which counts
    data frame, cached  ──▶ 2 tasks ──▶ publish, or stage ────▶   ″             ″
                                        and one commit

Spark, its Python workers, the client and the server share the machine.
"""

import asyncio
from collections.abc import Callable, Iterator
from itertools import count
from time import perf_counter

import numpy as np
from pyspark.sql import DataFrame, SparkSession

from benchmarks.floors import bound
from benchmarks.measure import quiet
from benchmarks.report import Row
from benchmarks.server_workbench import PATIENT, serving
from benchmarks.spark_workbench import SparkWorkbench
from benchmarks.workbench import QUICK, progress
from pathsieve import Client, Document

__all__ = ["sink"]

N, N_QUICK = 20_000, 500
PADDING = "x" * 4_000
GUARANTEES = "at-least-once", "exactly-once"


def sink(bench: SparkWorkbench) -> list[Row]:
    """Both guarantees against the client, in turns; every document is counted at the subscription."""
    n = N_QUICK if bench.sizes == QUICK else N
    progress(f"{n:,} documents of 4 KB, by the client and from Spark")
    return asyncio.run(_measured(bench, n))


async def _measured(bench: SparkWorkbench, n: int) -> list[Row]:
    async with serving() as (server, _):
        spent = _in_turns(bench, server.address, n)  # here: only this thread has an active session of Spark
    rows = [Row("spark-sink", name, 1, n / seconds, "documents/s") for name, seconds in spent.items()]
    for guarantee in GUARANTEES:
        what = f"Spark, {guarantee}: of the client's publish_many"
        rows.append(Row("spark-sink", what, 1, spent["client"] / spent[guarantee], "×", bound(what, 1)))
    return rows


def _in_turns(bench: SparkWorkbench, address: str, n: int) -> dict[str, float]:
    """The median seconds of each way; the first round warms up and is not counted."""
    with Client(address, timeout=PATIENT) as client:
        client.subscribe(id="all", xpath="/a")
        frame = _frame(bench.spark, n)
        numbers = count()
        texts = [row["body"] for row in frame.select("body").collect()]
        sides: dict[str, Callable[[], None]] = {
            "client": lambda: _publish(client, texts, f"client-{next(numbers)}"),
            **{name: _writing(frame, address, name, numbers) for name in GUARANTEES},
        }
        rounds: dict[str, list[float]] = {name: [] for name in sides}
        goal = 0
        with quiet():
            for _ in range(bench.sizes.n_rounds + 1):
                for name, work in sides.items():
                    start = perf_counter()
                    work()
                    rounds[name].append(perf_counter() - start)
                    goal += n
                    progressed = client.get("all").progress
                    assert progressed is not None
                    bench.checks.equal(f"notifications after {name}", np.array(progressed.head), np.array(goal))
    return {name: float(np.median(times[1:])) for name, times in rounds.items()}


def _publish(client: Client, texts: list[str], source: str) -> None:
    documents = (Document(text, id=str(place), source=source) for place, text in enumerate(texts))
    assert all(result.matches == 1 for result in client.publish_many(documents))


def _writing(frame: DataFrame, address: str, guarantee: str, numbers: Iterator[int]) -> Callable[[], None]:
    def work() -> None:
        options = {"endpoint": address, "idColumn": "id", "deliveryGuarantee": guarantee}
        writer = frame.write.format("pathsieve").mode("append").options(**options)
        writer.option("source", f"spark-{next(numbers)}").save()

    return work


def _frame(spark: SparkSession, n: int) -> DataFrame:
    made = spark.range(0, n, 1, 2).selectExpr("id", f"concat('<a n=\"', id, '\">{PADDING}</a>') AS body").cache()
    assert made.count() == n
    return made
