"""The sink: a data frame's rows to a server, as a batch or as the micro-batches of a stream.

    driver      planned: options, columns, a first call to the server ──▶ a writer, which travels
    executors   write: rows ─▶ staged parts, or published ──▶ a message: what was staged, how many were dropped
    driver      commit: all messages ──▶ published at one stroke       abort: forgotten

With "exactly-once" nothing is published before `commit`, and a commit that is repeated has no effect: after a driver
that was killed the same (query, batch) comes again, is staged again, and its parts are dropped if it was committed. A
batch that does not belong to a stream has a query of its own, or the `transactionId` that the user gives.
"""

import logging
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Self

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from pathsieve import Client
from pathsieve.errors import InvalidRequest, PathSieveError
from pyspark_pathsieve.columns import Columns
from pyspark_pathsieve.connection import Connection, cannot_connect
from pyspark_pathsieve.dead_letters import check_path, delete_letters
from pyspark_pathsieve.delivering import Part, Publishing, Staging
from pyspark_pathsieve.errors import BatchLost, OptionError
from pyspark_pathsieve.malformed import malformed_of
from pyspark_pathsieve.options import Options
from pyspark_pathsieve.patience import Patience
from pyspark_pathsieve.places import Place
from pyspark_pathsieve.rows import rows_of
from pyspark_pathsieve.spark_internals import current_task, streaming_batch

__all__ = ["BatchWriter", "Delivered", "StreamWriter"]

LOG = logging.getLogger("pathsieve.spark")
PROBE = "pathsieve-spark-probe"
FIRST_ANSWER = 10.0
"""Seconds that the first call of a batch job waits for a server. A stream has all its patience, between batches too."""

Messages = Sequence[WriterCommitMessage | None]


@dataclass
class Delivered(WriterCommitMessage):
    """What one task has done."""

    place: Place
    documents: int
    malformed: int = 0
    parts: list[Part] = field(default_factory=list)
    letters: str | None = None


@dataclass(frozen=True)
class Sink:
    """What batches and streams have in common; it travels to the executors."""

    connection: Connection
    columns: Columns
    is_exact: bool
    on_malformed: str
    letters: str | None
    source: str
    chunk_docs: int

    @classmethod
    def planned(cls, options: Options, schema: StructType, overwrite: bool, query: str, batch: int) -> Self:
        """Checked, in the driver, as far as can be without data."""
        if overwrite:
            raise OptionError("documents are added: use mode append, or outputMode append", {"option": "mode"})
        check_path(options)
        sink = cls(
            Connection.of(options),
            Columns.of(options, schema),
            options["deliveryGuarantee"] == "exactly-once",
            options["onMalformed"],
            options["deadLetterPath"],
            options["source"] or "",
            options["batchDocs"],
        )
        sink.forget(query, batch, min(FIRST_ANSWER, sink.connection.patience) if query != PROBE else None)
        return sink

    def write(self, batches: Iterator[pa.RecordBatch], place: Place) -> Delivered:
        """In a task: hand over all rows."""
        malformed = malformed_of(self.on_malformed, self.letters, place)
        with self.connection.open(place.partition) as client:
            delivering = self._delivering(client, place)
            try:
                n_good = delivering.deliver(rows_of(batches, self.columns, self.source), malformed)
                letters = malformed.finish()
            except BaseException:
                malformed.give_up()
                self._clean_up(delivering)
                raise
        parts = delivering.parts if isinstance(delivering, Staging) else []
        return Delivered(place, n_good, malformed.count, parts, letters)

    def _delivering(self, client: Client, place: Place) -> "Staging | Publishing":
        if self.is_exact:
            patience = Patience(self.connection.patience)
            return Staging(client, place, self.chunk_docs, self.connection.timeout, patience)
        return Publishing(client, place)

    def _clean_up(self, delivering: "Staging | Publishing") -> None:
        """What is left of a task that fails is dropped with its batch at the latest, so a failure is no matter here."""
        try:
            delivering.forget()
        except PathSieveError as error:
            LOG.info("what was staged stays until its batch ends: %s", error)

    def commit(self, messages: Messages) -> None:
        """In the driver: publish what all tasks have staged, once."""
        delivered = [message for message in messages if isinstance(message, Delivered)]
        if not delivered:
            return
        place = delivered[0].place
        n_documents, n_malformed = (sum(getattr(one, name) for one in delivered) for name in ("documents", "malformed"))
        is_again = self.is_exact and self._commit(place, [part for one in delivered for part in one.parts])
        LOG.log(
            logging.WARNING if n_malformed else logging.INFO,
            "batch %d of %s: %s documents published%s, %s refused%s",
            place.batch,
            place.query,
            f"{n_documents:,}",
            " before" if is_again else "",
            f"{n_malformed:,}",
            f" and written to {self.letters}" if self.on_malformed == "deadLetter" else "",
        )

    def _commit(self, place: Place, parts: list[Part]) -> bool:
        """Whether it had been committed before."""
        with self.connection.open() as client:
            try:
                done = Patience(self.connection.patience).calling(lambda: client.commit(*place.batch_key, parts))
            except InvalidRequest as lost:
                facts = {"query": place.query, "batch": place.batch}
                raise BatchLost(f"batch {place.batch} of {place.query} cannot be committed: {lost}", facts) from None
        return done.repeated

    def abort(self, messages: Messages) -> None:
        """In the driver: forget what tasks have staged."""
        delivered = [message for message in messages if isinstance(message, Delivered)]
        if delivered and self.is_exact:
            self.forget(*delivered[0].place.batch_key)
        if self.letters:
            delete_letters(self.letters, [one.letters for one in delivered if one.letters])

    def forget(self, query: str, batch: int, patience: float | None = None) -> None:
        """Drop what is staged of a batch. It needs an answer, and the rights that publishing needs."""
        with self.connection.open(patience=patience) as client:
            try:
                client.abort(query, batch)
            except PathSieveError as error:
                raise cannot_connect(self.connection.endpoints, error) from None


class BatchWriter(DataSourceArrowWriter):
    """One job."""

    def __init__(self, sink: Sink, query: str, batch: int) -> None:
        self._sink = sink
        self._query = query
        self._batch = batch

    @classmethod
    def planned(cls, options: Options, schema: StructType, overwrite: bool) -> Self:
        if options.is_given("batchId") and not options.is_given("transactionId"):
            raise OptionError("option batchId goes with transactionId: give both", {"option": "batchId"})
        query, batch = options["transactionId"] or f"spark-{uuid.uuid4().hex}", options["batchId"]
        return cls(Sink.planned(options, schema, overwrite, query, batch), query, batch)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Delivered:
        return self._sink.write(iterator, Place(self._query, self._batch, current_task().partition))

    def commit(self, messages: Messages) -> None:
        self._sink.commit(messages)

    def abort(self, messages: Messages) -> None:
        self._sink.abort(messages)


class StreamWriter(DataSourceStreamArrowWriter):
    """Each micro-batch of a query. Spark plans anew for each, and once more for its commit."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink

    @classmethod
    def planned(cls, options: Options, schema: StructType, overwrite: bool) -> Self:
        return cls(Sink.planned(options, schema, overwrite, PROBE, 0))

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Delivered:
        return self._sink.write(iterator, Place(*streaming_batch(), current_task().partition))

    def commit(self, messages: Messages, batchId: int) -> None:  # noqa: N803
        self._sink.commit(messages)

    def abort(self, messages: Messages, batchId: int) -> None:  # noqa: N803
        self._sink.abort(messages)
