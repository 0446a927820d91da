"""A log followed by several: the same records, sequences and segments everywhere, whoever appended or closed them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import numpy as np
import pytest

from server.documents import Document
from server.errors import StoreError
from server.log.cursors import Cursors
from server.log.follower import LogFollower
from server.log.match_log import MatchLog, Record, SegmentLimits
from server.store import Store, open_store
from server.store.generations import check

NOBODY, EVERYBODY = (lambda numbers: False), (lambda numbers: True)


class Side:
    """One replica's view of the log."""

    def __init__(self, store: Store, log: MatchLog, hears: object) -> None:
        self.store, self.log = store, log
        self.follower = LogFollower(store, log, hears)  # type: ignore[arg-type]
        self.records: list[Record] = []
        log.on_append = self.records.extend

    async def append(self, *numbers: int, key: bytes | None = None) -> list[int]:
        document = Document(f"{numbers}", xml=b"<a/>", publish_time=1.0)
        return await self.log.append_once([("default", document, np.array(numbers))], [key])

    def seen(self) -> list[tuple[int, list[int], list[int]]]:
        return [(each.position, each.numbers.tolist(), each.sequences.tolist()) for each in self.records]


@asynccontextmanager
async def sides(url: str, *hears: object, records: int = 4) -> AsyncIterator[list[Side]]:
    found = []
    for who in hears:
        store = await open_store(url, shared=True)
        found.append(Side(store, await MatchLog.open(store, limits=SegmentLimits(records=records)), who))
        found[-1].log.closer.is_keeper = len(found) == 1
    try:
        yield found
    finally:
        for side in found:
            await side.log.close()
            await side.store.close()


async def test_all_see_the_same_records_in_the_same_order(postgres_url: str) -> None:
    async with sides(postgres_url, EVERYBODY, NOBODY) as (one, other):
        await asyncio.gather(*(side.append(number, number + 1) for number in (1, 2, 3) for side in (one, other)))
        await asyncio.gather(one.follower.catch_up(), other.follower.catch_up())
        assert len(one.seen()) == 6
        assert one.seen() == other.seen()
        assert [record.document.id for record in other.records] == [""] * 6
        assert all(record.document.id for record in one.records)


async def test_a_key_is_taken_once_whoever_brings_it(postgres_url: str) -> None:
    async with sides(postgres_url, EVERYBODY, EVERYBODY) as (one, other):
        assert await one.append(1, key=b"k") == [1]
        assert await other.append(1, key=b"k") == [0]
        assert await other.append(1, key=b"l") == [2]
        await one.follower.catch_up()
        assert [sequences for _, _, sequences in one.seen()] == [[1], [2]]


async def test_segments_that_the_keeper_closes_leave_the_memory_of_the_others(postgres_url: str) -> None:
    async with sides(postgres_url, NOBODY, NOBODY) as (keeper, other):
        for number in range(10):
            await other.append(1, 2 + number % 2)
        await keeper.follower.catch_up()
        await keeper.log.until_closed()
        await other.follower.catch_up()
        await other.follower.catch_up()
        assert other.log.tail.closed == keeper.log.tail.closed > 0
        assert other.log.tail.parts[0].first_position == other.log.tail.closed + 1
        assert (other.log.closer.heads[:4] == keeper.log.closer.heads[:4]).all()
        for side in (keeper, other):
            assert [sequence for sequence, _ in await side.log.read(1, 1, 100, 1 << 20)] == list(range(1, 11))
            assert [sequence for sequence, _ in await side.log.read(2, 3, 100, 1 << 20)] == [3, 4, 5]


async def test_another_can_become_the_keeper(postgres_url: str) -> None:
    async with sides(postgres_url, NOBODY, NOBODY) as (keeper, other):
        for _ in range(6):
            await keeper.append(1)
        await keeper.follower.catch_up()
        await keeper.log.until_closed()
        keeper.log.closer.is_keeper = False
        for _ in range(7):
            await keeper.append(1, 2)
        await other.follower.catch_up()
        other.log.closer.is_keeper = True
        other.log.closer.wake()
        await other.log.until_closed()
        await keeper.follower.catch_up()
        assert keeper.log.tail.closed == other.log.tail.closed >= 8
        fresh = await MatchLog.open(keeper.store)
        assert fresh.heads[:3].tolist() == [0, 13, 7]
        for side in (keeper, other):
            assert [sequence for sequence, _ in await side.log.read(1, 1, 100, 1 << 20)] == list(range(1, 14))


async def test_a_record_somebody_begins_to_listen_for_comes_with_its_document(postgres_url: str) -> None:
    listening: list[int] = []
    async with sides(postgres_url, lambda numbers: bool(set(numbers.tolist()) & set(listening))) as (side,):
        read = side.follower._documents

        async def read_and_begin(positions: list[int]) -> object:
            found = await read(positions)
            if not listening:
                listening.append(2)  # after the documents were chosen, before the records are handed on
            return found

        side.follower._documents = read_and_begin  # type: ignore[assignment, method-assign]
        for number in (1, 2, 1, 2):
            await side.append(number)
        await side.follower.catch_up()
        assert [(record.position, record.document.id) for record in side.records] == [
            (1, ""),
            (2, "(2,)"),
            (3, ""),
            (4, "(2,)"),
        ]


async def test_only_a_postgresql_can_be_shared(tmp_path: object) -> None:
    with pytest.raises(StoreError, match="replicas share a PostgreSQL"):
        await open_store(f"{tmp_path}/store.db", shared=True)


async def test_who_stands_alone_and_replicas_keep_out_of_each_others_way(postgres_url: str) -> None:
    alone = await open_store(postgres_url)
    with pytest.raises(StoreError, match="stands alone"):
        await open_store(postgres_url, shared=True)
    await alone.close()
    replica = await open_store(postgres_url, shared=True)
    with pytest.raises(StoreError, match="another server"):
        await open_store(postgres_url)
    await replica.close()


async def test_what_the_keeper_drops_is_done_for_cursors_elsewhere(postgres_url: str) -> None:
    async with sides(postgres_url, NOBODY, NOBODY) as (keeper, other):
        mine = await Cursors.open(keeper.store, keeper.log, tokens=[1])
        theirs = await Cursors.open(other.store, other.log, tokens=[2])
        other.follower.on_expire = theirs.skip_expired
        for _ in range(6):
            await keeper.append(1, 2)
        await keeper.follower.catch_up()
        await other.follower.catch_up()
        theirs.acknowledge(np.array([2]), np.array([1]))
        expired = await keeper.log.expire(before=2.0)
        assert (expired.documents, expired.never_done) == (6, 6)
        await other.append(2)
        await other.follower.catch_up()
        await other.follower.catch_up()
        assert (mine.floor(1), theirs.floor(2)) == (6, 6)
        assert (mine.n_expired, theirs.n_expired) == (6, 5)
        assert theirs.backlog(np.array([2])) == 1
        assert [sequence for sequence, _ in await other.log.read(2, 7, 10, 1 << 20)] == [7]
        for cursors in (mine, theirs):
            await cursors.close()


async def test_a_keeper_that_was_replaced_closes_nothing(postgres_url: str) -> None:
    async with sides(postgres_url, NOBODY) as (side,):
        await side.store.generations.claim("notifying", {0: 2}, "b")
        side.log.closer.fence = lambda connection: check(connection, "notifying", {0: 1})
        for _ in range(5):
            await side.append(1)
        await side.follower.catch_up()
        await side.log.until_closed()
        assert not side.log.closer.is_keeper
        assert (await MatchLog.open(side.store)).tail.closed == 0
