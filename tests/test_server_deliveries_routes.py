"""Who hears of a record: each feed once, with its own numbers, in order."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from memory_log import MemoryRecord

from server.deliveries.ports import Record
from server.deliveries.routes import Routes
from server.documents import Document


class Ear:
    """Writes down what it hears."""

    def __init__(self, error: Exception | None = None) -> None:
        self.heard: list[tuple[list[int], list[int]]] = []
        self.error = error
        self.failures: list[Exception] = []

    def arrived(self, record: Record, numbers: np.ndarray, sequences: np.ndarray) -> None:
        self.heard.append((numbers.tolist(), sequences.tolist()))
        if self.error is not None:
            raise self.error

    def failed(self, error: Exception) -> None:
        self.failures.append(error)


@given(st.dictionaries(st.integers(1, 5000), st.integers(0, 4), min_size=1), st.data())
def test_each_feed_hears_once_of_its_own_numbers(owners: dict[int, int], data: st.DataObject) -> None:
    routes, ears = Routes(0), [Ear() for _ in range(5)]
    feed_ids = [0, *(routes.add(ear) for ear in ears[1:])]
    for number, owner in owners.items():
        routes.ensure(number)
        routes.feed_of[number] = feed_ids[owner]
    numbers = sorted(data.draw(st.sets(st.sampled_from(sorted(owners)))))
    routes.announce(MemoryRecord(1, Document("d"), np.array(numbers, np.int64), np.array(numbers, np.int64) * 2))
    for owner, ear in enumerate(ears):
        mine = [number for number in numbers if owners[number] == owner]
        assert ear.heard == ([(mine, [2 * number for number in mine])] if mine and owner else [])


def test_a_number_beyond_all_that_are_known_is_nobodys() -> None:
    routes = Routes(7)
    routes.announce(MemoryRecord(8, Document("d"), np.array([10_000_000]), np.array([1])))
    assert routes.tail == 8
    assert routes.listener(10_000_000) is None
    assert routes.listener(1 << 40) is None


def test_the_id_of_a_feed_that_is_gone_is_used_again() -> None:
    routes = Routes(0)
    first = routes.add(Ear())
    routes.remove(first)
    assert routes.add(Ear()) == first


def test_a_feed_that_fails_does_not_keep_a_record_from_the_others(caplog: pytest.LogCaptureFixture) -> None:
    routes, broken, sound = Routes(0), Ear(ValueError("broken")), Ear()
    for number, ear in enumerate((broken, sound), 1):
        routes.feed_of[number] = routes.add(ear)
    routes.announce(MemoryRecord(1, Document("d"), np.array([1, 2]), np.array([1, 1])))
    assert broken.failures == [broken.error]
    assert sound.heard == [([2], [1])]
    assert "broken" in caplog.text
