"""What updaters did and what matchers saw, and whether each match was right for a version of its time.

updater   ──┤ add 7 ├───────────┤ remove 7 ├──▶        a match that starts after `add` has returned and ends
matcher        ┤ match ├  ┤ match ├  ┤ match ├──▶      before `remove` was called must see 7, one that starts
                 may        must       may             after `remove` has returned must not
"""

import itertools
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

N_UPDATES = 150

clock = itertools.count()  # next() is one step of the interpreter, so that ticks are in order


@dataclass
class Life:
    """When a subscription's updates started and ended; None while they have not."""

    expression: str
    add_started: int
    added: int
    removal_started: int | None = None
    removed: int | None = None

    def must_be_seen(self, started: int, ended: int) -> bool:
        return self.added < started and (self.removal_started is None or self.removal_started > ended)

    def may_be_seen(self, started: int, ended: int) -> bool:
        return self.add_started < ended and (self.removed is None or self.removed > started)


@dataclass
class History:
    """`add` adds several expressions and returns their ids; `right` says whom of some an item matches."""

    add: Callable[[list[str]], list[int]]
    remove: Callable[[int], None]
    right: Callable[[dict[int, str], Any], set[int]]
    lives: dict[int, Life] = field(default_factory=dict)
    matches: list[tuple[int, int, int, list[int]]] = field(default_factory=list)
    items: list[Any] = field(default_factory=list)

    def update(self, make: Callable[[Random], str], random: Random) -> None:
        """Add and remove for a while."""
        mine: list[int] = []
        for _ in range(N_UPDATES):
            if mine and random.random() < 0.45:
                self._remove(mine.pop(random.randrange(len(mine))))
            mine += self._add([make(random) for _ in range(random.choice((1, 1, 1, 20)))])

    def _add(self, expressions: list[str]) -> list[int]:
        started = next(clock)
        ids = self.add(expressions)
        ended = next(clock)
        for number, expression in zip(ids, expressions, strict=True):
            self.lives[number] = Life(expression, started, ended)
        return ids

    def _remove(self, number: int) -> None:
        self.lives[number].removal_started = next(clock)
        self.remove(number)
        self.lives[number].removed = next(clock)

    def watch(self, match: Callable[[Any], Any], done: threading.Event) -> None:
        """Match all items over and over."""
        for place in itertools.cycle(range(len(self.items))):
            if done.is_set():
                return
            started = next(clock)
            found = match(self.items[place]).tolist()
            self.matches.append((started, next(clock), place, found))

    def mistakes(self) -> list[str]:
        expressions = {number: life.expression for number, life in self.lives.items()}
        right = [self.right(expressions, item) for item in self.items]
        return [
            mistake
            for started, ended, place, found in self.matches
            for mistake in self._mistakes_between(started, ended, right[place], set(found))
        ]

    def _mistakes_between(self, started: int, ended: int, right: set[int], found: set[int]) -> Iterator[str]:
        may = {number for number in right if self.lives[number].may_be_seen(started, ended)}
        must = {number for number in right if self.lives[number].must_be_seen(started, ended)}
        yield from (f"subscription {number} was missed" for number in sorted(must - found))
        yield from (f"subscription {number} was found" for number in sorted(found - may))
