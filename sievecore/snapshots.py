"""One version of an index: frozen segments, and which of their subscriptions are still alive.

    Snapshot ── Layer(segment of 1,000,000, alive 1101…)  Layer(segment of 512, alive 1111…)  Layer(segment of 3, …)

A snapshot never changes. An update makes the next one and switches a single reference, so whoever matches keeps
the version it started with, without a lock.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np

__all__ = ["Layer", "Segment", "SegmentType", "Snapshot"]


class Segment(Protocol):
    """What a layer needs to know of an engine's segment."""

    @property
    def ids(self) -> np.ndarray:
        """The ids of its subscriptions, ascending; a subscription's place among them is its slot."""


SegmentType = TypeVar("SegmentType", bound=Segment)


@dataclass(frozen=True)
class Layer(Generic[SegmentType]):
    """A segment and one bit a slot: set while the subscription is alive."""

    segment: SegmentType
    alive: np.ndarray
    n_alive: int

    @classmethod
    def whole(cls, segment: SegmentType) -> "Layer[SegmentType]":
        """A layer in which everything is alive."""
        n_slots = len(segment.ids)
        alive = np.zeros(n_slots // 64 + 1, np.uint64)
        alive[: n_slots // 64] = ~np.uint64(0)
        alive[n_slots // 64] = (1 << n_slots % 64) - 1
        return cls(segment, alive, n_slots)

    def slots(self, ids: np.ndarray) -> np.ndarray:
        """The slot of each id that is here and alive, -1 for the others."""
        if not len(self.segment.ids):
            return np.full(len(ids), -1)
        slots = np.minimum(np.searchsorted(self.segment.ids, ids), len(self.segment.ids) - 1)
        here = (self.segment.ids[slots] == ids) & self._is_alive(slots)
        return np.where(here, slots, -1)

    def without(self, slots: np.ndarray) -> "Layer[SegmentType]":
        """The layer with these living slots dead."""
        alive = self.alive.copy()
        np.bitwise_and.at(alive, slots >> 6, ~(np.uint64(1) << (slots & 63).astype(np.uint64)))
        return Layer(self.segment, alive, self.n_alive - len(slots))

    def living_slots(self) -> np.ndarray:
        """The slots that are alive, ascending."""
        return np.flatnonzero(np.unpackbits(self.alive.view(np.uint8), bitorder="little"))

    def living_ids(self) -> np.ndarray:
        """The ids that are alive, ascending."""
        return self.segment.ids[self.living_slots()]

    def lost(self, later: "Layer[SegmentType]") -> np.ndarray:
        """The ids that are alive here and dead in a later version of this layer."""
        lost = self.alive & ~later.alive
        words = np.flatnonzero(lost)
        bits = np.unpackbits(lost[words].view(np.uint8).reshape(-1, 8), axis=1, bitorder="little")
        places, offsets = np.nonzero(bits)
        return self.segment.ids[words[places] * 64 + offsets]

    def _is_alive(self, slots: np.ndarray) -> np.ndarray:
        return (self.alive[slots >> 6] >> (slots & 63).astype(np.uint64)) & np.uint64(1) != 0


@dataclass(frozen=True)
class Snapshot(Generic[SegmentType]):
    """Layers, largest and oldest first."""

    layers: tuple[Layer[SegmentType], ...] = ()

    def __len__(self) -> int:
        return sum(layer.n_alive for layer in self.layers)

    def find(self, subscription_id: int) -> tuple[Layer[SegmentType], int] | None:
        """The layer and slot of a living subscription."""
        for layer in self.layers:
            slot = int(layer.slots(np.array([subscription_id]))[0])
            if slot >= 0:
                return layer, slot
        return None

    def without(self, ids: np.ndarray) -> tuple["Snapshot[SegmentType]", np.ndarray]:
        """The snapshot with these ids dead, and those of them that were not alive in it."""
        layers, missing = [], np.ones(len(ids), np.bool_)
        for layer in self.layers:
            slots = layer.slots(ids)
            missing &= slots < 0
            layers.append(layer.without(slots[slots >= 0]) if (slots >= 0).any() else layer)
        return Snapshot(tuple(layers)), ids[missing]

    def with_layers(
        self, gone: Iterable[Layer[SegmentType]], new: Iterable[Layer[SegmentType]]
    ) -> "Snapshot[SegmentType]":
        """The snapshot with some layers replaced; an empty layer is left out."""
        segments = {id(layer.segment) for layer in gone}
        kept = [layer for layer in self.layers if id(layer.segment) not in segments]
        layers = sorted([*kept, *new], key=lambda layer: -layer.n_alive)
        return Snapshot(tuple(layer for layer in layers if layer.n_alive))

    def current(self, layer: Layer[SegmentType]) -> Layer[SegmentType] | None:
        """What has become of a layer of an earlier snapshot."""
        return next((now for now in self.layers if now.segment is layer.segment), None)
