"""`spark.readStream.format("pathsieve")`: notifications as they come, in micro-batches that can be repeated.

    initialOffset ─▶ latestOffset(start, limit) ─▶ partitions(start, end) ─▶ tasks read ─▶ commit(end)
                          ▲                                                                  │
                          └── the next batch starts where the last one has ended ◀───────────┘

What lies between two offsets never changes while retention keeps it, whoever else reads or acknowledges: so a batch
that is run again, after any crash, has the same rows. Acknowledging (`acknowledge`) tells the server how far a
checkpoint has got, for its backlogs; it is not needed to go on.

Of all of a tenant an offset is a position of a log that others write as well. What they write makes no batches; the
offset is moved past it once a minute, so that retention does not overtake an idle query.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from pathsieve import Client
from pathsieve.errors import PathSieveError
from pyspark_pathsieve.connection import Connection
from pyspark_pathsieve.errors import OptionError
from pyspark_pathsieve.notification_rows import check_schema
from pyspark_pathsieve.notifications import Notifications, explained, parts_of, read_part
from pyspark_pathsieve.options import Options
from pyspark_pathsieve.positions import ALL, LATEST, Offset, named, spans_between

__all__ = ["StreamReader"]

Answer = TypeVar("Answer")

IDLE_SECONDS = 60.0


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """In the driver, with one client; a copy without it travels to the executors."""

    def __init__(self, options: Options, schema: StructType) -> None:
        check_schema(schema)
        self._options = options
        self._schema = schema
        self._connection = Connection.of(options)
        self._client: Client | None = None
        self._target: Offset | None = None
        self._latest: Offset | None = None
        self._acknowledged: Offset = {}
        self._idle_since = time.monotonic()

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_client": None}

    def initialOffset(self) -> Offset:
        offset = self._asked(lambda there: there.start(self._options["startingPosition"]))
        self._acknowledged = dict(offset)
        return offset

    def getDefaultReadLimit(self) -> ReadLimit:
        limit = self._options["maxDocsPerTrigger"]
        return ReadMaxRows(limit) if limit else ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        self._target = self._asked(lambda there: there.end(LATEST))

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        self._must_be_ours(start)
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        end, heads = self._asked(lambda there: there.next(start, most, self._target))
        self._latest = heads
        self._acknowledge(start)
        return self._past_others(start, end, heads)

    def _past_others(self, start: Offset, end: Offset, heads: Offset) -> Offset:
        """Now and then past what other tenants have written, though it is nothing to read."""
        if end != start or ALL not in end or self._target is not None:
            self._idle_since = time.monotonic()
        elif time.monotonic() - self._idle_since > IDLE_SECONDS:
            self._idle_since = time.monotonic()
            return heads
        return end

    def reportLatestOffset(self) -> Offset | None:
        return self._latest

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        for name, first in start.items():
            self._acknowledged.setdefault(name, first)
        return parts_of(spans_between(start, end), self._options)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_part(partition, self._connection, self._schema, self._options["failOnDataLoss"])

    def commit(self, end: Offset) -> None:
        self._acknowledge(end)

    def stop(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None

    def _acknowledge(self, end: Offset) -> None:
        """All before this offset is in a batch that Spark has committed. Spark tells it one batch late, and an idle
        query never; a batch that starts here says the same."""
        heads = self._latest
        if not self._options["acknowledge"] or heads is None:
            return
        marks = {
            name: min(first, heads.get(name, 1)) - 1
            for name, first in end.items()
            if first > self._acknowledged.get(name, 1)
        }
        after = self._acknowledged.get(ALL, end.get(ALL, 1)) - 1
        if marks:
            self._asked(lambda there: there.acknowledge(marks, after))
        self._acknowledged |= end

    def _must_be_ours(self, start: Offset) -> None:
        names = self._options["subscription"]
        if set(start) != set(names):
            words = f"the checkpoint is of {named(sorted(start))}, and the option subscription names {named(names)}"
            raise OptionError(f"{words}; take a new checkpointLocation", {"option": "subscription"})

    def _asked(self, ask: Callable[[Notifications], Answer]) -> Answer:
        """What the server says; the client stays for the next question."""
        if self._client is None:
            self._client = self._connection.open()
        options = self._options
        try:
            return ask(Notifications(self._client, options["subscription"], options["failOnDataLoss"]))
        except PathSieveError as error:
            raise explained(error, self._connection) from error
