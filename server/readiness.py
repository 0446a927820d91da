"""How far the server is: what it answers depends on it.

    LOADING ──all subscriptions are read──▶ READY ──a signal, or drain()──▶ DRAINING ──▶ STOPPED
       └───────────────────a signal─────────────────────────────────────────▶

While it is LOADING it answers only who asks how far it is. While it is DRAINING it finishes what it has begun. A
replica whose session with ZooKeeper has expired goes on answering, but is not ready until it has its share again.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from server.errors import Draining, Loading

__all__ = ["Phase", "Progress", "Readiness"]


class Phase(Enum):
    """Where the server is in its life."""

    LOADING = "loading"
    READY = "ready"
    DRAINING = "draining"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class Progress:
    """How many of `total` are done; `total` is 0 while nobody knows.

    >>> print(Progress("subscriptions", 250_000, 1_000_000))
    250,000 of 1,000,000 subscriptions (25%)
    """

    what: str
    done: int = 0
    total: int = 0

    def __str__(self) -> str:
        if not self.total:
            return f"{self.done:,} {self.what}"
        return f"{self.done:,} of {self.total:,} {self.what} ({self.done * 100 // self.total}%)"


class Readiness:
    """The phase, told to those who listen. Belongs to the event loop."""

    def __init__(self) -> None:
        self.phase = Phase.LOADING
        self.progress = Progress("subscriptions")
        self.ready = asyncio.Event()
        self.draining = asyncio.Event()
        self.takes_part: Callable[[], bool] = lambda: True
        self._listeners: list[Callable[[Progress], None]] = []

    def on_progress(self, listener: Callable[[Progress], None]) -> None:
        """Have `listener` called as loading goes on."""
        self._listeners.append(listener)

    def advance(self, progress: Progress) -> None:
        """Loading has come so far."""
        self.progress = progress
        for listener in self._listeners:
            listener(progress)

    def enter(self, phase: Phase) -> None:
        """Go on to another phase."""
        self.phase = phase
        if phase is Phase.READY:
            self.ready.set()
        elif phase is not Phase.LOADING:
            self.draining.set()

    @property
    def is_ready(self) -> bool:
        """Whether it is a good place to send new clients to."""
        return self.phase is Phase.READY and self.takes_part()

    @property
    def stage(self) -> str:
        """The phase, for people; a replica that was put out of the cluster is rejoining."""
        return "rejoining" if self.phase is Phase.READY and not self.takes_part() else self.phase.value

    def must_serve(self) -> None:
        """`Loading` or `Draining` unless new calls are taken."""
        if self.phase is Phase.LOADING:
            raise Loading(str(self.progress))
        if self.phase is not Phase.READY:
            raise Draining
