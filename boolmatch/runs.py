"""The events of one call on one layer, worked off by several threads.

    thread 1   take the next few events ─▶ kernel ─▶ ids in memory of its own ─▶ results[event] = ids[start:end]
    thread 2   …                                     no room? hand out what there is, and on with the same event

What is taken next, and by which kernel, is for subclasses to say.
"""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from boolmatch.coded_event import with_room
from boolmatch.flat_events import FlatEvents
from boolmatch.matching import N_COUNTS, Work
from sievecore.crews import work_together
from sievecore.snapshots import Layer

__all__ = ["N_DONE", "Run", "largest_event"]

N_DONE = 0  # the cell of `progress` that counts the events done since the last call of the kernel


class Run(ABC):
    """See the module."""

    def __init__(self, layer: Layer[Any], flat: FlatEvents) -> None:
        self.layer, self.flat = layer, flat
        self.next = np.zeros(1, np.int64)
        self.results: list[Any] = [None] * flat.n_events
        self.counts = np.zeros(N_COUNTS, np.int64)
        self.failure: BaseException | None = None

    def run(self, n_threads: int) -> list[np.ndarray]:
        """The ids that want each event, ascending."""
        work_together(self.work, n_threads)
        if self.failure is not None:
            raise self.failure
        segment_counts: np.ndarray = self.layer.segment.counts
        segment_counts += self.counts
        return self.results

    def work(self) -> None:
        """What each thread does."""
        try:
            self._work()
        except BaseException as failure:  # noqa: BLE001  whatever it is, the caller's thread raises it
            self.failure = failure

    def _work(self) -> None:
        scratches = self.layer.segment.scratches
        work = scratches.take()
        work = work._replace(event=with_room(work.event, largest_event(self.flat)))
        memory = self.memory(work)
        ends = np.zeros(self.flat.n_events, np.int64)
        events = np.zeros(self.flat.n_events, np.int64)
        progress = np.zeros(8, np.int64)
        while self.match(work, memory, progress, events, ends, work.ids):
            self._keep(events, ends, work.ids, int(progress[N_DONE]))
            if progress[N_DONE] == 0:
                work = work._replace(ids=np.empty(2 * len(work.ids), np.int64))
        self._keep(events, ends, work.ids, int(progress[N_DONE]))
        self.counts += work.counts
        work.counts[:] = 0
        scratches.give_back(work)

    def memory(self, work: Work) -> Any:
        """Whatever else a thread works with: nothing, unless a subclass says otherwise."""
        return None

    @abstractmethod
    def match(
        self, work: Work, memory: Any, progress: np.ndarray, events: np.ndarray, ends: np.ndarray, ids: np.ndarray
    ) -> bool:
        """Match until no event is left, or until there is no room for an event's ids: then return True.

        `events` are those done, `ends` where the ids of each end.
        """

    def _keep(self, events: np.ndarray, ends: np.ndarray, ids: np.ndarray, n_done: int) -> None:
        """Hand out what was found, in copies: whoever keeps one result should not keep them all."""
        start = 0
        for event, end in zip(events[:n_done].tolist(), ends[:n_done].tolist(), strict=True):
            self.results[event] = ids[start:end].copy()
            start = end


def largest_event(flat: FlatEvents) -> int:
    """How many pairs the largest event has."""
    return int(np.diff(flat.start).max(initial=0))
