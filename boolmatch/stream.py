"""Many events, many threads: each thread takes the next few events until none is left.

    events   0 1 2 3 4 5 6 7 8 …          thread 1   0 1 2 3 | 8 9 …         a counter moves by fetch-and-add
             └──chunk──┘                  thread 2   4 5 6 7 | …             results land in each thread's own memory

One call of a kernel takes a thread through all its events of a segment. A kernel that runs out of room for ids comes
back, is given more, and goes on with the same event.
"""

import os
import threading
from typing import Any

import numpy as np

from boolmatch.algorithms import find_candidates
from boolmatch.coded_event import load_event, unload_event
from boolmatch.flat_events import FlatEvents
from boolmatch.matching import N_COUNTS, N_EVENTS, new_work
from boolmatch.segment import Segment
from sievecore.atomics import fetch_add
from sievecore.jit import kernel
from sievecore.result_bits import NO_ROOM, write_ids
from sievecore.snapshots import Layer, Snapshot

__all__ = ["match_events"]

CHUNK = 8
DONE = -1
FIRST_ROOM = 1 << 12


def match_events(snapshot: Snapshot[Segment], flat: FlatEvents, n_threads: int | None) -> list[np.ndarray]:
    """The ids that want each event, ascending."""
    found = [_match_layer(layer, flat, n_threads or os.cpu_count() or 1) for layer in snapshot.layers]
    if len(found) == 1:
        return found[0]
    nothing = np.zeros(0, np.int64)
    return [np.sort(np.concatenate([nothing, *(of[i] for of in found)])) for i in range(flat.n_events)]


def _match_layer(layer: Layer[Segment], flat: FlatEvents, n_threads: int) -> list[np.ndarray]:
    run = _Run(layer, flat)
    helpers = [threading.Thread(target=run.work) for _ in range(min(n_threads, -(-flat.n_events // CHUNK)) - 1)]
    for helper in helpers:
        helper.start()
    run.work()
    for helper in helpers:
        helper.join()
    if run.failure is not None:
        raise run.failure
    return run.results


class _Run:
    """The events of one call on one layer."""

    def __init__(self, layer: Layer[Segment], flat: FlatEvents) -> None:
        self._layer, self._flat = layer, flat
        self._next = np.zeros(1, np.int64)
        self.results: list[Any] = [None] * flat.n_events
        self.counts = np.zeros(N_COUNTS, np.int64)
        self.failure: BaseException | None = None

    def work(self) -> None:
        """What each thread does."""
        try:
            self._work()
        except BaseException as failure:  # noqa: BLE001  whatever it is, the caller's thread raises it
            self.failure = failure

    def _work(self) -> None:
        segment, flat = self._layer.segment, self._flat
        work = new_work(segment.filed, flat, segment.algorithm.scratch_size(segment.filing))
        ends = np.zeros(flat.n_events, np.int64)
        events = np.zeros(flat.n_events, np.int64)
        ids = np.empty(FIRST_ROOM, np.int64)
        progress = np.zeros(4, np.int64)
        while match_batch(
            segment.filing, segment.filed, self._layer.alive, flat, work, self._next, events, ends, ids, progress
        ):
            self._keep(events, ends, ids, int(progress[N_DONE]))
            ids = np.empty(2 * len(ids), np.int64)
        self._keep(events, ends, ids, int(progress[N_DONE]))
        self.counts += work.counts

    def _keep(self, events: np.ndarray, ends: np.ndarray, ids: np.ndarray, n_done: int) -> None:
        """Hand out what was found."""
        start = 0
        for event, end in zip(events[:n_done].tolist(), ends[:n_done].tolist(), strict=True):
            self.results[event] = ids[start:end]
            start = end


# Cells of `progress`: the event at hand, the end of the chunk, how many events are done since the last call.
EVENT, CHUNK_END, N_DONE = range(3)


@kernel
def match_batch(filing, filed, alive, flat, work, next_event, events, ends, ids, progress):
    """Match events until none is left, or until there is no room for an event's ids: then return True."""
    progress[N_DONE], end = 0, 0
    while True:
        if progress[EVENT] == progress[CHUNK_END]:
            progress[EVENT] = fetch_add(next_event, 0, CHUNK)
            progress[CHUNK_END] = min(progress[EVENT] + CHUNK, len(flat.start) - 1)
            if progress[EVENT] >= len(flat.start) - 1:
                progress[EVENT] = progress[CHUNK_END] = 0
                return False
        load_event(filed.spaces, flat, progress[EVENT], work.event)
        find_candidates(filing, filed, work, flat)
        unload_event(work.event)
        end = write_ids(work.bits, alive, filed.ids, ids, end)
        if end == NO_ROOM:
            return True
        work.counts[N_EVENTS] += 1
        events[progress[N_DONE]], ends[progress[N_DONE]] = progress[EVENT], end
        progress[N_DONE] += 1
        progress[EVENT] += 1
