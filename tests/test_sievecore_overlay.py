"""An overlay keeps what was added, whatever is merged or built anew behind it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sievecore.overlay import Overlay
from sievecore.snapshots import Layer, Snapshot


@dataclass(frozen=True, eq=False)
class Numbers:
    """The least that can be a segment."""

    ids: np.ndarray
    generation: int


def new_overlay(generations: list[int]) -> Overlay[list[int], Numbers]:
    def build(draft: list[int]) -> Numbers:
        return Numbers(np.array(draft, np.int64), generations[-1])

    def merge(layers: Sequence[Layer[Numbers]]) -> Numbers:
        return build(sorted(number for layer in layers for number in layer.living_ids().tolist()))

    return Overlay(list, build, merge, Snapshot())


def added(overlay: Overlay[list[int], Numbers], n: int) -> None:
    for _ in range(n):
        overlay.add(lambda draft, number: draft.append(number))


def living(overlay: Overlay[list[int], Numbers]) -> list[int]:
    return sorted(number for layer in overlay.snapshot.layers for number in layer.living_ids().tolist())


def test_a_segment_that_is_stale_is_built_anew() -> None:
    generations = [1]
    overlay = new_overlay(generations)
    draft = overlay.new_draft()
    draft += overlay.take_ids(100).tolist()
    overlay.add_layer(draft)
    added(overlay, 3)
    overlay.remove(np.array([7, 102]))
    generations.append(2)
    overlay.rebuild([layer.segment for layer in overlay.snapshot.layers if len(layer.segment.ids) == 100])
    overlay.wait_until_merged()
    assert {len(layer.segment.ids): layer.segment.generation for layer in overlay.snapshot.layers} == {99: 2, 3: 1}
    assert living(overlay) == [number for number in range(1, 104) if number not in (7, 102)]


def test_a_segment_that_is_gone_is_not_built_anew() -> None:
    overlay = new_overlay([1])
    added(overlay, 200)
    overlay.wait_until_merged()
    gone = Numbers(np.arange(5), 0)
    overlay.rebuild([gone])
    overlay.wait_until_merged()
    assert living(overlay) == list(range(1, 201))
    assert all(layer.segment is not gone for layer in overlay.snapshot.layers)
