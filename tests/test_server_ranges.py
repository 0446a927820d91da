"""Ranges of the match log, by sequence and by position: what was there is there again, and what is gone is said."""

import itertools
from collections.abc import AsyncIterator, Sequence

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from server.documents import Document
from server.log.match_log import MatchLog, SegmentLimits
from server.log.ranges import LogPage, RangeReader
from server.store import Store

EVERYTHING = (1_000_000, 1 << 40)
SMALL = SegmentLimits(records=4)


@pytest.fixture
async def log(store: Store) -> AsyncIterator[MatchLog]:
    opened = await MatchLog.open(store, limits=SMALL)
    yield opened
    await opened.close()


async def append(log: MatchLog, *entries: tuple[str, Sequence[int]]) -> None:
    """Documents of tenants, one after the other, published at 1, 2, 3, ..."""
    for tenant, numbers in entries:
        place = log.position + 1
        document = Document(f"d{place}", xml=b"<a/>", publish_time=float(place))
        await log.append([(tenant, document, np.array(numbers, np.int64))])
    await log.until_closed()


def by_sequence(page: LogPage) -> list[tuple[int, str]]:
    return [(int(record.sequences[0]), record.document.id) for record in page.records]


def by_position(page: LogPage) -> list[tuple[int, str, list[int], list[int]]]:
    return [(one.position, one.document.id, one.numbers.tolist(), one.sequences.tolist()) for one in page.records]


DESK, RISK = ("desk", [1, 2]), ("risk", [3])


async def test_one_subscription_is_read_from_segments_and_memory(log: MatchLog) -> None:
    await append(log, DESK, RISK, DESK, ("desk", [2]), DESK, DESK)
    page = await log.ranges.read(1, 1, 4, *EVERYTHING)
    assert (by_sequence(page), page.through, page.dropped) == ([(2, "d3"), (3, "d5"), (4, "d6")], 4, 0)
    assert by_sequence(await log.ranges.read(1, 1, 2, *EVERYTHING)) == [(2, "d3")]
    assert by_sequence(await log.ranges.read(1, 4, 4, *EVERYTHING)) == []


async def test_a_tenant_is_read_without_the_others_and_with_all_who_want_a_document(log: MatchLog) -> None:
    await append(log, DESK, RISK, ("desk", [2]), RISK, RISK, DESK)
    page = await log.ranges.read_tenant("desk", 0, 6, *EVERYTHING)
    assert by_position(page) == [(1, "d1", [1, 2], [1, 1]), (3, "d3", [2], [2]), (6, "d6", [1, 2], [2, 3])]
    assert (page.through, page.dropped) == (6, 0)
    assert by_position(await log.ranges.read_tenant("risk", 2, 4, *EVERYTHING)) == [(4, "d4", [3], [2])]


@pytest.mark.parametrize("limits", [(1, 1 << 40), (1000, 1), (2, 1 << 40), (1000, 9)], ids=str)
async def test_pages_join_to_the_range(log: MatchLog, limits: tuple[int, int]) -> None:
    await append(log, *[DESK, RISK, ("desk", [2])] * 5)
    assert await joined_tenant(log.ranges, "desk", 2, 14, limits) == by_position(
        await log.ranges.read_tenant("desk", 2, 14, *EVERYTHING)
    )
    found, after = [], 1
    while after < 10:
        page = await log.ranges.read(2, after, 10, *limits)
        found, after = found + by_sequence(page), page.through
    assert found == by_sequence(await log.ranges.read(2, 1, 10, *EVERYTHING))


async def joined_tenant(
    ranges: RangeReader, tenant: str, after: int, through: int, limits: tuple[int, int]
) -> list[tuple[int, str, list[int], list[int]]]:
    found = []
    while after < through:
        page = await ranges.read_tenant(tenant, after, through, *limits)
        assert after < page.through <= through
        found, after = found + by_position(page), page.through
    return found


async def test_the_same_range_is_the_same_later(log: MatchLog) -> None:
    await append(log, DESK, RISK, DESK)
    before = by_position(await log.ranges.read_tenant("desk", 0, 3, *EVERYTHING))
    await append(log, *[DESK, RISK] * 6)
    log.tail.recent.clear()
    assert by_position(await log.ranges.read_tenant("desk", 0, 3, *EVERYTHING)) == before


async def test_what_retention_has_dropped_is_said(log: MatchLog) -> None:
    await append(log, *[DESK, RISK] * 5)
    await log.expire(before=5.0)
    assert (log.ranges.dropped, await log.ranges.dropped_of(1), await log.ranges.dropped_of(3)) == (4, 2, 2)
    page = await log.ranges.read(1, 0, 5, *EVERYTHING)
    assert (by_sequence(page), page.dropped) == ([(3, "d5"), (4, "d7"), (5, "d9")], 2)
    assert (await log.ranges.read(1, 2, 5, *EVERYTHING)).dropped == 0
    page = await log.ranges.read_tenant("desk", 1, 10, *EVERYTHING)
    assert ([one[0] for one in by_position(page)], page.dropped) == ([5, 7, 9], 4)
    assert (await log.ranges.read_tenant("desk", 4, 10, *EVERYTHING)).dropped == 0


async def test_a_range_of_which_nothing_is_left_ends(log: MatchLog) -> None:
    await append(log, *[DESK] * 6)
    await log.expire(before=100.0)
    assert (log.ranges.dropped, await log.ranges.dropped_of(1)) == (6, 6)
    assert await log.ranges.read(1, 2, 5, *EVERYTHING) == LogPage([], 5, 5)
    assert await log.ranges.read_tenant("desk", 2, 5, *EVERYTHING) == LogPage([], 5, 5)
    await append(log, DESK)
    assert by_sequence(await log.ranges.read(1, 6, 7, *EVERYTHING)) == [(7, "d7")]


async def test_records_that_are_being_dropped_are_missing_and_the_rest_is_read(store: Store, log: MatchLog) -> None:
    await append(log, *[DESK] * 6)
    log.tail.recent.clear()
    await store.write(lambda connection: connection.execute("DELETE FROM records WHERE position < 3"))
    page = await log.ranges.read(1, 0, 6, *EVERYTHING)
    assert ([one[0] for one in by_sequence(page)], page.dropped) == ([3, 4, 5, 6], 2)
    page = await log.ranges.read_tenant("desk", 0, 6, *EVERYTHING)
    assert ([one[0] for one in by_position(page)], page.dropped) == ([3, 4, 5, 6], 2)


async def test_the_end_of_so_many_documents_of_a_tenant(log: MatchLog) -> None:
    await append(log, DESK, RISK, DESK, RISK, RISK)
    ends = [await log.ranges.tenant_end("desk", after, n) for after, n in [(0, 1), (0, 2), (0, 9), (1, 1), (3, 1)]]
    assert ends == [1, 3, 3, 3, 3]
    assert await log.ranges.tenant_end("risk", 2, 0) == 5


async def test_the_last_sequences_of_a_range(log: MatchLog) -> None:
    await append(log, DESK, RISK, ("desk", [2]), ("desk", [2]), ("desk", [4]), ("desk", [1]))
    numbers, sequences = await log.ranges.last_sequences("desk", 1, 5)
    assert dict(zip(numbers.tolist(), sequences.tolist(), strict=True)) == {2: 3, 4: 1}


NEW_LOGS = itertools.count(1)
WANTS = st.lists(st.tuples(st.booleans(), st.sets(st.integers(1, 4), min_size=1)), max_size=14)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    wants=WANTS, after=st.integers(0, 14), length=st.integers(0, 14), limits=st.tuples(st.integers(1, 5), st.just(9))
)
async def test_ranges_are_what_a_plain_list_says(
    store: Store, wants: list[tuple[bool, set[int]]], after: int, length: int, limits: tuple[int, int]
) -> None:
    log = await MatchLog.open(store, log=next(NEW_LOGS), limits=SMALL)
    entries = [
        ("desk", sorted(numbers)) if is_desk else ("risk", sorted(n + 10 for n in numbers))
        for is_desk, numbers in wants
    ]
    await append(log, *entries)
    heads: dict[int, int] = {}
    plain = []
    for position, (tenant, numbers) in enumerate(entries, 1):
        for one in numbers:
            heads[one] = heads.get(one, 0) + 1
        if tenant == "desk":
            plain.append((position, f"d{position}", list(numbers), [heads[one] for one in numbers]))
    after = min(after, len(entries))
    through = min(after + length, len(entries))
    expected = [one for one in plain if after < one[0] <= through]
    assert await joined_tenant(log.ranges, "desk", after, through, limits) == expected
    await log.close()
