"""XML files arrive in a folder; a server behind Spark and Spark itself say the same about who wants them.

    make spark-example

    files ─▶ Spark streaming ─┬─▶ format("pathsieve") ─▶ PathSieve server ─▶ a subscriber, who prints ─┐
                              └─▶ MatchStream, in the executors, no server ────────────────────────────┴─▶ the same?

Everything lives in a folder of its own that goes away at the end. It needs Java 17.
"""

import json
import os
import sys
import tempfile
from pathlib import Path
from random import Random
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from pathsieve import Attachment, Client
from pathsieve.cli.wish_files import read_lines
from pathsieve.taste import server
from pyspark_pathsieve import MatchStream

N_FILES = 24
SYMBOLS = ("IBM", "AAPL", "SAP", "BAS")
SUBSCRIPTIONS: list[dict[str, Any]] = [
    {"id": "ibm", "xpath": "//quote[@symbol='IBM']"},
    {"id": "expensive", "xpath": "//quote[price > 150]"},
    {"id": "pairs", "xpath": "count(//quote) > 1 and not(//halted)"},
    {"id": "ibm-not-halted", "boolean": "XPATH '//quote[@symbol=\"IBM\"]' AND NOT XPATH '//halted'"},
]

Wanted = set[tuple[str, str]]
"""Pairs of a file and a subscription that wants it."""


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="pathsieve-example-") as name:
        folder = Path(name)
        os.environ |= {"PATHSIEVE_STORE__URL": str(folder / "store.db"), "PATHSIEVE_HTTP__PORT": "0"}
        os.environ |= {"PATHSIEVE_LISTEN__PORT": "0", "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
        listed = folder / "subscriptions.jsonl"
        listed.write_text("\n".join(map(json.dumps, SUBSCRIPTIONS)))
        write_files(folder / "in")
        with server() as (process, address):
            if not address:
                return process.wait()
            return run(folder, listed, address)


def run(folder: Path, listed: Path, address: str) -> int:
    """Both ways, and whether they say the same; the exit code."""
    with Client(address) as client, session() as spark:
        wishes = (line.wish for line in read_lines(str(listed), None, boolean=False) if line.wish)
        for imported in client.import_subscriptions(wishes):
            assert imported.error is None, imported.error
        files = (
            spark.readStream.option("maxFilesPerTrigger", 8)
            .text(str(folder / "in"), wholetext=True)
            .select(f.col("_metadata.file_name").alias("id"), f.col("value").alias("body"))
        )
        with client.attach("-", auto_ack=True) as messages:
            inside = matched_inside(files, listed, folder)
            published(files, address, folder)
            delivered = received(messages, len(inside))
    print(f"matched inside Spark: {len(inside)} matches; delivered by the server: {len(delivered)}")
    print("Both say the same." if inside == delivered else f"They differ: {sorted(inside ^ delivered)}")
    return 0 if inside == delivered else 1


def matched_inside(files: DataFrame, listed: Path, folder: Path) -> Wanted:
    """The engines in the executors; the list of subscriptions is looked at before each micro-batch."""
    found: Wanted = set()

    def write(matched: DataFrame, batch_id: int) -> None:
        rows = matched.select("id", "subscription").where("subscription IS NOT NULL").collect()
        print(f"micro-batch {batch_id}: {len(rows)} matches inside Spark")
        found.update((row.id, row.subscription) for row in rows)

    matching = MatchStream(listed, write, keep=["id"])
    to_its_end(files.writeStream.foreachBatch(matching), folder / "checkpoint-inside")
    return found


def published(files: DataFrame, address: str, folder: Path) -> None:
    """The same files to the server, each exactly once."""
    sink = files.writeStream.format("pathsieve").option("endpoint", address).option("idColumn", "id")
    to_its_end(sink, folder / "checkpoint-sink")


def to_its_end(writer: Any, checkpoint: Path) -> None:
    writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start().awaitTermination()


def received(messages: Attachment, n_matches: int) -> Wanted:
    """What a subscriber gets, who waits for so many."""
    found: Wanted = set()
    while len(found) < n_matches:
        message = next(messages)
        wanted = [name.removeprefix("subscriptions/") for name, _ in message.matches]
        print(f"{message.document.id} is for {', '.join(wanted)}")
        found.update((message.document.id, name) for name in wanted)
    return found


def session() -> SparkSession:
    """A small Spark on this machine."""
    settings = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.log.level": "ERROR"}
    builder = SparkSession.Builder().master("local[2]").appName("pathsieve example")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()


def write_files(folder: Path) -> None:
    """Some quotes, some of them halted."""
    folder.mkdir()
    random = Random(1)
    for number in range(N_FILES):
        quotes = "".join(
            f"<quote symbol='{random.choice(SYMBOLS)}'><price>{random.randrange(200)}</price></quote>"
            for _ in range(random.randint(1, 2))
        )
        halted = "<halted/>" if random.random() < 0.3 else ""
        (folder / f"quotes-{number:02}.xml").write_text(f"<quotes>{quotes}{halted}</quotes>")


if __name__ == "__main__":
    sys.exit(main())
