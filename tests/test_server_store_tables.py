"""Dead letters, staged batches and published ids, on both databases."""

import asyncio

import numpy as np
import pytest

from server.documents import Document
from server.errors import InvalidRequest
from server.log.match_log import MatchLog
from server.store import Store
from server.store.dead_letters import DeadLetter
from server.store.published import Published
from server.store.staging import AlreadyCommitted, Batch, Part

BATCH = Batch("default", "query", 7)


def document(name: str, time: float = 1.0) -> Document:
    return Document(name, "source", b"<a/>", {"x": 1}, {"h": "v"}, time)


async def test_dead_letters_come_back_in_pages(store: Store) -> None:
    letters = [DeadLetter(4, sequence, document(f"d{sequence}"), 5, 9.5, "refused") for sequence in (3, 1, 2)]
    await store.dead_letters.add(letters)
    assert await store.dead_letters.page(4, 0, 2) == [letters[1], letters[2]]
    assert await store.dead_letters.page(4, 2, 2) == [letters[0]]
    assert (await store.dead_letters.count(4), await store.dead_letters.counts()) == (3, {4: 3})


async def test_a_dead_letter_that_comes_again_replaces_the_old_one(store: Store) -> None:
    for reason in ("first", "second"):
        await store.dead_letters.add([DeadLetter(4, 1, document("d"), 5, 9.5, reason)])
    assert [letter.reason for letter in await store.dead_letters.page(4, 0, 10)] == ["second"]
    assert await store.dead_letters.forget(before=10.0) == 1


async def test_staged_parts_are_read_in_order_and_by_attempt(store: Store) -> None:
    await store.staging.stage(BATCH, Part(1, 0), [document("c")])
    await store.staging.stage(BATCH, Part(0, 0), [document("lost")])
    await store.staging.stage(BATCH, Part(0, 1), [document("a")])
    await store.staging.stage(BATCH, Part(0, 1), [document("b")], first_place=1)
    found = await store.staging.staged(BATCH, [Part(0, 1), Part(1, 0)])
    assert found == [document("a"), document("b"), document("c")]


async def test_a_part_that_has_lost_documents_is_told(store: Store) -> None:
    await store.staging.stage(BATCH, Part(0, 1), [document("a"), document("b")])
    parts = [Part(0, 1), Part(1, 0)]
    assert len(await store.staging.staged(BATCH, parts, [2, 0])) == 2
    with pytest.raises(InvalidRequest, match=r"expected 1 documents staged under .*attempt=0\), found 0"):
        await store.staging.staged(BATCH, parts, [2, 1])


async def test_staging_a_part_from_its_beginning_drops_what_was_there(store: Store) -> None:
    await store.staging.stage(BATCH, Part(0, 0), [document("old 0"), document("old 1")])
    await store.staging.stage(BATCH, Part(0, 0), [document("new")])
    assert [each.id for each in await store.staging.staged(BATCH, [Part(0, 0)])] == ["new"]


async def test_a_batch_is_committed_with_what_it_appends_and_once(store: Store) -> None:
    log = await MatchLog.open(store)
    await store.staging.stage(BATCH, Part(0, 0), [document("a")])

    async def commit() -> int:
        committing = store.staging.committing(BATCH, {"documents": 1, "matches": 1})
        return len(await log.append([("default", document("a"), np.array([1]))], [committing]))

    outcomes = await asyncio.gather(commit(), commit(), return_exceptions=True)
    assert outcomes[0] == 1
    assert isinstance(outcomes[1], AlreadyCommitted)
    assert outcomes[1].result == await store.staging.result(BATCH) == {"documents": 1, "matches": 1}
    assert log.position == 1
    assert await store.staging.staged(BATCH, [Part(0, 0)]) == []
    await log.close()


async def test_a_committed_batch_takes_no_more_parts(store: Store) -> None:
    await store.write(store.staging.committing(BATCH, {}))
    await store.staging.stage(BATCH, Part(0, 5), [document("late")])
    assert await store.staging.staged(BATCH, [Part(0, 5)]) == []
    with pytest.raises(AlreadyCommitted):
        await store.write(store.staging.committing(BATCH, {}))


async def test_an_aborted_batch_may_be_staged_again(store: Store) -> None:
    await store.staging.stage(BATCH, Part(0, 0), [document("a")])
    await store.staging.abort(BATCH)
    assert await store.staging.staged(BATCH, [Part(0, 0)]) == []
    assert await store.staging.result(BATCH) is None
    await store.staging.stage(BATCH, Part(0, 0), [document("b")])
    assert await store.staging.forget(before=1e12) == 1


async def test_ids_published_since_a_time_are_found(store: Store) -> None:
    log = await MatchLog.open(store)
    await log.append([("default", document(f"d{time}", float(time)), np.array([1])) for time in range(1, 6)])
    found = [each async for chunk in store.published.since(3.0) for each in chunk]
    assert found == [Published("default", "source", f"d{time}", float(time)) for time in (5, 4, 3)]
    await log.close()
