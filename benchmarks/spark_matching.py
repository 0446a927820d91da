"""Matching inside Spark: against the library on one thread, against Spark's own xpath_boolean, and what it takes.

    match_documents, local[2]  ──▶ documents a second ─┬─▶ in those of match_many, one thread, the same documents
                               1K subscriptions ───────┴─▶ in those of xpath_boolean with a single one of them

Sides take turns, and the best round of each counts: a busy machine only ever makes a job slower.
"""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from pyspark.sql import functions as f

from benchmarks.measure import quiet, seconds
from benchmarks.report import Row, ratio
from benchmarks.spark_workbench import SparkWorkbench, job_seconds
from benchmarks.workbench import progress
from pyspark_pathsieve import compile_subscriptions, match_documents

__all__ = ["shared_memory", "versus_library", "versus_xpath_boolean"]

IN_LIBRARY = 1_000
"""Documents that the library has in a round; a ratio needs no more."""


def versus_library(bench: SparkWorkbench) -> list[Row]:
    """Arrays of all answers from local[2], and `match_many` of one thread; every answer compared."""
    n = bench.sizes.many
    load = bench.bench.load(n)
    matched = match_documents(
        bench.frame, compile_subscriptions(bench.bench.expressions(n)), output="arrays", keep=["id"]
    )
    progress(f"{len(bench.documents):,} documents in Spark, {n:,} subscriptions")
    _check(bench, matched, n)
    some = bench.documents[:IN_LIBRARY]
    sides: dict[str, Callable[[], float]] = {
        "spark": partial(job_seconds, matched.select("id", "matches")),
        "library": lambda: seconds(lambda: load.index.match_many(some, threads=1)),
    }
    best = _best(sides, bench.sizes.n_rounds)
    spark, library = len(bench.documents) / best["spark"], len(some) / best["library"]
    return [
        Row("spark-match", "match_documents, local[2]", n, spark, "documents/s"),
        Row("spark-match", "library, 1 thread", n, library, "documents/s"),
        ratio("spark-match", "match_documents in local[2], of one thread of the library", n, spark / library),
    ]


def _check(bench: SparkWorkbench, matched: Any, n: int) -> None:
    load = bench.bench.load(n)
    expected = [load.positions(load.index.match(document)) for document in bench.bench.documents]
    found = matched.where(f.col("id") < len(expected)).select("id", "matches").toArrow()
    for place, matches in zip(found["id"].to_pylist(), found["matches"], strict=True):
        answer = np.array(matches.values, np.int64)
        bench.checks.equal(f"document {place} in Spark, and the library", answer, expected[place])


def versus_xpath_boolean(bench: SparkWorkbench) -> list[Row]:
    """A thousand subscriptions against one expression; of that one every answer compared."""
    n = min(bench.sizes.compared)
    expressions = bench.bench.expressions(n)
    single = next(one for one in expressions if "[" in one)
    progress(f"xpath_boolean of {single}, and {n:,} subscriptions")
    matched = match_documents(bench.frame, compile_subscriptions(expressions), output="arrays", keep=["id"])
    own = bench.frame.select("id", f.xpath_boolean("body", f.lit(single)).alias("wants"))
    place = expressions.index(single)
    joined = own.join(matched.select("id", f.array_contains("matches", place).alias("found")), "id")
    told = joined.orderBy("id").toArrow()
    bench.checks.equal(f"{single} in Spark's own words", told["found"].to_numpy(), told["wants"].to_numpy())
    sides = {"ours": partial(job_seconds, matched.select("id", "matches")), "theirs": partial(job_seconds, own)}
    best = _best(sides, bench.sizes.n_rounds)
    ours, theirs = (len(bench.documents) / best[side] for side in sides)
    return [
        Row("spark-xpath", "match_documents, local[2]", n, ours, "documents/s"),
        Row("spark-xpath", "xpath_boolean of one expression, local[2]", 1, theirs, "documents/s"),
        ratio("spark-xpath", "subscriptions in the documents/s of one xpath_boolean", n, ours / theirs),
    ]


def shared_memory(bench: SparkWorkbench) -> list[Row]:
    """How often the index is in memory: the pages that workers have of its file, each in its own share."""
    n = bench.sizes.million
    compiled = compile_subscriptions(bench.bench.expressions(n))
    matched = match_documents(bench.frame, compiled, output="arrays", keep=["id"])
    progress(f"memory of the workers, {n:,} subscriptions")
    job_seconds(matched.select("id", "matches"))
    _check(bench, matched, n)
    mapped = [one for one in _mappings() if one["Size"] == max(each["Size"] for each in _mappings())]
    resident, own, size = (sum(one[key] for one in mapped) for key in ("Rss", "Pss", "Size"))
    whole = size / len(mapped)
    return [
        Row("spark-memory", "workers that have mapped the index", n, len(mapped), "processes"),
        Row("spark-memory", "size of the index", n, whole / 1024, "MB"),
        Row("spark-memory", "of it in each worker, on average (RSS)", n, resident / len(mapped) / 1024, "MB"),
        Row("spark-memory", "of it in all workers together (PSS)", n, own / 1024, "MB"),
        ratio("spark-memory", "copies of the index on the machine", n, own / whole),
    ]


def _mappings() -> list[Mapping[str, float]]:
    """Of each mapped index of each process: its Size, Rss and Pss in KB."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            lines = (folder / "smaps").read_text().splitlines() if folder.name.isdigit() else []
        except OSError:  # it has ended, or is somebody else's
            continue
        for place, line in enumerate(lines):
            if line.endswith(".sieve") and "pathsieve-" in line:
                facts = (one.partition(":") for one in lines[place + 1 : place + 24])
                wanted = {key: value for key, _, value in facts if key in ("Size", "Rss", "Pss")}
                found.append({key: float(value.split()[0]) for key, value in wanted.items()})
    return found


def _best(sides: Mapping[str, Callable[[], float]], n_rounds: int) -> dict[str, float]:
    """The best round of each side; the sides take turns."""
    rounds: dict[str, list[float]] = {name: [] for name in sides}
    with quiet():
        for _ in range(n_rounds):
            for name, measure in sides.items():
                rounds[name].append(measure())
    return {name: min(times) for name, times in rounds.items()}
