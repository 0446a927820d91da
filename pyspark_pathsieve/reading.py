"""`spark.read.format("pathsieve")`: notifications from one position to another, as they are when the query is planned.

    startingPosition ─┐
    endingPosition ───┴──▶ spans, fixed ──▶ parts ──▶ tasks read them

Nothing is taken or acknowledged, so a read may be repeated, and tasks that fail are.
"""

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from pathsieve.errors import PathSieveError
from pyspark_pathsieve.connection import Connection
from pyspark_pathsieve.notification_rows import check_schema
from pyspark_pathsieve.notifications import Notifications, explained, parts_of, read_part
from pyspark_pathsieve.options import Options
from pyspark_pathsieve.positions import spans_between

__all__ = ["BatchReader", "look"]

LOOK_SECONDS = 15.0
"""How long the driver tries to reach a server before it says that there is none: whoever waits is a person."""


class BatchReader(DataSourceReader):
    """Travels to the executors; has no connection of its own."""

    def __init__(self, options: Options, schema: StructType) -> None:
        check_schema(schema)
        self._options = options
        self._schema = schema
        self._connection = Connection.of(options)

    def partitions(self) -> Sequence[InputPartition]:
        options = self._options
        try:
            with self._connection.open(patience=min(self._connection.patience, LOOK_SECONDS)) as client:
                there = Notifications(client, options["subscription"], options["failOnDataLoss"])
                start, end = there.start(options["startingPosition"]), there.end(options["endingPosition"])
        except PathSieveError as error:
            raise explained(error, self._connection) from error
        later = {name: max(stop, start[name]) for name, stop in end.items()}
        return parts_of(spans_between(start, later), options)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_part(partition, self._connection, self._schema, self._options["failOnDataLoss"])


def look(options: Options) -> None:
    """Is there a server, and does it know the subscriptions? While the user still looks at the line that asks."""
    connection = Connection.of(options)
    try:
        with connection.open(patience=min(connection.patience, LOOK_SECONDS)) as client:
            Notifications(client, options["subscription"], fail_on_data_loss=False).ranges()
    except PathSieveError as error:
        raise explained(error, connection) from error
