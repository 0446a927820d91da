"""The match log: what was appended is read back, by subscription or by position, from memory, segments or a new start."""

from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest

from server.documents import Document
from server.match_log import MatchLog, SegmentLimits
from server.store import Store, open_store

EVERYTHING = (1_000_000, 1 << 40)
SMALL = SegmentLimits(records=4)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    opened = await open_store(str(tmp_path / "store.db"))
    yield opened
    await opened.close()


def entry(name: str, *numbers: int, time: float = 1.0) -> tuple[str, Document, np.ndarray]:
    return "default", Document(name, xml=b"<a/>", publish_time=time), np.array(numbers, np.int64)


async def test_a_sequence_counts_the_records_that_hold_a_number(store: Store) -> None:
    log = await MatchLog.open(store)
    records = await log.append([entry("a", 1, 2), entry("b", 2), entry("c", 1, 2)])
    assert [record.position for record in records] == [1, 2, 3]
    assert [record.sequences.tolist() for record in records] == [[1, 1], [2], [2, 3]]
    assert log.heads[[1, 2, 3]].tolist() == [2, 3, 0]
    await log.close()
