"""One timer for all that is to happen later: deadlines of leases, pauses, heartbeats, digests.

    now ──▶ tick 812   tick 813          tick 1400
            lease 7    heartbeat 3       lease 8      each tick holds what is due then
            lease 9

Setting and cancelling cost a dictionary entry each, whatever waits: 5,000 idle streams are 5,000 entries and one timer
of the event loop. (A heap keeps what was cancelled until it would have been due: at 50,000 messages a second that are
acknowledged at once, with a deadline of 30 s, 1.5 million dead entries.)
"""

import asyncio
import heapq
import math
from collections.abc import Callable
from typing import Protocol

__all__ = ["NOT_SET", "Timed", "TimerWheel"]

NOT_SET = -1


class Timed(Protocol):
    """What can be put on the wheel: `tick` belongs to the wheel and starts as `NOT_SET`."""

    tick: int

    def fire(self) -> None: ...


class TimerWheel:
    """Fires what is due, in the order of ticks and within a tick in the order of setting."""

    def __init__(self, clock: Callable[[], float], resolution: float) -> None:
        self._clock = clock
        self._resolution = resolution
        self._buckets: dict[int, dict[Timed, None]] = {}
        self._ticks: list[int] = []
        self._handle: asyncio.TimerHandle | None = None
        self._armed_for = NOT_SET
        self._fired = 0

    def __len__(self) -> int:
        return sum(map(len, self._buckets.values()))

    def set(self, item: Timed, when: float) -> None:
        """Let `item` fire at `when`, and not when it was to fire before; at the next tick if that is past."""
        tick = max(math.ceil(when / self._resolution), self._fired + 1)
        if tick == item.tick:
            return
        self.cancel(item)
        item.tick = tick
        bucket = self._buckets.get(tick)
        if bucket is None:
            bucket = self._buckets[tick] = {}
            heapq.heappush(self._ticks, tick)
            self._arm()
        bucket[item] = None

    def cancel(self, item: Timed) -> None:
        """Let `item` not fire; nothing happens if it was not set."""
        if item.tick in self._buckets:
            self._buckets[item.tick].pop(item, None)
        item.tick = NOT_SET

    def run(self) -> None:
        """Fire what is due by now. If something raises, the others still fire, a moment later."""
        now = self._clock() / self._resolution
        try:
            while self._ticks and self._ticks[0] <= now:
                self._fire(self._ticks[0])
                del self._buckets[heapq.heappop(self._ticks)]
        finally:
            self._arm()

    def stop(self) -> None:
        """Fire nothing any more."""
        self._buckets.clear()
        self._ticks.clear()
        if self._handle is not None:
            self._handle.cancel()

    def _fire(self, tick: int) -> None:
        self._fired = tick
        bucket = self._buckets[tick]
        while bucket:
            item = next(iter(bucket))
            del bucket[item]
            item.tick = NOT_SET
            item.fire()

    def _arm(self) -> None:
        """Have the event loop wake us at the first tick."""
        if not self._ticks or (self._handle is not None and self._armed_for <= self._ticks[0]):
            return
        if self._handle is not None:
            self._handle.cancel()
        self._armed_for = self._ticks[0]
        delay = self._armed_for * self._resolution - self._clock()
        self._handle = asyncio.get_running_loop().call_later(max(delay, 0.0), self._woken)

    def _woken(self) -> None:
        self._handle = None
        self.run()
