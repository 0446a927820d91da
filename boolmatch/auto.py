"""Which algorithm? What the subscriptions are and what the stream brings decide, and may decide otherwise later.

    few conjunctions in a segment                               ──▶ scan
    events in large batches, alike, and many looked at in vain  ──▶ a-pcm
    anything else                                               ──▶ pst-bloom

    similarity   of an event's pairs, the share that the most similar event of its batch has too, on the average
    waste        how many entries PSTBloom looks at for one that holds: how dense and how little selective it is

With a million subscriptions and 1,024 events a call, us an event by pst-bloom and a-pcm: near-miss 258 and 31, apcm 51
and 24, wide 378 and 258, dense 93 and 75, whose waste is 12 to 117; ads, whose waste is 1.3, 34 and 50. With 64 events
a call all but near-miss are better off with pst-bloom, and none of the others wins anywhere.

An index with `algorithm="auto"` watches its own calls. A call with few events has no similarity to offer. Now and then
that of a large batch is measured, on a sample. The watch forgets: an event counts half as much when `MEMORY` more have
come. Between the two thresholds nothing changes, so that a mixed stream does not have its index built again and again.
When the preference changes, segments filed otherwise are built anew in the background, and matching goes on meanwhile.
"""

import threading
from typing import Any

import numpy as np

from boolmatch.flat_events import FlatEvents
from sievecore.hashing import SEED, mix
from sievecore.jit import builder, kernel

__all__ = ["AUTO", "Watch"]

AUTO = "auto"
FEW_CONJUNCTIONS = 32
LARGE_BATCH = 512
MEMORY = 4096
ALIKE, UNLIKE = 0.5, 0.3
WASTEFUL = 4.0
N_SAMPLED = 64
MEASURED_EVERY = 4


class Watch:
    """Remembers how alike the events of a stream are and how much PSTBloom looks at in vain, and what follows."""

    def __init__(self) -> None:
        self.similarity = 0.0
        self.waste = 1.0
        self.preferred = "pst-bloom"
        self._n_large = 0
        self._last = 0.0
        self._lock = threading.Lock()

    def algorithm_for(self, n_conjunctions: int) -> str:
        """How to file so many conjunctions."""
        return "scan" if n_conjunctions <= FEW_CONJUNCTIONS else self.preferred

    def see(self, flat: FlatEvents, waste: float | None) -> bool:
        """Take in the events of one call, and the waste if it is known; return whether the preference has changed."""
        with self._lock:
            self.waste = self.waste if waste is None else waste
            if flat.n_events >= LARGE_BATCH:
                if self._n_large % MEASURED_EVERY == 0:
                    self._last = float(similarity(flat.start, flat.pairs, flat.text, N_SAMPLED))
                self._n_large += 1
            kept = 0.5 ** (flat.n_events / MEMORY)
            seen = self._last if flat.n_events >= LARGE_BATCH else 0.0
            self.similarity = kept * self.similarity + (1 - kept) * seen
            return self._reconsider()

    def _reconsider(self) -> bool:
        before = self.preferred
        if self.similarity >= ALIKE and self.waste >= WASTEFUL:
            self.preferred = "a-pcm"
        elif self.similarity <= UNLIKE:
            self.preferred = "pst-bloom"
        return self.preferred != before

    def facts(self) -> dict[str, Any]:
        """What was seen and what follows, for `stats`."""
        return {"similarity": round(self.similarity, 3), "waste": round(self.waste, 1), "preferred": self.preferred}


@builder
def similarity(start, pairs, text, n_sampled):
    """Of the pairs of some events, the share that the most similar other event of the batch has too."""
    n_events = len(start) - 1
    hashes = np.empty(len(pairs), np.uint64)
    for i in range(len(pairs)):
        hashes[i] = _pair_hash(pairs[i], text)
    total, n_compared = 0.0, 0
    for event in range(0, n_events, max(1, n_events // n_sampled)):
        own = np.sort(hashes[start[event] : start[event + 1]])
        if len(own):
            most = 0
            for other in range(n_events):
                if other != event:
                    most = max(most, _shared(own, hashes[start[other] : start[other + 1]]))
            total, n_compared = total + most / len(own), n_compared + 1
    return total / max(1, n_compared)


@kernel
def _shared(own, others):
    """How many of the others are among one's own, which are sorted."""
    n_shared = 0
    for one in others:
        place = np.searchsorted(own, one)
        n_shared += place < len(own) and own[place] == one
    return n_shared


@kernel
def _pair_hash(pair, text):
    state = mix(mix(SEED, pair.attribute), pair.kind)
    state = mix(state, np.float64(pair.low).view(np.int64))
    for i in range(pair.text_start, pair.text_end):
        state = mix(state, text[i])
    return state
