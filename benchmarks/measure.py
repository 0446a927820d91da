"""How long something takes, on a machine that others use too.

    A B A B A B        the two sides of a ratio take turns, so that a busy minute hits both
    ▼ ▼ ▼ ▼ ▼ ▼
    the median of its rounds stands for each document, their sum for a side

The garbage collector rests meanwhile. What is timed is the whole cost of a document: parse, match and result.
"""

import gc
import resource
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from time import perf_counter
from typing import Any

import numpy as np

__all__ = ["document_seconds", "interleave", "peak_bytes", "quiet", "seconds"]


@contextmanager
def quiet() -> Iterator[None]:
    """Without garbage collection; what is there already will not be looked at by a later one either."""
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.unfreeze()


def seconds(action: Callable[[], Any]) -> float:
    start = perf_counter()
    action()
    return perf_counter() - start


def document_seconds(match: Callable[[bytes], Any], documents: Sequence[bytes]) -> list[float]:
    """The time of each document."""
    return [seconds(lambda: match(document)) for document in documents]  # noqa: B023 (called at once)


def interleave(sides: Mapping[str, Callable[[], Sequence[float]]], n_rounds: int) -> dict[str, np.ndarray]:
    """For each side, the median over the rounds of each time that it returns."""
    rounds: dict[str, list[Sequence[float]]] = {name: [] for name in sides}
    with quiet():
        for _ in range(n_rounds):
            for name, measure in sides.items():
                rounds[name].append(measure())
    return {name: np.median(np.array(times), axis=0) for name, times in rounds.items()}


def peak_bytes() -> int:
    """The most memory this process has ever had resident."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
