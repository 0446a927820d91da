"""The match log: what was appended comes back, by subscription or by position, from memory, segments or a new start."""

import asyncio
from collections.abc import AsyncIterator, Sequence

import numpy as np
import pytest

from server.documents import Document
from server.errors import AlreadyExists, StoreError
from server.log.match_log import Expired, MatchLog, Record, SegmentLimits
from server.store import Store, open_store
from server.store.databases import Connection

EVERYTHING = (1_000_000, 1 << 40)
SMALL = SegmentLimits(records=4)


@pytest.fixture
async def log(store: Store) -> AsyncIterator[MatchLog]:
    opened = await MatchLog.open(store, limits=SMALL)
    yield opened
    await opened.close()


def entry(name: str, *numbers: int, time: float = 1.0, xml: bytes = b"<a/>") -> tuple[str, Document, np.ndarray]:
    return "default", Document(name, xml=xml, publish_time=time), np.array(numbers, np.int64)


def shown(messages: Sequence[tuple[int, Document]]) -> list[tuple[int, str]]:
    return [(sequence, document.id) for sequence, document in messages]


async def append_closed(log: MatchLog, entries: Sequence[tuple[str, Document, np.ndarray]]) -> None:
    """Append one by one, and wait until whatever is full is a closed segment."""
    for one in entries:
        await log.append([one])
    await log.until_closed()


async def test_a_sequence_counts_the_records_that_hold_a_number(log: MatchLog) -> None:
    records = await log.append([entry("a", 1, 2), entry("b", 2), entry("c", 1, 2)])
    assert [record.position for record in records] == [1, 2, 3]
    assert [record.sequences.tolist() for record in records] == [[1, 1], [2], [2, 3]]
    assert log.heads[[1, 2, 3]].tolist() == [2, 3, 0]


async def test_documents_come_back_as_they_were(log: MatchLog) -> None:
    document = Document("id\0", "source\0", b"<a/>", {"price": 1.5, "tags": ["x", 7, True]}, {"k": "\0v"}, 12.25)
    await log.append([("default", document, np.array([1]))])
    await append_closed(log, [entry(str(i), 2) for i in range(3)])
    log.tail.recent.clear()
    assert (await log.read(1, 1, *EVERYTHING)) == [(1, document)]


async def test_appends_of_many_tasks_get_positions_in_the_order_they_are_seen(log: MatchLog) -> None:
    seen: list[int] = []
    log.on_append = lambda records: seen.extend(record.position for record in records)
    results = await asyncio.gather(*(log.append([entry(f"{i}", 1), entry(f"{i}b", 1)]) for i in range(50)))
    assert seen == list(range(1, 101))
    assert sorted(int(record.sequences[0]) for records in results for record in records) == seen


async def test_on_append_has_seen_a_record_before_any_append_of_its_commit_returns(log: MatchLog) -> None:
    seen: set[int] = set()
    log.on_append = lambda records: seen.update(record.position for record in records)

    async def one() -> bool:
        records = await log.append([entry("x", 1)])
        return all(position in seen for position in range(1, records[-1].position + 1))

    assert all(await asyncio.gather(*(one() for _ in range(20))))


async def test_one_subscription_is_read_across_segments_and_memory(log: MatchLog) -> None:
    await append_closed(log, [entry(str(i), 1 + i % 2, 9) for i in range(11)])
    assert len(log.tail.segments) == 2
    assert shown(await log.read(2, 1, *EVERYTHING)) == [(1, "1"), (2, "3"), (3, "5"), (4, "7"), (5, "9")]
    assert shown(await log.read(9, 4, 3, 1 << 40)) == [(4, "3"), (5, "4"), (6, "5")]
    assert shown(await log.read(9, 12, *EVERYTHING)) == []
    assert shown(await log.read(77, 1, *EVERYTHING)) == []


async def test_a_read_is_cut_by_bytes_but_brings_at_least_one(log: MatchLog) -> None:
    await log.append([entry(str(i), 1, xml=b"x" * 100) for i in range(5)])
    assert len(await log.read(1, 1, 100, 250)) == 2
    assert len(await log.read(1, 1, 100, 1)) == 1
    records, position = await log.read_from(np.array([1]), 0, 100, 250)
    assert ([record.position for record in records], position) == ([1, 2], 2)


async def test_records_are_read_by_position_and_narrowed(log: MatchLog) -> None:
    await append_closed(log, [entry(str(i), *sorted({1 + i % 3, 5, 6})) for i in range(10)])
    found: list[Record] = []
    position = 0
    while position < log.position:
        records, position = await log.read_from(np.array([2, 6]), position, 3, 1 << 40)
        found += records
    assert [record.position for record in found] == list(range(1, 11))
    assert [record.numbers.tolist() for record in found[:3]] == [[6], [2, 6], [6]]
    assert [int(record.sequences[-1]) for record in found] == list(range(1, 11))
    assert await log.read_from(np.array([2, 6]), log.position, 3, 1 << 40) == ([], log.position)


async def test_nothing_is_read_for_numbers_without_records(log: MatchLog) -> None:
    await append_closed(log, [entry(str(i), 1) for i in range(6)])
    assert await log.read_from(np.array([100_000]), 0, *EVERYTHING) == ([], 4)
    assert await log.read_from(np.array([100_000]), 4, *EVERYTHING) == ([], 6)


async def test_what_was_appended_is_there_after_a_new_start(store_url: str) -> None:
    for round_ in range(3):
        store = await open_store(store_url)
        log = await MatchLog.open(store, limits=SMALL)
        log.ensure(5000)
        assert log.position == 7 * round_
        assert log.heads[[1, 5000]].tolist() == [7 * round_, 3 * round_]
        await append_closed(log, [entry(f"{round_}.{i}", *([1] if i % 2 == 0 else [1, 5000])) for i in range(7)])
        await log.close()
        await store.close()


async def test_the_first_sequence_after_a_time_is_found(log: MatchLog) -> None:
    await append_closed(log, [entry(str(i), 1 + i % 2, time=100.0 + i) for i in range(11)])
    assert await log.sequence_at(1, 0.0) == 1
    assert await log.sequence_at(1, 102.5) == 3
    assert await log.sequence_at(2, 103.0) == 2
    assert await log.sequence_at(1, 110.0) == 6
    assert await log.sequence_at(1, 110.5) == 7
    assert await log.sequence_at(77_777, 0.0) == 1


async def test_retention_drops_whole_segments(log: MatchLog) -> None:
    await append_closed(log, [entry(str(i), 1, time=float(i)) for i in range(10)])
    assert await log.expire(before=4.0) == Expired(segments=1, documents=4, matches=4, bytes=16)
    assert shown(await log.read(1, 1, 1, 1)) == [(5, "4")]
    records, _ = await log.read_from(np.array([1]), 0, *EVERYTHING)
    assert [record.position for record in records] == [5, 6, 7, 8]
    assert (await log.expire(before=100.0)).documents == 6
    assert (await log.append([entry("new", 1)]))[0].sequences.tolist() == [11]


async def test_what_else_is_written_in_an_append_lands_with_it_or_not_at_all(store: Store, log: MatchLog) -> None:
    def note(connection: Connection) -> None:
        connection.execute("INSERT INTO counters (name, value) VALUES ('noted', 1)")

    def refuse(connection: Connection) -> None:
        raise AlreadyExists("batch")

    with pytest.raises(AlreadyExists):
        await log.append([entry("a", 1)], [note, refuse])
    assert (await log.append([entry("b", 1)], [note]))[0].position == 1
    rows = await store.read(lambda connection: connection.execute("SELECT value FROM counters WHERE name = 'noted'"))
    assert rows == [(1,)]


async def test_an_append_that_fails_leaves_its_neighbours_alone(log: MatchLog) -> None:
    def refuse(connection: Connection) -> None:
        raise AlreadyExists("batch")

    results = await asyncio.gather(
        *(log.append([entry(str(i), 1)], [refuse] if i % 3 == 1 else []) for i in range(9)), return_exceptions=True
    )
    assert [isinstance(result, AlreadyExists) for result in results] == [i % 3 == 1 for i in range(9)]
    assert log.heads[1] == log.position == 6


async def test_a_document_that_nobody_wants_takes_a_position_and_no_sequence(log: MatchLog) -> None:
    (record,) = await log.append([entry("a")])
    assert (record.position, len(record.numbers), int(log.heads.sum())) == (1, 0, 0)


async def test_a_log_that_lacks_records_is_refused(store: Store, log: MatchLog) -> None:
    await log.append([entry("a", 1), entry("b", 1)])
    await store.write(lambda connection: connection.execute("DELETE FROM records WHERE position = 2"))
    with pytest.raises(StoreError, match="the log ends at 1, not at 2"):
        await MatchLog.open(store)
