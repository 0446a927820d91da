"""The half of an index that is the same whatever is subscribed to: ids, removal, merging, and texts that come in bulk.

    XPathIndex, BooleanIndex ──▶ StandingIndex ──▶ Overlay ──▶ Snapshot

An engine says how a text is compiled and how a snapshot is matched, and which error tells of an unknown id.
"""

import os
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

import numpy as np

from sievecore.breathing import breathing
from sievecore.overlay import DraftType, Overlay
from sievecore.refusals import UnknownId
from sievecore.snapshots import Layer, SegmentType, Snapshot

__all__ = ["StandingIndex", "checked_texts", "checked_threads", "compile_odd"]

Compiled = TypeVar("Compiled")
Refusal = TypeVar("Refusal", bound=Exception)


class StandingIndex(Generic[DraftType, SegmentType]):
    """Subscriptions behind an overlay. Every method may be called from any thread."""

    _overlay: Overlay[DraftType, SegmentType]
    _unknown: type[UnknownId]

    @property
    def snapshot(self) -> Snapshot[SegmentType]:
        """The subscriptions as they are now, whatever is added and removed later."""
        return self._overlay.snapshot

    def remove(self, subscription_id: int) -> None:
        """Unsubscribe; `UnknownSubscription` if there is no such subscription (any more)."""
        self.remove_many([subscription_id])

    def remove_many(self, subscription_ids: Iterable[int]) -> None:
        """Unsubscribe many; if one of them is unknown, none is removed."""
        missing = self._overlay.remove(self._checked_ids(subscription_ids))
        if len(missing):
            raise self._unknown(int(missing[0]))

    def __len__(self) -> int:
        return len(self._overlay.snapshot)

    def __contains__(self, subscription_id: object) -> bool:
        try:
            return self._overlay.snapshot.find(self._checked_id(subscription_id)) is not None
        except (UnknownId, TypeError):
            return False

    def merge(self) -> None:
        """Make the index one segment, as small and as fast as it can be; matching and updates go on meanwhile."""
        self._overlay.merge_all()

    def wait_until_merged(self) -> None:
        """Return when no merging is going on in the background."""
        self._overlay.wait_until_merged()

    def _find(self, subscription_id: int) -> tuple[Layer[SegmentType], int]:
        """The layer and slot of a living subscription."""
        found = self._overlay.snapshot.find(self._checked_id(subscription_id))
        if found is None:
            raise self._unknown(subscription_id)
        return found

    def _take_ids(self, n_texts: int, bad: list[tuple[int, Any]]) -> np.ndarray:
        """Ids for texts that come together; those at the positions of `bad` get -1."""
        good = np.ones(n_texts, np.bool_)
        good[[position for position, _ in bad]] = False
        ids = np.full(n_texts, -1, np.int64)
        ids[good] = self._overlay.take_ids(int(good.sum()))
        return ids

    def _checked_id(self, subscription_id: object) -> int:
        if isinstance(subscription_id, bool) or not isinstance(subscription_id, (int, np.integer)):
            raise TypeError(f"a subscription id is an int, not {type(subscription_id).__name__}")
        if not 0 < subscription_id < 1 << 63:
            raise self._unknown(int(subscription_id))
        return int(subscription_id)

    def _checked_ids(self, subscription_ids: Iterable[int]) -> np.ndarray:
        """The distinct ids, ascending; as quick as can be if they come as `add_many` returned them."""
        if isinstance(subscription_ids, np.ndarray) and subscription_ids.dtype == np.int64:
            in_order = np.sort(subscription_ids)
            ids = in_order[np.append(True, in_order[1:] != in_order[:-1])[: len(in_order)]]
            if len(ids) and ids[0] <= 0:
                raise self._unknown(int(ids[0]))
            return ids
        distinct = {self._checked_id(subscription_id) for subscription_id in breathing(subscription_ids)}
        return np.sort(np.fromiter(distinct, np.int64, len(distinct)))


def checked_texts(expressions: Iterable[str]) -> list[str]:
    """Several expressions, each of them a str."""
    if isinstance(expressions, str):
        raise TypeError("expressions is one str, expected several; for one expression there is add()")
    texts = expressions if isinstance(expressions, list) else list(expressions)
    for position, text in enumerate(breathing(texts)):
        if not isinstance(text, str):
            raise TypeError(f"expression {position} is {type(text).__name__}, expected str")
    return texts


def checked_threads(threads: int | None) -> int:
    """How many threads to use: by default one a processor."""
    if threads is not None and threads < 1:
        raise ValueError(f"threads is {threads}, expected 1 or more, or None for one a processor")
    return threads or os.cpu_count() or 1


def compile_odd(
    texts: list[str], plain: np.ndarray, compile_text: Callable[[str], Compiled], refusals: tuple[type[Refusal], ...]
) -> tuple[list[tuple[int, Compiled]], list[tuple[int, Refusal]]]:
    """Compile the texts that are not at the positions `plain`, one by one; those refused come with their errors."""
    is_odd = np.ones(len(texts), np.bool_)
    is_odd[plain] = False
    compiled, bad = [], []
    for position in breathing(np.flatnonzero(is_odd).tolist()):
        try:
            compiled.append((position, compile_text(texts[position])))
        except refusals as error:
            bad.append((position, error))
    return compiled, bad
