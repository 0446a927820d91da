"""How fast subscriptions are loaded and how much memory they take: a million, and ten million."""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from time import perf_counter
from typing import IO

import numpy as np

from benchmarks.floors import bound
from benchmarks.measure import interleave, peak_bytes, quiet, timed
from benchmarks.report import COST, Row
from benchmarks.workbench import Load, Workbench, progress
from xpathfilter import XPathIndex

__all__ = ["load", "ten_million"]

N_CHUNKS = 10


def load(bench: Workbench) -> list[Row]:
    """A million in one call; samples compared with lxml."""
    n = bench.sizes.million
    loaded = bench.load(n)
    bench.check_sample(loaded, n, n_documents=3)
    return _load_rows("load", loaded)


def ten_million(bench: Workbench) -> list[Row]:
    """Ten million in ten calls, then documents; samples compared with lxml."""
    n = bench.sizes.ten_million
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "expressions.txt"
        progress(f"generating {n:,} expressions")
        _generate(path, n)
        loaded = _load_chunks(path, n)
        _check_chunks(bench, loaded, path, n)
    medians = interleave({"match": timed(loaded.index.match, bench.documents)}, 3)
    return [
        *_load_rows("ten-million", loaded),
        Row("ten-million", "suffix", n, float(medians["match"].mean()) * 1e3, COST),
        Row("ten-million", "peak memory", n, peak_bytes() / 2**30, "GiB", at_most=bound("GiB at the peak", n)),
    ]


def _load_rows(scenario: str, loaded: Load) -> list[Row]:
    n = len(loaded.ids)
    bytes_each = loaded.index.stats()["bytes"] / n
    rate_floor, bytes_ceiling = bound("subscriptions loaded a second", n), bound("bytes a subscription", n)
    return [
        Row(scenario, "add_many", n, n / loaded.seconds, "/s", at_least=rate_floor),
        Row(scenario, "add_many until merged", n, n / loaded.merged_seconds, "/s"),
        Row(scenario, "memory of the index", n, bytes_each, "bytes each", at_most=bytes_ceiling),
    ]


def _generate(path: Path, n: int) -> None:
    """In another process: the memory that keeps expressions distinct is none of the index."""
    with path.open("wb") as target:
        subprocess.run([sys.executable, "-m", "benchmarks.workload", str(n)], stdout=target, check=True)


def _load_chunks(path: Path, n: int) -> Load:
    index, ids, spent = XPathIndex(), [], 0.0
    with path.open() as lines, quiet():
        for chunk in _chunks(lines, n):
            start = perf_counter()
            ids.append(index.add_many(chunk))
            spent += perf_counter() - start
            progress(f"{len(index):,} subscriptions, {peak_bytes() / 2**30:.2f} GiB at most")
        start = perf_counter()
        index.wait_until_merged()
    return Load(index, np.concatenate(ids), spent, spent + perf_counter() - start)


def _chunks(lines: IO[str], n: int) -> Iterator[list[str]]:
    size = -(-n // N_CHUNKS)
    while chunk := [line.rstrip("\n") for line in islice(lines, size)]:
        yield chunk


def _check_chunks(bench: Workbench, loaded: Load, path: Path, n: int) -> None:
    """Compare one expression in every so many with lxml, over a few documents."""
    step = max(1, n // bench.sizes.n_sampled)
    with path.open() as lines:
        texts = [line.rstrip("\n") for line in islice(lines, 0, None, step)]
    bench.check_texts(loaded, np.arange(0, n, step), texts, n_documents=3)
