"""Many events, many threads: each thread takes the next few events until none is left.

    events   0 1 2 3 4 5 6 7 8 …          thread 1   0 1 2 3 | 8 9 …         a counter moves by fetch-and-add
             └──chunk──┘                  thread 2   4 5 6 7 | …             results land in each thread's own memory

One call of a kernel takes a thread through all its events of a segment. A kernel that runs out of room for ids comes
back, is given more, and goes on with the same event.
"""

import numpy as np

from boolmatch.algorithms import find_candidates
from boolmatch.coded_event import load_event, unload_event
from boolmatch.flat_events import FlatEvents
from boolmatch.matching import N_EVENTS, Work
from boolmatch.runs import N_DONE, Run
from boolmatch.segment import Segment
from sievecore.atomics import fetch_add
from sievecore.jit import kernel
from sievecore.result_bits import NO_ROOM, write_ids
from sievecore.snapshots import Layer, Snapshot

__all__ = ["match_events"]

CHUNK = 8


def match_events(snapshot: Snapshot[Segment], flat: FlatEvents, n_threads: int) -> list[np.ndarray]:
    """The ids that want each event, ascending."""
    found = [_match_layer(layer, flat, n_threads) for layer in snapshot.layers]
    if len(found) == 1:
        return found[0]
    nothing = np.zeros(0, np.int64)
    return [np.sort(np.concatenate([nothing, *(of[i] for of in found)])) for i in range(flat.n_events)]


def _match_layer(layer: Layer[Segment], flat: FlatEvents, n_threads: int) -> list[np.ndarray]:
    match_together = layer.segment.algorithm.match_together
    if match_together is not None and flat.n_events > 1:
        return match_together(layer, flat, n_threads)
    return _Run(layer, flat).run(min(n_threads, -(-flat.n_events // CHUNK)))


class _Run(Run):
    """Chunks of events in their order."""

    def match(
        self, work: Work, memory: None, progress: np.ndarray, events: np.ndarray, ends: np.ndarray, ids: np.ndarray
    ) -> bool:
        segment, layer = self.layer.segment, self.layer
        more: bool = match_batch(
            segment.filing, segment.filed, layer.alive, self.flat, work, self.next, events, ends, ids, progress
        )
        return more


# Cells of `progress` after the first: the event at hand, the end of the chunk.
EVENT, CHUNK_END = 1, 2


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
