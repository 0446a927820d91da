"""What Boolean scenarios share: workloads, their events in chunks, and indexes that are loaded once.

    bench.load("dense", 1_000_000, "scan") ──▶ Load
    bench.chunks("dense")                  ──▶ lists of events, each the argument of one `match_many`

Indexes of one workload are kept until another workload is asked for: all of them together would not fit.
"""

from collections.abc import Callable, Sequence
from functools import cache, partial
from itertools import cycle

import numpy as np

from benchmarks.answers import Checks, ColumnLoop
from benchmarks.bool_workload import BATCH, SHAPES, BooleanWorkload, Event
from benchmarks.measure import spread
from benchmarks.workbench import Load, Sizes, load_into, progress
from boolmatch import BooleanIndex, warm_up
from boolmatch.auto import AUTO
from boolmatch.columns import PredicateColumns

__all__ = ["BooleanWorkbench", "Results", "match_chunk"]

CHUNK = 64
N_SETTLING = 1 << 14
"""So many events settle what `auto` thinks of a stream, whatever came before: it forgets half in 4,096."""
N_CHECKED = 5

Results = list[np.ndarray]


class BooleanWorkbench:
    def __init__(self, sizes: Sizes) -> None:
        self.sizes = sizes
        self.checks = Checks()
        self.workload: Callable[[str], BooleanWorkload] = cache(lambda name: BooleanWorkload(SHAPES[name]))
        self._kept = ""
        self._columns: dict[int, PredicateColumns] = {}
        self._loads: dict[tuple[int, str], Load] = {}
        progress("compiling kernels")
        warm_up()

    def columns(self, name: str, n: int) -> PredicateColumns:
        """The first `n` subscriptions of a workload."""
        self._keep_only(name)
        if n not in self._columns:
            self._columns[n] = self.workload(name).columns(n)
        return self._columns[n]

    def load(self, name: str, n: int, algorithm: str = AUTO) -> Load:
        """The index of the first `n` subscriptions, loaded from columns in one call the first time it is asked for."""
        columns = self.columns(name, n)
        if (n, algorithm) not in self._loads:
            progress(f"loading {n:,} subscriptions, {name}, {algorithm}")
            self._loads[n, algorithm] = load_into(BooleanIndex(algorithm), columns)
        return self._loads[n, algorithm]

    def settle(self, load: Load, calls: Sequence[Sequence[Event]]) -> None:
        """Let `auto` see the stream that is to be measured, and wait until it has filed everything as it wants to."""
        if load.index.algorithm != AUTO:
            return
        n_seen = 0
        for events in cycle(calls):
            load.index.match_many(events, threads=1)
            n_seen += len(events)
            if n_seen >= N_SETTLING:
                break
        load.index.wait_until_merged()
        filed = sorted({segment["algorithm"] for segment in load.index.stats()["segments"]})
        progress(f"auto has settled on {', '.join(filed)} for {len(calls[0]):,} events a call")

    def n_events(self, name: str) -> int:
        return max(self.sizes.n_events, self.chunk_size(name))

    def chunk_size(self, name: str) -> int:
        """How many events a call gets: a batch if the workload's events come in batches."""
        return CHUNK if SHAPES[name].n_copies == 1 else BATCH

    def events(self, name: str) -> list[Event]:
        return self.workload(name).events(self.n_events(name))

    def chunks(self, name: str) -> list[list[Event]]:
        events, size = self.events(name), self.chunk_size(name)
        return [events[first : first + size] for first in range(0, len(events), size)]

    def scanned(self, name: str) -> list[int]:
        """The chunks that a scan is asked about too, spread over all but the first.

        The first of a round comes after a scan, which has swept the caches of some 60 MB; as one of four it would
        count for a quarter (35 instead of 30 us an event on sparse), and stands for nothing that a stream meets.
        """
        size = self.chunk_size(name)
        n_chunks = self.n_events(name) // size
        if n_chunks == 1:
            return [0]
        return [1 + position for position in spread(max(1, self.sizes.n_scanned // size), n_chunks - 1)]

    def check_columns(self, name: str, load: Load, events: Sequence[Event], results: Results) -> None:
        """Compare the results of a few of the events with what the columns themselves say."""
        loop = ColumnLoop(self.columns(name, len(load.ids)))
        for position in spread(N_CHECKED, len(events)):
            found = load.positions(results[position])
            self.checks.equal(f"event {position} of {name} and the columns", found, loop.match(events[position]))

    def check_same(self, what: str, one: tuple[Load, Results], other: tuple[Load, Results]) -> None:
        """Compare the results of two indexes of the same subscriptions, event by event."""
        (one_load, found), (other_load, expected) = one, other
        for position, (ids, other_ids) in enumerate(zip(found, expected, strict=True)):
            places = one_load.positions(ids), other_load.positions(other_ids)
            self.checks.equal(f"event {position} of {what}", *places)

    def _keep_only(self, name: str) -> None:
        if name != self._kept:
            self._kept = name
            self._columns.clear()
            self._loads.clear()


def match_chunk(load: Load) -> Callable[[Sequence[Event]], Results]:
    """Match on one thread, through the public face."""
    return partial(load.index.match_many, threads=1)
