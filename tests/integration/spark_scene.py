"""What tests of the sink share: documents, a gate in the data, drivers, what is staged, what a subscriber has got."""

import asyncio
import contextlib
import os
import re
import signal
import sqlite3
import sys
from asyncio.subprocess import PIPE, Process
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from pathsieve import AsyncClient
from server.server_process import ServerProcess
from tests.spark import spark_environment

__all__ = ["SMALL_BATCHES", "N", "connected_to", "documents", "driver", "gated", "received", "staged", "until"]

REPOSITORY = Path(__file__).resolve().parents[2]
N = 1000
"""Documents; the n-th is <a n='n'> and some padding, because Spark fills a buffer before a worker gets anything."""

SMALL_BATCHES = {"spark.sql.execution.arrow.maxRecordsPerBatch": "50"}
FREE_BATCHES = 4
NUMBER = re.compile(rb"<a n='(\d+)'")


def documents(spark: SparkSession, n: int = N, partitions: int = 2) -> DataFrame:
    return spark.range(0, n, 1, partitions).selectExpr(
        "concat('<a n=\\'', id, '\\'>', repeat('x', 1500), '</a>') AS body"
    )


def gated(frame: DataFrame, gate: Path) -> DataFrame:
    """The first rows of each partition, and the others when the file `gate` is there."""

    def hold(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import time

        for number, batch in enumerate(batches):
            while number >= FREE_BATCHES and not gate.exists():
                time.sleep(0.02)
            yield batch

    return frame.mapInArrow(hold, frame.schema)


def staged(server: ServerProcess) -> int:
    """How many documents wait in the server's store for the commit of their batch."""
    path = server.settings["STORE__URL"]
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as connection:
        return int(connection.execute("SELECT COUNT(*) FROM staged").fetchone()[0])


def connected_to(port: int) -> set[int]:
    """The Python workers of Spark that have a connection to a port of this machine."""
    remote = f"0100007F:{port:04X}"
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if b"pyspark.daemon" not in (process / "cmdline").read_bytes():
                continue
            inodes = {link.readlink().name for link in (process / "fd").iterdir()}
            lines = [line.split() for line in (process / "net/tcp").read_text().splitlines()[1:]]
        except OSError:
            continue  # it has ended meanwhile
        lines6 = [line.split() for line in (process / "net/tcp6").read_text().splitlines()[1:]]
        ends = {f"socket:[{line[9]}]" for line in lines + lines6 if line[2][-13:] == remote and line[3] == "01"}
        if ends & inodes:
            found.add(int(process.name))
    return found


async def until(is_so: Callable[[], bool], seconds: float = 90.0) -> None:
    """Wait for a state that can only be seen from outside."""
    async with asyncio.timeout(seconds):
        while not is_so():
            await asyncio.sleep(0.02)


async def received(address: str, subscription: str = "all", at_least: int = 0) -> Counter[int]:
    """All that a subscription has been sent so far, and `at_least` so many: how often each number came."""
    found: Counter[int] = Counter()
    async with AsyncClient(address, timeout=60) as client:
        while (progress := (await client.get(subscription)).progress) is None or progress.head < at_least:
            await asyncio.sleep(0.02)
        async with client.attach(subscription) as messages:
            for _ in range(progress.head):
                message = await asyncio.wait_for(anext(messages), 60)
                number = NUMBER.match(message.xml)
                assert number is not None
                found[int(number[1])] += 1
                message.ack()
    return found


@asynccontextmanager
async def driver(log: Path, module: str, *arguments: str, speaks: bool = False) -> AsyncIterator[Process]:
    """A driver of its own, whose output goes to `log`, or if it speaks to who asks. It is killed, with all that it has
    started, if it still runs when the block ends."""
    with log.open("a") as output:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", module, *arguments),
            cwd=REPOSITORY,
            env=os.environ | spark_environment(),
            stdout=PIPE if speaks else output,
            stderr=output,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
