"""One timer for everything: fires in order, forgets what was cancelled, and survives what goes wrong."""

import asyncio
import time

import pytest

from server.deliveries.timers import NOT_SET, TimerWheel


class Item:
    """Writes its name down when it fires."""

    def __init__(self, name: str, fired: list[str], error: Exception | None = None) -> None:
        self.tick = NOT_SET
        self.name = name
        self.fired = fired
        self.error = error

    def fire(self) -> None:
        self.fired.append(self.name)
        if self.error is not None:
            raise self.error


class Hand:
    """A wheel, and a clock that is moved by hand."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.fired: list[str] = []
        self.wheel = TimerWheel(lambda: self.now, 0.1)

    def set(self, name: str, when: float, error: Exception | None = None) -> Item:
        item = Item(name, self.fired, error)
        self.wheel.set(item, when)
        return item

    def move(self, seconds: float) -> list[str]:
        """What fires when so much time has passed."""
        self.now += seconds
        self.fired.clear()
        self.wheel.run()
        return list(self.fired)


async def test_what_is_due_fires_in_order_and_once() -> None:
    hand = Hand()
    for name, when in {"c": 1003.0, "a": 1001.0, "b": 1002.0, "a2": 1001.0}.items():
        hand.set(name, when)
    assert hand.move(0.5) == []
    assert hand.move(1.6) == ["a", "a2", "b"]
    assert hand.move(10) == ["c"]
    assert hand.move(10) == []


async def test_nothing_fires_early() -> None:
    hand = Hand()
    hand.set("a", 1000.01)
    assert hand.move(0.005) == []
    assert hand.move(0.2) == ["a"]


async def test_what_was_cancelled_or_set_again_does_not_fire_at_its_old_time() -> None:
    hand = Hand()
    cancelled, moved = hand.set("a", 1001.0), hand.set("b", 1001.0)
    hand.wheel.cancel(cancelled)
    hand.wheel.cancel(cancelled)
    hand.wheel.set(moved, 1005.0)
    assert len(hand.wheel) == 1
    assert hand.move(2) == []
    assert hand.move(4) == ["b"]


async def test_what_is_set_to_the_past_fires_next() -> None:
    hand = Hand()
    hand.set("a", 1001.0)
    assert hand.move(2) == ["a"]
    hand.set("b", 0.0)
    assert hand.move(0.2) == ["b"]


async def test_what_sets_itself_again_while_it_fires_fires_later() -> None:
    hand = Hand()
    item = hand.set("a", 1001.0)
    item.fire = lambda: (hand.fired.append("a"), hand.wheel.set(item, hand.now))
    assert hand.move(1) == ["a"]
    assert hand.move(0.1) == ["a"]


async def test_what_is_cancelled_by_something_due_at_the_same_time_does_not_fire() -> None:
    hand = Hand()
    first, second = hand.set("a", 1001.0), hand.set("b", 1001.0)
    first.fire = lambda: hand.wheel.cancel(second)
    assert hand.move(2) == []


async def test_an_error_does_not_keep_the_others_from_firing() -> None:
    hand = Hand()
    hand.set("a", 1001.0, ValueError("broken"))
    hand.set("b", 1001.0)
    with pytest.raises(ValueError, match="broken"):
        hand.move(2)
    assert hand.move(0) == ["b"]


async def test_the_event_loop_fires_by_itself() -> None:
    wheel, fired = TimerWheel(time.time, 0.01), asyncio.Event()
    item = Item("a", [])
    item.fire = fired.set
    wheel.set(Item("later", []), time.time() + 100)
    wheel.set(item, time.time() + 0.02)
    await asyncio.wait_for(fired.wait(), 10)
    wheel.stop()
