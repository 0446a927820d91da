"""What delivery needs of the rest of the server: a log to read, cursors to move, a place for dead letters, counters.

    match log ──▶ deliveries ──▶ cursors
                      └────────▶ dead letters, counters

`server.log` and the store have these shapes; so have the plain lists that tests use as oracle.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from server.documents import Document
from server.store.dead_letters import DeadLetter

__all__ = ["Counters", "Cursors", "DeadLetter", "DeadLetters", "MatchLog", "Record"]


class Record(Protocol):
    """One document and the subscriptions that want it: `numbers` ascend, `sequences` stand in the same places."""

    position: int
    document: Document
    numbers: np.ndarray
    sequences: np.ndarray


class MatchLog(Protocol):
    """Records in the order of their positions."""

    @property
    def heads(self) -> np.ndarray:
        """The newest sequence of each number."""

    @property
    def position(self) -> int:
        """The position of the newest record; 0 if there is none."""

    async def read(
        self, number: int, first_sequence: int, max_messages: int, max_bytes: int
    ) -> list[tuple[int, Document]]: ...

    async def read_from(
        self, numbers: np.ndarray, position: int, max_records: int, max_bytes: int
    ) -> tuple[Sequence[Record], int]:
        """Records after `position` that hold any of `numbers`, narrowed to them, and how far was looked."""

    async def sequence_at(self, number: int, time: float) -> int: ...


class Cursors(Protocol):
    """How far each subscription has come."""

    floors: np.ndarray

    def acknowledge(
        self, numbers: np.ndarray, sequences: np.ndarray, positions: np.ndarray | int | None = None
    ) -> None: ...
    def acknowledge_through(self, numbers: np.ndarray, sequences: np.ndarray) -> None:
        """All up to these sequences is done, for numbers that come once."""

    def undone(self, numbers: np.ndarray, sequences: np.ndarray) -> np.ndarray:
        """A mask: which of these have still to be delivered."""

    def has_backlog(self, numbers: np.ndarray) -> np.ndarray:
        """A mask: which numbers have something that is not done."""

    def positions(self, numbers: np.ndarray) -> np.ndarray:
        """A position of the log for each number, after which all that is not done is found."""

    def attempts(self, number: int, sequence: int) -> int: ...
    def count_attempt(self, number: int, sequence: int) -> int: ...
    def digest_time(self, number: int) -> float: ...
    def set_digest_time(self, number: int, time: float) -> None: ...
    def seek(self, number: int, next_sequence: int) -> None: ...
    def forget(self, number: int) -> None: ...
    async def flush(self) -> None: ...
    def backlog(self, numbers: np.ndarray) -> int: ...


class DeadLetters(Protocol):
    """What was given up, durably."""

    async def add(self, letters: Sequence[DeadLetter]) -> None: ...
    async def page(self, number: int, after_sequence: int, limit: int) -> Sequence[DeadLetter]: ...


def ignore(amount: int) -> None:
    """Nobody counts."""


@dataclass(frozen=True, slots=True)
class Counters:
    """Called with how many there were."""

    delivered: Callable[[int], None] = ignore
    redelivered: Callable[[int], None] = ignore
    expired: Callable[[int], None] = ignore
    dead_lettered: Callable[[int], None] = ignore
    pushed: Callable[[int], None] = ignore
    push_failed: Callable[[int], None] = ignore
