"""What the driver asks a server of the subscriptions that are read, and what an executor reads.

    driver     ranges ──▶ earliest, latest, the next end within a limit, what is lost
    executor   a part: some spans ──▶ page after page ──▶ Arrow batches

An offset says what is read next, so it is one more than the newest that was read. What retention has dropped before it
was read is lost: then `failOnDataLoss` decides.
"""

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from pathsieve import Client, Page, Range
from pathsieve.errors import InvalidRequest, NotFound, PathSieveError
from pyspark_pathsieve.connection import Connection, cannot_connect
from pyspark_pathsieve.errors import ConnectorError, DataLost, OptionError, UnknownSubscription
from pyspark_pathsieve.notification_rows import batches_of
from pyspark_pathsieve.options import Options
from pyspark_pathsieve.positions import ALL, EARLIEST, LATEST, Offset, Position, Span, limited, named, shared_out

__all__ = ["Notifications", "Part", "explained", "parts_of", "read_part"]


class Part(InputPartition):
    """What one task reads."""

    def __init__(self, number: int, spans: Sequence[Span]) -> None:
        super().__init__(number)
        self.number = number
        self.spans = tuple(spans)


class Notifications:
    """The subscriptions of one read, as a server has them; in the driver."""

    def __init__(self, client: Client, names: Sequence[str], fail_on_data_loss: bool) -> None:
        self._client = client
        self._names = names
        self._fail_on_data_loss = fail_on_data_loss

    def ranges(self) -> dict[str, Range]:
        """What there is of each."""
        if self._names == (ALL,):
            return {ALL: self._client.tenant_range()}
        return dict(zip(self._names, self._client.ranges(self._names), strict=True))

    def start(self, position: Position) -> Offset:
        """What `startingPosition` is; a subscription that it does not name is read from its earliest."""
        ranges = self.ranges()
        if position == LATEST:
            return ends_of(ranges)
        earliest = {name: found.dropped + 1 for name, found in ranges.items()}
        if position == EARLIEST:
            return earliest
        return self.checked(earliest | self._of_ours(position, "startingPosition", ranges), ranges)

    def end(self, position: Position) -> Offset:
        """What `endingPosition` is; a subscription that it does not name is read to its latest."""
        ranges = self.ranges()
        latest = ends_of(ranges)
        return latest if position == LATEST else latest | self._of_ours(position, "endingPosition", ranges)

    def _of_ours(self, position: Position, option: str, ranges: Mapping[str, Range]) -> Offset:
        """The position, if it is one of the subscriptions that are read, and is there or comes next."""
        assert isinstance(position, dict)
        if unknown := sorted(position.keys() - ranges.keys()):
            words = f"option {option} names {named(unknown)}, which the option subscription does not"
            raise OptionError(words, {"option": option})
        for name, first in position.items():
            if first > ranges[name].head + 1:
                words = f"option {option}: {name} ends at {ranges[name].head:,}, so {first:,} is not there yet"
                raise OptionError(words, {"option": option})
        return position

    def checked(self, start: Offset, ranges: Mapping[str, Range]) -> Offset:
        """Is all from here on still there? `DataLost` if not, unless that is allowed."""
        for name, found in ranges.items():
            if self._fail_on_data_loss and not found.dropped < start[name] <= found.head + 1:
                raise lost(name, start[name], found)
        return start

    def next(self, start: Offset, limit: int | None, target: Offset | None) -> tuple[Offset, Offset]:
        """The end of what is read next, at most `limit` documents and not beyond `target`; and the end of all."""
        ranges = self.ranges()
        self.checked(start, ranges)
        ends = end = ends_of(ranges)
        if ALL in ranges:
            after = start[ALL] - 1 if start[ALL] <= ends[ALL] else 0
            end = {ALL: self._client.tenant_range(after, limit or 0).through + 1}
        if target is not None:
            end = {name: max(min(stop, target[name]), min(start[name], stop)) for name, stop in end.items()}
        return (limited(start, end, limit) if limit and ALL not in end else end), ends

    def acknowledge(self, marks: Mapping[str, int], after: int) -> None:
        """All up to these is done; of a tenant, of those that have something after a position."""
        self._client.acknowledge_through(marks, after=after)


def ends_of(ranges: Mapping[str, Range]) -> Offset:
    return {name: found.head + 1 for name, found in ranges.items()}


def lost(name: str, first: int, found: Range) -> DataLost:
    """What to say of a start that is not there."""
    whose = "the tenant's documents" if name == ALL else f"the notifications of {name}"
    if first > found.head + 1:
        words = f"{whose} end at {found.head:,}, before {first:,} that comes next: deleted and made again since?"
    elif name == ALL:
        words = f"the log up to {found.dropped:,} is past retention, and {first:,} comes next: some of it may be ours"
    else:
        words = f"{whose} up to {found.dropped:,} are past retention, and {first:,} comes next"
    advice = "; failOnDataLoss=false goes on with what is there"
    return DataLost(words + advice, {"subscription": name, "first": first, "dropped": found.dropped})


def explained(error: PathSieveError, connection: Connection) -> ConnectorError:
    """An error of the client, for who wrote the options."""
    if isinstance(error, NotFound):
        name = error.name.removeprefix("subscriptions/")
        words = f"there is no subscription {name} at {', '.join(connection.endpoints)}; check the option subscription"
        return UnknownSubscription(words, {"subscription": name})
    if isinstance(error, InvalidRequest):
        return ConnectorError(str(error), error.facts)
    return cannot_connect(connection.endpoints, error)


def parts_of(spans: Sequence[Span], options: Options) -> list[InputPartition]:
    """What is read, shared out among tasks."""
    parts = shared_out(spans, options["docsPerPartition"])
    return [Part(number, part) for number, part in enumerate(parts)]


def read_part(
    partition: InputPartition, connection: Connection, schema: StructType, fail_on_data_loss: bool
) -> Iterator[pa.RecordBatch]:
    """In a task: all rows of a part, page by page. A page that fails is asked for again, elsewhere if need be."""
    if not isinstance(partition, Part):
        return
    with connection.open(turn=partition.number) as client:
        for span in partition.spans:
            for page in pages_of(span, client, connection):
                if page.dropped and fail_on_data_loss:
                    raise lost(span.name, span.first, Range(span.name, page.dropped, span.end, span.end))
                yield from batches_of(page.notifications, schema)


def pages_of(span: Span, client: Client, connection: Connection) -> Iterator[Page]:
    after = span.first - 1
    while after < span.end - 1:
        try:
            page = client.read_page(span.name, after, span.end - 1)
        except PathSieveError as error:
            raise explained(error, connection) from error
        yield page
        after = page.through
