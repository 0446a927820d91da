"""Many documents, many threads: the three published ways to share the work, in one loop.

An event is a document on its way. Its state is a cell that threads move by compare-and-swap:

    AVAILABLE ──▶ PARSING ──▶ MATCHING ──▶ FINISHED (no part is left to take; its leader may still be merging)
       a thread leads it   parts are out    whoever takes no part any more moves it on

    me-ip   every thread leads events of its own                                 throughput
    se-cp   one thread leads, one event at a time; all others join it            latency of one event
    me-cp   a thread joins the first event it meets that has parts to share, up to 16 threads an event, or leads
            the first available one, and waits with one that is being parsed if there is nothing else;
            large events are shared, and the last ones of a queue

The leader parses and lets the parts of the document out; it matches the smaller segments alone, takes parts of the
largest like everybody, waits until all who joined have left, merges what they found, and writes the result. Everybody
does both phases of a part, with a scratch of their own. Who finds no part left leaves: the crew of an event counts down
to its leader. If lxml will not be asked, the leader lets the tree go after its first part, when others are at work:
that takes a while, and they could not begin meanwhile, for want of the GIL.
"""

import threading
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from sievecore.atomics import atomic_load, atomic_store, compare_and_swap, fetch_add
from sievecore.crews import work_together
from sievecore.jit import kernel
from sievecore.snapshots import Layer, Snapshot
from xpathfilter.batches import matched_in_batches, takes_batches
from xpathfilter.document import DocumentLimits
from xpathfilter.errors import DocumentError
from xpathfilter.flat_document import N_ELEMENTS, FlatDocument
from xpathfilter.parts import Parts, cut_parts, whole
from xpathfilter.reading import flat_documents, read_document
from xpathfilter.segment import Segment, SegmentScratch
from xpathfilter.terminals import absorb_found

__all__ = ["MODES", "match_alone", "match_events"]

AVAILABLE, PARSING, MATCHING, FINISHED = range(4)
LEADING, JOINED, NOTHING = range(3)

MAX_CREW = 16
LARGE_ELEMENTS = 1000
SPINS = 4000
NAP_SECONDS = 5e-6  # Linux makes 60 us of it; of 50 it makes 110
TIDYING_BYTES = 1 << 16


class Mode(NamedTuple):
    """What threads may do; the first thread may always lead."""

    all_lead: bool
    join: bool


MODES = {"me-ip": Mode(True, False), "se-cp": Mode(False, True), "me-cp": Mode(True, True)}

Result = np.ndarray | DocumentError


def match_alone(snapshot: Snapshot[Segment], document: Any, limits: DocumentLimits) -> np.ndarray:
    """The plain sequential algorithm for one document."""
    return _match_read(snapshot, *read_document(document, limits, _need_tree(snapshot.layers)))


def _match_read(snapshot: Snapshot[Segment], root: Any, flat: FlatDocument) -> np.ndarray:
    found = [layer.segment.match(root, flat, layer.alive) for layer in snapshot.layers]
    flat_documents.give_back(flat)
    return _sorted(found)


def _sorted(found: list[np.ndarray]) -> np.ndarray:
    """The results of all layers as one; layers may have ids in between each other's."""
    if len(found) == 1:
        return found[0]
    return np.sort(np.concatenate([np.zeros(0, np.int64), *found]))


def match_events(
    snapshot: Snapshot[Segment], documents: Sequence[Any], limits: DocumentLimits, mode: str, n_threads: int
) -> list[Result]:
    """The result of each document, or why it has none."""
    if n_threads == 1 or not snapshot.layers:
        return _match_in_turn(snapshot, documents, limits)
    return _Events(snapshot, documents, limits, MODES[mode], n_threads).match()


def _need_tree(layers: Sequence[Layer[Segment]]) -> bool:
    """Whether lxml has the last word on anything."""
    return any(layer.segment.needs_lxml for layer in layers)


def _match_in_turn(snapshot: Snapshot[Segment], documents: Sequence[Any], limits: DocumentLimits) -> list[Result]:
    """One document after the other, as many as can be by one kernel; a turn of its own for each of the others."""
    if len(snapshot.layers) != 1 or not takes_batches(snapshot.layers[0].segment):
        with_tree = _need_tree(snapshot.layers)
        return [_match_or_error(snapshot, document, limits, with_tree) for document in documents]
    found = matched_in_batches(snapshot.layers[0], documents, limits)
    return [
        _match_or_error(snapshot, document, limits, with_tree=True) if ids is None else ids
        for document, ids in zip(documents, found, strict=True)
    ]


def _match_or_error(snapshot: Snapshot[Segment], document: Any, limits: DocumentLimits, with_tree: bool) -> Result:
    try:
        return _match_read(snapshot, *read_document(document, limits, with_tree))
    except DocumentError as error:
        return error


class _Work(NamedTuple):
    """What the leader of an event shares with those who join it."""

    flat: FlatDocument
    parts: Parts
    partial: list[SegmentScratch]


class _Events:
    """The events of one call and the threads that work on them."""

    def __init__(
        self,
        snapshot: Snapshot[Segment],
        documents: Sequence[Any],
        limits: DocumentLimits,
        mode: Mode,
        n_threads: int,
    ) -> None:
        self._base: Layer[Segment] = snapshot.layers[0]
        self._others = snapshot.layers[1:]
        self._with_tree = _need_tree(snapshot.layers)
        self._documents = documents
        self._limits = limits
        self._mode = mode
        self._n_threads = n_threads
        self._states = np.zeros(len(documents), np.int64)
        self._crews = np.zeros(len(documents), np.int64)
        self._work: list[_Work | None] = [None] * len(documents)
        self._results: list[Any] = [None] * len(documents)
        self._failure: BaseException | None = None

    def match(self) -> list[Result]:
        """All results, when every thread is done."""
        caller = threading.get_ident()
        work_together(lambda: self._run(self._mode.all_lead or threading.get_ident() == caller), self._n_threads)
        if self._failure is not None:
            raise self._failure
        return self._results

    def _run(self, may_lead: bool) -> None:
        """What each thread does."""
        position, n_events = 0, len(self._documents)
        try:
            while position < n_events and self._failure is None:
                event, role, position = next_event(self._states, self._crews, position, self._mode.join, may_lead)
                if role == LEADING:
                    self._lead(event)
                elif role == JOINED:
                    self._join(event)
                elif may_lead:
                    return
                else:
                    self._wait()
        except BaseException as failure:  # noqa: BLE001  whatever it is, the caller's thread raises it
            self._failure = failure

    def _lead(self, event: int) -> None:
        try:
            root, flat = read_document(self._documents[event], self._limits, self._with_tree)
        except DocumentError as error:
            self._results[event] = error
            self._disband(event)
            return
        shared = self._is_worth_sharing(event, flat)
        n_elements = int(flat.counts[N_ELEMENTS])
        parts = cut_parts(n_elements, self._n_threads) if shared else whole(n_elements)
        work = self._work[event] = _Work(flat, parts, [])
        if shared:
            open_parts(self._states, event)
        found = [layer.segment.match(root, flat, layer.alive) for layer in self._others]
        segment, scratch = self._base.segment, self._base.segment.scratches.take()
        segment.match_parts(flat, scratch, parts, 1)
        if root is not None and not segment.needs_lxml:
            root = None
            _tidy_up()
        segment.match_parts(flat, scratch, parts)
        self._disband(event)
        for other in work.partial:
            absorb_found(scratch.walker, other.walker)
            segment.scratches.give_back(other)
        found.append(segment.results(root, scratch, self._base.alive))
        self._results[event] = _sorted(found)
        self._work[event] = None
        segment.scratches.give_back(scratch)
        flat_documents.give_back(flat)

    def _is_worth_sharing(self, event: int, flat: FlatDocument) -> bool:
        """Not if threads are better off with events of their own: sharing a small one costs more than it gains."""
        if not self._mode.join:
            return False
        others_have_events = self._mode.all_lead and event + self._n_threads < len(self._documents)
        return not others_have_events or flat.counts[N_ELEMENTS] >= LARGE_ELEMENTS

    def _disband(self, event: int) -> None:
        """Let nobody join any more, and wait for those who did."""
        while not finish(self._states, self._crews, event):
            self._check()
            self._wait()

    def _join(self, event: int) -> None:
        while not has_parts(self._states, event):
            self._check()
            self._wait()
        work, segment = self._work[event], self._base.segment
        if work is not None and self._states[event] == MATCHING:
            scratch = segment.scratches.take()
            segment.match_parts(work.flat, scratch, work.parts)
            work.partial.append(scratch)
        leave(self._states, self._crews, event)

    def _check(self) -> None:
        """Stop waiting for a thread that has failed."""
        if self._failure is not None:
            raise self._failure

    @staticmethod
    def _wait() -> None:
        time.sleep(NAP_SECONDS)


def _tidy_up() -> None:
    """Let the C library join the small pieces that a tree has left, which it does when it is asked for a large one.

    0.3 ms for 6,200 elements: while others match, and not when the result is written.
    """
    np.empty(TIDYING_BYTES, np.uint8)


@kernel
def next_event(states, crews, position, may_join, may_lead):
    """What to do next: (event, LEADING or JOINED or NOTHING, the first event that is not finished)."""
    parsing = -1
    event = position
    while event < len(states):
        state = atomic_load(states, event)
        if state == FINISHED:
            if event == position:
                position += 1
        elif state == AVAILABLE:
            if not may_lead:
                break
            if compare_and_swap(states, event, AVAILABLE, PARSING):
                atomic_store(crews, event, 1)
                return event, LEADING, position
            continue
        elif may_join and state == MATCHING and _join_crew(crews, event):
            return event, JOINED, position
        elif may_join and state == PARSING and parsing < 0:
            parsing = event
        event += 1
    if parsing >= 0 and _join_crew(crews, parsing):
        return parsing, JOINED, position
    return -1, NOTHING, position


@kernel
def _join_crew(crews, event):
    """Add a thread to a crew that still has a leader and room."""
    while True:
        n_threads = atomic_load(crews, event)
        if n_threads < 1 or n_threads >= MAX_CREW:
            return False
        if compare_and_swap(crews, event, n_threads, n_threads + 1):
            return True


@kernel
def open_parts(states, event):
    """PARSING is over: parts can be taken."""
    atomic_store(states, event, MATCHING)


@kernel
def has_parts(states, event):
    """Spin for a while until the event is no longer being parsed; return whether it is not."""
    for _ in range(SPINS):
        if atomic_load(states, event) != PARSING:
            return True
    return False


@kernel
def leave(states, crews, event):
    """Move the event on, since no part was left, and leave its crew."""
    compare_and_swap(states, event, MATCHING, FINISHED)
    fetch_add(crews, event, -1)


@kernel
def finish(states, crews, event):
    """For the leader: move the event on, and disband the crew. Return False while others are at work."""
    atomic_store(states, event, FINISHED)
    for _ in range(SPINS):
        if compare_and_swap(crews, event, 1, 0):
            return True
    return False
