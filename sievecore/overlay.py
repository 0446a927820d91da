"""Updates that cost little at any size: a small draft on top, frozen layers below, merging in the background.

    add ──▶ draft (up to 64 subscriptions, frozen anew with each add)
              │ full
              ▼
            layer of 64 ──▶ level of up to 512 ──▶ 4,096 ──▶ 32,768 ──▶ … each at most one layer, when at rest

A level that a layer arrives in is merged with it, and what outgrows the level moves on; so a subscription is
rebuilt a few times on its way down, and a document is matched against a handful of layers. A layer that is mostly
dead is rebuilt alone. Merging runs in a thread that lives only while there is something to merge. It builds the new
layer beside the old ones and switches them under the lock, taking along what was removed meanwhile.

The lock is held by updates only. Who matches takes `snapshot` and needs no lock. Each update ends with a breath, so
that a stream of them does not keep the GIL from those who match.
"""

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Generic, TypeVar

import numpy as np

from sievecore.breathing import breathe
from sievecore.snapshots import Layer, SegmentType, Snapshot

__all__ = ["Overlay"]

DRAFT_SIZE = 64
LEVEL_FACTOR = 8


DraftType = TypeVar("DraftType")


class Overlay(Generic[DraftType, SegmentType]):
    """The changing side of an index. `snapshot` is always a complete version of it.

    A draft takes subscriptions and can be built, that is frozen, again and again while more are added.
    """

    def __init__(
        self,
        new_draft: Callable[[], DraftType],
        build: Callable[[DraftType], SegmentType],
        merge: Callable[[Sequence[Layer[SegmentType]]], SegmentType],
        snapshot: Snapshot[SegmentType],
        next_id: int = 1,
    ) -> None:
        self.snapshot = snapshot
        self.next_id = next_id
        self.new_draft = new_draft
        self._build = build
        self._merge = merge
        self._lock = threading.Lock()
        self._merging = threading.Lock()
        self._merger: threading.Thread | None = None
        self._draft = new_draft()
        self._draft_layer: Layer[SegmentType] | None = None
        self._n_drafted = 0
        self._stale: list[SegmentType] = []

    def add(self, fill: Callable[[DraftType, int], None]) -> int:
        """Add one subscription: `fill` puts it into the draft under the id it is given, which is returned."""
        with self._lock:
            subscription_id = self.next_id
            self.next_id += 1
            fill(self._draft, subscription_id)
            self._n_drafted += 1
            self._switch_draft(self._build(self._draft))
            if self._n_drafted == DRAFT_SIZE:
                self._retire_draft()
                self._start_merging()
        breathe()
        return subscription_id

    def take_ids(self, n: int) -> np.ndarray:
        """Ids for a draft of one's own."""
        with self._lock:
            first, self.next_id = self.next_id, self.next_id + n
        return np.arange(first, first + n)

    def add_layer(self, draft: DraftType) -> None:
        """Add all subscriptions of a draft of one's own; most of the work is done without the lock."""
        layer = Layer.whole(self._build(draft))
        with self._lock:
            self._switch(self.snapshot.with_layers([], [layer]))
            self._start_merging()

    def remove(self, ids: np.ndarray) -> np.ndarray:
        """Remove subscriptions, all or none: return those that are not there, in which case nothing happens."""
        with self._lock:
            snapshot, missing = self.snapshot.without(ids)
            if not len(missing):
                self._switch(snapshot)
                self._start_merging()
        breathe()
        return missing

    def merge_all(self) -> None:
        """Make the index one layer with nothing dead in it."""
        with self._merging:
            with self._lock:
                self._retire_draft()
                layers = self.snapshot.layers
            if len(layers) > 1 or any(layer.n_alive < len(layer.segment.ids) for layer in layers):
                self._replace(layers)

    def rebuild(self, segments: Iterable[SegmentType]) -> None:
        """Have segments built anew in the background, because `merge` would by now build them differently."""
        with self._lock:
            self._stale += segments
            self._start_merging()

    def wait_until_merged(self) -> None:
        """Return when the background has nothing left to do."""
        while (merger := self._merger) is not None:
            merger.join()

    def _retire_draft(self) -> None:
        """Leave the draft's layer to the merger, and start a new draft."""
        self._draft, self._draft_layer, self._n_drafted = self.new_draft(), None, 0

    def _switch(self, snapshot: Snapshot[SegmentType]) -> None:
        if self._draft_layer is not None:
            self._draft_layer = snapshot.current(self._draft_layer) or self._draft_layer
        self.snapshot = snapshot

    def _switch_draft(self, segment: SegmentType) -> None:
        """Put a newer freeze of the draft in place of the older one; who is dead in it stays dead."""
        layer = Layer.whole(segment)
        gone = []
        if (before := self._draft_layer) is not None:
            if before.n_alive < len(before.segment.ids):
                dead = np.setdiff1d(before.segment.ids, before.living_ids())
                layer = layer.without(layer.slots(dead))
            gone = [before]
        self.snapshot = self.snapshot.with_layers(gone, [layer])
        self._draft_layer = layer

    def _start_merging(self) -> None:
        if self._merger is None and self._choose():
            self._merger = threading.Thread(target=self._merge_levels, name="sieve-merge", daemon=True)
            self._merger.start()

    def _merge_levels(self) -> None:
        try:
            while True:
                with self._merging:
                    with self._lock:
                        layers = self._choose()
                        if not layers:
                            self._merger = None
                            return
                    self._replace(layers)
        except BaseException:
            self._merger = None
            raise

    def _choose(self) -> list[Layer[SegmentType]]:
        """Layers to merge next: those of the lowest level that holds two, or one that is stale or mostly dead."""
        drafted = self._draft_layer.segment if self._draft_layer is not None else None
        layers = [layer for layer in self.snapshot.layers if layer.segment is not drafted]
        stale = {id(segment) for segment in self._stale}
        levels: dict[int, list[Layer[SegmentType]]] = {}
        for layer in layers:
            levels.setdefault(_level(layer.n_alive), []).append(layer)
        for _, crowded in sorted(levels.items()):
            if len(crowded) > 1:
                return crowded
        worn = [layer for layer in layers if 2 * layer.n_alive < len(layer.segment.ids) or id(layer.segment) in stale]
        return worn[:1]

    def _replace(self, layers: Sequence[Layer[SegmentType]]) -> None:
        merged = Layer.whole(self._merge(layers))
        with self._lock:
            removed = [self._removed_since(layer) for layer in layers]
            slots = merged.slots(np.concatenate(removed))
            self._switch(self.snapshot.with_layers(layers, [merged.without(slots)]))
            present = {id(layer.segment) for layer in self.snapshot.layers}
            self._stale = [segment for segment in self._stale if id(segment) in present]

    def _removed_since(self, layer: Layer[SegmentType]) -> np.ndarray:
        now = self.snapshot.current(layer)
        return layer.living_ids() if now is None else layer.lost(now)


def _level(n_alive: int) -> int:
    level, capacity = 0, DRAFT_SIZE
    while n_alive > capacity:
        level, capacity = level + 1, capacity * LEVEL_FACTOR
    return level
