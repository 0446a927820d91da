"""What the match log reads and writes: operations on a connection, and nothing in memory.

append ──▶ documents, records, logs.position, published  every document
follow ──▶ what others have appended and closed          every replica
close  ──▶ segments, segment_chunks, head_pages, logs.closed     every segment
drop   ──▶ all rows of a segment, logs.expired            retention
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np

from server.documents import Document
from server.log.number_codes import unpack
from server.log.segments import SegmentChunk
from server.store.databases import Connection, Row, inserting, placeholders
from server.store.document_codes import DOCUMENT_COLUMNS, document_from_row
from server.store.jobs import Operation

__all__ = [
    "PAGE",
    "Appending",
    "Closing",
    "LogState",
    "NewRecord",
    "News",
    "Segment",
    "append",
    "close_segment",
    "create",
    "drop_records",
    "drop_segment",
    "follow",
    "forget_published",
    "read_chunks",
    "read_documents",
    "read_heads",
    "read_open_records",
    "read_segment",
    "read_state",
    "read_tenants",
    "read_times",
    "tenant_end",
]

Value = TypeVar("Value")

PAGE = 1024
LOG_BITS = 48
VALUES_AT_ONCE = 500
DOCUMENT_TABLE = ("number", "tenant", *DOCUMENT_COLUMNS)
RECORD_TABLE = ("log", "position", "document", "numbers")
SEGMENT_TABLE = ("log", "first_position", "last_position", "oldest", "newest", "n_matches", "n_bytes")


@dataclass(frozen=True, slots=True)
class Segment:
    """A closed stretch of the log: where, when, how much."""

    first_position: int
    last_position: int
    oldest: float
    newest: float
    n_matches: int
    n_bytes: int

    @property
    def n_records(self) -> int:
        return self.last_position - self.first_position + 1


@dataclass(frozen=True, slots=True)
class LogState:
    """The newest position, and up to where segments are closed and gone."""

    position: int
    closed: int
    expired: int
    segments: list[Segment]


class NewRecord(NamedTuple):
    """A record without a position. One whose `key` is known already is left out: another replica has taken it."""

    document: Row
    numbers: bytes
    time: float
    key: bytes | None = None


@dataclass(slots=True)
class Appending:
    """What one call appends, and what else is to be done."""

    log: int
    records: list[NewRecord]
    extra: Sequence[Operation] = ()


class News(NamedTuple):
    """What is new in a log: rows of (position, numbers, publish time, bytes), and the segments closed meanwhile."""

    rows: list[Row]
    position: int
    closed: int
    expired: int
    segments: list[Segment]
    heads: list[tuple[int, np.ndarray]]


def create(connection: Connection, log: int) -> None:
    """A log that is empty, if it is not there yet."""
    sql = "INSERT INTO logs (log, position, closed, expired) VALUES (?, 0, 0, 0) ON CONFLICT (log) DO NOTHING"
    connection.execute(sql, (log,))


def append(connection: Connection, calls: Sequence[Appending]) -> list[list[int]]:
    """Append what several calls bring; the positions of each, 0 for a record that is left out."""
    log = calls[0].log
    for call in calls:
        for operation in call.extra:
            operation(connection)
    known = _known(connection, [record for call in calls for record in call.records])
    n_new = sum(record.key is None or record.key not in known for call in calls for record in call.records)
    sql = "UPDATE logs SET position = position + ? WHERE log = ? RETURNING position"
    position = int(connection.execute(sql, (n_new, log))[0][0]) - n_new
    documents, records, positions = [], [], []
    for call in calls:
        positions.append([0] * len(call.records))
        for place, record in enumerate(call.records):
            if record.key is not None and record.key in known:
                continue
            position += 1
            number = (log << LOG_BITS) + position
            documents.append((number, *record.document))
            records.append((log, position, number, record.numbers))
            positions[-1][place] = position
    connection.insert("documents", DOCUMENT_TABLE, documents)
    connection.insert("records", RECORD_TABLE, records)
    if records:
        connection.tell("log")
    return positions


def _known(connection: Connection, records: Sequence[NewRecord]) -> set[bytes]:
    """The keys that were published before; the others are written down."""
    times = {record.key: record.time for record in records if record.key is not None}
    known = set(times)
    for some in _in_blocks(list(times.items())):
        sql = f"{inserting('published', ('key', 'time'), len(some))} ON CONFLICT (key) DO NOTHING RETURNING key"
        new = connection.execute(sql, [value for row in some for value in row])
        known.difference_update(bytes(key) for (key,) in new)
    return known


def forget_published(connection: Connection, before: float) -> None:
    """Forget keys from before a time."""
    connection.execute("DELETE FROM published WHERE time < ?", (before,))


def follow(connection: Connection, log: int, position: int, closed: int, limit: int) -> News:
    """What came after a position, and what was closed after another."""
    sql = "SELECT position, closed, expired FROM logs WHERE log = ?"
    newest, now_closed, expired = connection.execute(sql, (log,))[0]
    rows = read_open_records(connection, log, position, limit) if newest > position else []
    if now_closed == closed:
        return News(rows, newest, closed, expired, [], [])
    return News(rows, newest, now_closed, expired, _segments(connection, log, closed), read_heads(connection, log))


def read_state(connection: Connection, log: int) -> LogState:
    sql = "SELECT position, closed, expired FROM logs WHERE log = ?"
    position, closed, expired = connection.execute(sql, (log,))[0]
    return LogState(position, closed, expired, _segments(connection, log, 0))


def _segments(connection: Connection, log: int, after: int) -> list[Segment]:
    sql = f"""SELECT {", ".join(SEGMENT_TABLE[1:])} FROM segments
        WHERE log = ? AND first_position > ? ORDER BY first_position"""
    return [Segment(*row) for row in connection.execute(sql, (log, after))]


def read_heads(connection: Connection, log: int) -> list[tuple[int, np.ndarray]]:
    """The heads at the end of the last closed segment, page by page."""
    rows = connection.execute("SELECT page, heads FROM head_pages WHERE log = ?", (log,))
    return [(page, unpack(heads, PAGE)) for page, heads in rows]


def read_open_records(connection: Connection, log: int, after: int, limit: int = 1 << 62) -> list[Row]:
    """(position, numbers, publish time, bytes) of the records after a position."""
    sql = """SELECT r.position, r.numbers, d.publish_time, length(d.xml)
        FROM records r JOIN documents d ON d.number = r.document
        WHERE r.log = ? AND r.position > ? ORDER BY r.position LIMIT ?"""
    return connection.execute(sql, (log, after, limit))


def read_documents(connection: Connection, log: int, positions: Sequence[int]) -> dict[int, Document]:
    """The documents at some positions; those that retention has dropped are missing."""
    found: dict[int, Document] = {}
    columns = ", ".join(f"d.{column}" for column in DOCUMENT_COLUMNS)
    for some in _in_blocks(positions):
        sql = f"""SELECT r.position, {columns} FROM records r JOIN documents d ON d.number = r.document
            WHERE r.log = ? AND r.position IN ({placeholders(len(some))})"""
        found.update((row[0], document_from_row(row[1:])) for row in connection.execute(sql, (log, *some)))
    return found


def read_times(connection: Connection, log: int, positions: Sequence[int]) -> dict[int, float]:
    """When the documents at some positions were published."""
    found: dict[int, float] = {}
    for some in _in_blocks(positions):
        sql = f"""SELECT r.position, d.publish_time FROM records r JOIN documents d ON d.number = r.document
            WHERE r.log = ? AND r.position IN ({placeholders(len(some))})"""
        found.update(connection.execute(sql, (log, *some)))
    return found


def read_tenants(connection: Connection, log: int, first: int, last: int) -> list[Row]:
    """(position, tenant) of the records from one position to another; those that were dropped are missing."""
    sql = """SELECT r.position, d.tenant FROM records r JOIN documents d ON d.number = r.document
        WHERE r.log = ? AND r.position BETWEEN ? AND ? ORDER BY r.position"""
    return connection.execute(sql, (log, first, last))


def tenant_end(connection: Connection, log: int, tenant: str, after: int, last: int, n_documents: int) -> int:
    """Where a tenant's next so many documents after a position end; `after` if it has none."""
    sql = """SELECT max(position) FROM (
        SELECT r.position FROM records r JOIN documents d ON d.number = r.document
        WHERE r.log = ? AND r.position > ? AND r.position <= ? AND d.tenant = ? ORDER BY r.position LIMIT ?) AS found"""
    ((found,),) = connection.execute(sql, (log, after, last, tenant, n_documents))
    return after if found is None else int(found)


def read_chunks(connection: Connection, log: int, chunk: int, first: int, last: int) -> dict[int, SegmentChunk]:
    """One chunk of the segments that begin from `first` to `last`, by where they begin."""
    sql = """SELECT first_position, entries FROM segment_chunks
        WHERE log = ? AND chunk = ? AND first_position BETWEEN ? AND ?"""
    rows = connection.execute(sql, (log, chunk, first, last))
    return {first_position: SegmentChunk.from_bytes(code) for first_position, code in rows}


def read_segment(connection: Connection, log: int, chunks: Sequence[int], first_position: int) -> list[SegmentChunk]:
    """Some chunks of one segment, those that it has."""
    found: list[SegmentChunk] = []
    for some in _in_blocks(chunks):
        sql = f"""SELECT entries FROM segment_chunks
            WHERE log = ? AND first_position = ? AND chunk IN ({placeholders(len(some))}) ORDER BY chunk"""
        found += [SegmentChunk.from_bytes(code) for (code,) in connection.execute(sql, (log, first_position, *some))]
    return found


@dataclass(frozen=True, slots=True)
class Closing:
    """A segment ready to be written: its index in chunks, and the pages of heads at its end, all coded."""

    segment: Segment
    chunks: list[tuple[int, bytes]]
    head_pages: list[tuple[int, bytes]]


def close_segment(connection: Connection, log: int, closing: Closing) -> None:
    """A segment with its index, and the heads at its end. Without effect if it has landed before."""
    segment = closing.segment
    (closed,) = connection.execute("SELECT closed FROM logs WHERE log = ?", (log,))[0]
    if closed >= segment.last_position:
        return
    connection.insert("segments", SEGMENT_TABLE, [(log, *(getattr(segment, name) for name in SEGMENT_TABLE[1:]))])
    chunks = [(log, chunk, segment.first_position, code) for chunk, code in closing.chunks]
    connection.insert("segment_chunks", ("log", "chunk", "first_position", "entries"), chunks)
    for some in _in_blocks([page for page, _ in closing.head_pages]):
        connection.execute(
            f"DELETE FROM head_pages WHERE log = ? AND page IN ({placeholders(len(some))})", (log, *some)
        )
    connection.insert("head_pages", ("log", "page", "heads"), [(log, page, code) for page, code in closing.head_pages])
    connection.execute("UPDATE logs SET closed = ? WHERE log = ?", (segment.last_position, log))


def drop_records(connection: Connection, log: int, first: int, last: int) -> None:
    """Delete the records from one position to another, and their documents."""
    where = "log = ? AND position BETWEEN ? AND ?"
    sql = f"DELETE FROM documents WHERE number IN (SELECT document FROM records WHERE {where})"
    connection.execute(sql, (log, first, last))
    connection.execute(f"DELETE FROM records WHERE {where}", (log, first, last))


def drop_segment(connection: Connection, log: int, segment: Segment, chunks: Sequence[int]) -> None:
    """Delete a segment whose records are gone, and its chunks."""
    where = "log = ? AND first_position = ?"
    connection.execute(f"DELETE FROM segments WHERE {where}", (log, segment.first_position))
    for some in _in_blocks(chunks):
        sql = f"DELETE FROM segment_chunks WHERE {where} AND chunk IN ({placeholders(len(some))})"
        connection.execute(sql, (log, segment.first_position, *some))
    connection.execute("UPDATE logs SET expired = ? WHERE log = ?", (segment.last_position, log))


def _in_blocks(values: Sequence[Value]) -> Iterator[Sequence[Value]]:
    for start in range(0, len(values), VALUES_AT_ONCE):
        yield values[start : start + VALUES_AT_ONCE]
