"""Cursors: what is acknowledged is done, across new starts, in whatever order it was acknowledged."""

from collections.abc import AsyncIterator

import numpy as np
import pytest

from server.documents import Document
from server.errors import Fenced
from server.log.cursor_rows import PAGE
from server.log.cursors import Cursors
from server.log.match_log import MatchLog, SegmentLimits
from server.log.number_codes import pack
from server.store import Store, open_store
from server.store.generations import check

SMALL = SegmentLimits(records=4)
NEVER = 3600.0


@pytest.fixture
async def log(store: Store) -> AsyncIterator[MatchLog]:
    opened = await MatchLog.open(store, limits=SMALL)
    yield opened
    await opened.close()


@pytest.fixture
async def cursors(store: Store, log: MatchLog) -> AsyncIterator[Cursors]:
    opened = await Cursors.open(store, log, flush_interval=NEVER)
    yield opened
    await opened.close()


async def append(log: MatchLog, *numbers: int, n_records: int = 1) -> None:
    document = Document("d", xml=b"<a/>", publish_time=1.0)
    await log.append([("default", document, np.array(numbers, np.int64))] * n_records)


def acknowledge(cursors: Cursors, *pairs: tuple[int, int]) -> None:
    numbers, sequences = zip(*pairs, strict=True)
    cursors.acknowledge(np.array(numbers, np.int64), np.array(sequences, np.int64))


async def reopened(store: Store) -> Cursors:
    return await Cursors.open(store, await MatchLog.open(store, limits=SMALL), flush_interval=NEVER)


async def test_an_acknowledgement_in_order_moves_the_floor(log: MatchLog, cursors: Cursors) -> None:
    await append(log, 1, 2, n_records=3)
    acknowledge(cursors, (1, 1), (2, 1))
    acknowledge(cursors, (1, 2))
    assert cursors.floors[[1, 2]].tolist() == [2, 1]
    assert cursors.backlog(np.array([1, 2])) == 3
    assert (cursors.is_done(1, 2), cursors.is_done(2, 2)) == (True, False)


async def test_one_out_of_order_is_kept_aside_until_the_floor_gets_there(log: MatchLog, cursors: Cursors) -> None:
    await append(log, 1, n_records=5)
    acknowledge(cursors, (1, 3))
    acknowledge(cursors, (1, 2))
    assert (int(cursors.floors[1]), cursors.is_done(1, 3), cursors.backlog(np.array([1]))) == (0, True, 3)
    acknowledge(cursors, (1, 1))
    assert (int(cursors.floors[1]), cursors.backlog(np.array([1]))) == (3, 2)


async def test_many_sequences_of_one_number_may_come_in_one_call(log: MatchLog, cursors: Cursors) -> None:
    await append(log, 1, n_records=5)
    acknowledge(cursors, (1, 2), (1, 1), (1, 4), (1, 3))
    assert int(cursors.floors[1]) == 4


async def test_what_does_not_exist_or_is_done_already_changes_nothing(log: MatchLog, cursors: Cursors) -> None:
    await append(log, 1, n_records=2)
    acknowledge(cursors, (1, 1))
    acknowledge(cursors, (1, 1), (1, 3), (5000, 1), (1, -7))
    assert (int(cursors.floors[1]), int(cursors.floors[5000]), cursors.backlog(np.array([1, 5000]))) == (1, 0, 1)


async def test_all_of_it_is_there_after_a_new_start(store: Store, log: MatchLog, cursors: Cursors) -> None:
    await append(log, 1, 4000, n_records=6)
    acknowledge(cursors, (1, 1), (4000, 3))
    cursors.count_attempt(1, 2)
    assert cursors.count_attempt(1, 2) == 2
    cursors.set_digest_time(4000, 12.5)
    await cursors.flush()
    again = await reopened(store)
    assert again.floors[[1, 4000]].tolist() == [1, 0]
    assert (again.is_done(4000, 3), again.is_done(4000, 2), again.backlog(np.array([1, 4000]))) == (True, False, 10)
    assert (again.attempts(1, 2), again.attempts(1, 3), again.digest_time(4000)) == (2, 0, 12.5)


async def test_attempts_are_forgotten_once_the_message_is_done(store: Store, log: MatchLog, cursors: Cursors) -> None:
    await append(log, 1, n_records=3)
    cursors.count_attempt(1, 1)
    cursors.count_attempt(1, 3)
    acknowledge(cursors, (1, 1))
    acknowledge(cursors, (1, 3))
    assert (cursors.attempts(1, 1), cursors.attempts(1, 3)) == (0, 0)
    acknowledge(cursors, (1, 2))
    await cursors.flush()
    assert await store.read(lambda connection: connection.execute("SELECT * FROM leftovers")) == []


async def test_seeking_back_makes_all_from_there_on_undone(store: Store, log: MatchLog, cursors: Cursors) -> None:
    await append(log, 1, n_records=9)
    acknowledge(cursors, *((1, sequence) for sequence in (1, 2, 3, 4, 5, 7)))
    cursors.seek(1, 3)
    assert ([cursors.is_done(1, sequence) for sequence in (2, 3, 7)], cursors.backlog(np.array([1]))) == (
        [True, False, False],
        7,
    )
    assert [sequence for sequence, _ in await log.read(1, 3, 2, 100)] == [3, 4]
    await cursors.flush()
    assert int((await reopened(store)).floors[1]) == 2


async def test_seeking_forward_skips_what_is_between(log: MatchLog, cursors: Cursors) -> None:
    await append(log, 1, n_records=5)
    cursors.seek(1, 4)
    assert (int(cursors.floors[1]), cursors.backlog(np.array([1]))) == (3, 2)
    cursors.seek(1, 100)
    assert (int(cursors.floors[1]), cursors.backlog(np.array([1]))) == (5, 0)


async def test_retention_moves_floors_past_what_is_dropped(log: MatchLog, cursors: Cursors) -> None:
    await append(log, 1, n_records=6)
    await append(log, 2, n_records=2)
    acknowledge(cursors, (1, 1), (1, 3), (1, 5))
    await log.until_closed()
    expired = await log.expire(before=2.0)
    assert (expired.documents, expired.never_done) == (8, 5)
    assert cursors.n_expired == 5
    assert (cursors.floors[[1, 2]].tolist(), cursors.backlog(np.array([1, 2]))) == ([6, 2], 0)


async def test_a_backlog_begins_where_the_subscription_was_idle_last(log: MatchLog, cursors: Cursors) -> None:
    await append(log, 1, n_records=3)
    acknowledge(cursors, (1, 1), (1, 2), (1, 3))
    await append(log, 2, n_records=6)
    await append(log, 1)
    assert int(cursors.floor_positions[1]) == 9
    assert [sequence for sequence, _ in await log.read(1, 4, 10, 100)] == [4]


async def test_an_acknowledgement_may_bring_its_position_along(log: MatchLog, cursors: Cursors) -> None:
    await append(log, 1, 2, n_records=3)
    cursors.acknowledge(np.array([1, 2]), np.array([1, 3]), positions=1)
    assert cursors.floor_positions[[1, 2]].tolist() == [1, 0]


async def test_where_a_backlog_begins_survives_a_new_start(store: Store, log: MatchLog, cursors: Cursors) -> None:
    await append(log, 1)
    acknowledge(cursors, (1, 1))
    await append(log, 3, n_records=5)
    await append(log, 2, n_records=2)
    await log.until_closed()
    await cursors.flush()
    again = await reopened(store)
    assert again.floor_positions[[1, 2]].tolist() == [6, 6]


async def test_a_deleted_subscription_owes_nothing(store: Store, log: MatchLog, cursors: Cursors) -> None:
    await append(log, 1, n_records=3)
    acknowledge(cursors, (1, 2))
    cursors.forget(1)
    await cursors.flush()
    again = await reopened(store)
    assert (cursors.backlog(np.array([1])), again.backlog(np.array([1]))) == (0, 0)


async def test_acknowledgements_are_flushed_by_themselves(store: Store, log: MatchLog) -> None:
    cursors = await Cursors.open(store, log, flush_interval=0.0)
    await append(log, 1)
    acknowledge(cursors, (1, 1))
    while not await store.read(lambda connection: connection.execute("SELECT page FROM cursors")):
        pass
    assert int((await reopened(store)).floors[1]) == 1
    await cursors.close()


async def test_cursors_of_a_store_that_is_gone_keep_what_they_have(store_url: str) -> None:
    store = await open_store(store_url)
    log = await MatchLog.open(store)
    cursors = await Cursors.open(store, log, flush_interval=NEVER)
    await append(log, 1)
    acknowledge(cursors, (1, 1))
    await cursors.close()
    await log.close()
    await store.close()
    store = await open_store(store_url)
    again = await reopened(store)
    assert int(again.floors[1]) == 1
    await again.close()
    await store.close()


async def test_cursors_of_an_older_store_become_those_of_tokens(store: Store, log: MatchLog) -> None:
    """Once there were pages of numbers in a row."""
    floors = {page: np.arange(PAGE) + page for page in (0, 300)}
    rows = [(page, pack(values), pack(values * 2), pack(values * 0)) for page, values in floors.items()]
    columns = ("page", "floors", "floor_positions", "gone")
    await store.write(lambda connection: connection.insert("cursor_pages", columns, rows))
    cursors = await reopened(store)
    numbers = np.array([0, 5, 1023, 300 * PAGE + 7])
    assert cursors.floors[numbers].tolist() == [0, 5, 1023, 307]
    assert cursors.floors.sum() == sum(values.sum() for values in floors.values())
    await cursors.close()
    again = await reopened(store)
    assert again.floors[numbers].tolist() == [0, 5, 1023, 307]
    await again.close()
    left = await store.read(lambda connection: connection.execute("SELECT count(*) FROM cursor_pages"))
    assert left == [(0,)]


async def test_tokens_come_and_go_one_by_one(store: Store, log: MatchLog, cursors: Cursors) -> None:
    await append(log, 3, 3 + 256, 4, n_records=5)
    acknowledge(cursors, (3, 1), (3 + 256, 1), (3 + 256, 2), (4, 1), (4, 3))
    await cursors.flush()
    acknowledge(cursors, (3, 2), (4, 2))
    cursors.unload([3])
    await cursors.flush()
    assert (cursors.floor(3), cursors.floor(4)) == (2, 3)
    await cursors.load([3])
    assert (cursors.floor(3), cursors.floor(3 + 256), cursors.floor(4)) == (1, 2, 3)
    assert await cursors.stored_floor(3 + 256) == 2


async def test_what_the_fence_refuses_is_not_written_and_the_rest_is(
    store: Store, cursors: Cursors, log: MatchLog
) -> None:
    await append(log, 3, 4, n_records=2)
    acknowledge(cursors, (3, 1), (4, 1))
    await store.generations.claim("notifying", {3: 2, 4: 1}, "b")
    cursors.fence = lambda tokens: lambda connection: check(connection, "notifying", dict.fromkeys(tokens, 1))
    with pytest.raises(Fenced):
        await cursors.flush()
    await cursors.flush()
    assert (await cursors.stored_floor(3), await cursors.stored_floor(4)) == (0, 1)


async def test_all_up_to_a_sequence_is_done_at_once(log: MatchLog, cursors: Cursors) -> None:
    await append(log, 1, 2, n_records=9)
    acknowledge(cursors, (1, 3), (1, 7), (2, 8))
    cursors.count_attempt(1, 5)
    cursors.acknowledge_through(np.array([1, 2, 300]), np.array([6, 4, 9]))
    assert cursors.floors[[1, 2, 300]].tolist() == [7, 4, 0]
    assert (cursors.attempts(1, 5), cursors.is_done(2, 8), cursors.is_done(2, 5)) == (0, True, False)
    cursors.acknowledge_through(np.array([1, 2]), np.array([2, 99]))
    assert cursors.floors[[1, 2]].tolist() == [7, 9]
    assert cursors.backlog(np.array([1, 2])) == 2


async def test_what_was_acknowledged_by_a_point_is_durable(store: Store, log: MatchLog, cursors: Cursors) -> None:
    await append(log, 1, n_records=5)
    acknowledge(cursors, (1, 4))
    cursors.acknowledge_through(np.array([1]), np.array([3]))
    await cursors.flush()
    assert (await reopened(store)).floors[1] == 4
