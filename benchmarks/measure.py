"""How long something takes, on a machine that others use too.

    A B A B A B        the two sides of a ratio take turns, so that a busy minute hits both
    ▼ ▼ ▼ ▼ ▼ ▼
    the median of its rounds stands for each item, their sum for a side

    quick side    d0 d1 d2 d3 d4 d5 d6 …     all items, so that none is in its caches from the last round
    slow side     d0       d3       d6       some of them; only these are compared

An item is a document, or a list of events. The garbage collector rests meanwhile. What is timed is the whole cost of
an item: reading, matching and the result.
"""

import gc
import resource
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from time import perf_counter
from typing import Any

import numpy as np

__all__ = ["compare", "interleave", "item_seconds", "peak_bytes", "quiet", "seconds", "spread", "timed"]


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


def item_seconds(match: Callable[[Any], Any], items: Sequence[Any]) -> list[float]:
    """The time of each document, or of each list of events."""
    return [seconds(lambda: match(item)) for item in items]  # noqa: B023 (called at once)


def timed(match: Callable[[Any], Any], items: Sequence[Any]) -> Callable[[], list[float]]:
    """The items as a side of `interleave`."""
    return lambda: item_seconds(match, items)


def spread(n: int, n_all: int) -> list[int]:
    """The positions of `n` items, spread over all."""
    return sorted({round(place) for place in np.linspace(0, n_all - 1, n)})


def interleave(sides: Mapping[str, Callable[[], Sequence[float]]], n_rounds: int) -> dict[str, np.ndarray]:
    """For each side, the median over the rounds of each time that it returns."""
    rounds: dict[str, list[Sequence[float]]] = {name: [] for name in sides}
    with quiet():
        for _ in range(n_rounds):
            for name, measure in sides.items():
                rounds[name].append(measure())
    return {name: np.median(np.array(times), axis=0) for name, times in rounds.items()}


def compare(
    quick: Callable[[Any], Any], slow: Callable[[Any], Any], items: Sequence[Any], chosen: Sequence[int], n_rounds: int
) -> tuple[float, float]:
    """Mean seconds of the chosen items on both sides."""
    few = [items[position] for position in chosen]
    medians = interleave({"quick": timed(quick, items), "slow": timed(slow, few)}, n_rounds)
    return float(medians["quick"][chosen].mean()), float(medians["slow"].mean())


def peak_bytes() -> int:
    """The most memory this process has ever had resident."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
