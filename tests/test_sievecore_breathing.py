"""Breathing changes nothing about a loop, but lets others in when it takes long."""

import threading

import pytest

from sievecore import breathing as module
from sievecore.breathing import breathing


@pytest.fixture
def breaths(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses made, in place of making them."""
    pauses: list[float] = []
    monkeypatch.setattr(module, "_own", threading.local())
    monkeypatch.setattr(module.time, "sleep", pauses.append)
    return pauses


@pytest.mark.parametrize("items", [[], [1], list(range(1000)), "text", {"k": 1}])
def test_the_items_are_the_same(items: list[int]) -> None:
    assert list(breathing(items)) == list(items)


def test_items_are_asked_for_one_at_a_time() -> None:
    source = iter(range(10))
    loop = breathing(source)
    assert [next(loop), next(loop)] == [0, 1]
    assert next(source) == 2


def test_a_long_loop_breathes_now_and_then(breaths: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(10**6))
    monkeypatch.setattr(module.time, "perf_counter", lambda: next(clock))
    list(breathing(range(10 * module.ITEMS_BETWEEN_LOOKS)))
    assert 5 <= len(breaths) <= 10
    assert set(breaths) == {module.PAUSE_SECONDS}


def test_a_short_loop_does_not(breaths: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.time, "perf_counter", lambda: 0.0)
    list(breathing(range(1000)))
    assert breaths == []
