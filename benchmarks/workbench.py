"""What scenarios share: sizes, expressions, documents, and indexes that are loaded once.

    workbench.load(1_000_000) ──▶ Load: the index, the id of each expression, how long it took

Whoever asks first pays for the load; `loading` reports what it cost.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from time import perf_counter

import numpy as np

from benchmarks.answers import Checks, XPathLoop
from benchmarks.measure import quiet, spread
from benchmarks.workload import LARGE, USUAL, DocumentShape, QueryShape, documents, expressions
from boolmatch import BooleanIndex
from boolmatch.columns import PredicateColumns
from xpathfilter import XPathIndex, warm_up

__all__ = ["QUICK", "STANDARD", "Load", "Sizes", "Workbench", "load_into", "progress"]


@dataclass(frozen=True)
class Sizes:
    """How many subscriptions, documents, events and repetitions a run takes."""

    compared: tuple[int, ...] = (1_000, 10_000, 100_000)
    many: int = 100_000
    million: int = 1_000_000
    ten_million: int = 10_000_000
    n_documents: int = 100
    n_events: int = 2_048
    n_scanned: int = 256
    large: DocumentShape = LARGE
    n_rounds: int = 7
    n_updates: int = 5_000
    n_paced_updates: int = 1_000
    watch_seconds: float = 8.0
    n_sampled: int = 2_000
    n_streamed: int = 1_000
    n_stalled: int = 3_000
    n_idle: int = 5_000
    n_calls: int = 500
    n_created: int = 300
    n_spark_passes: int = 160


STANDARD = Sizes()
QUICK = Sizes(
    compared=(100, 300),
    many=300,
    million=1_000,
    ten_million=3_000,
    n_documents=8,
    n_events=128,
    n_scanned=64,
    large=DocumentShape(repeats=10, enough=400),
    n_rounds=2,
    n_updates=50,
    n_paced_updates=10,
    watch_seconds=0.1,
    n_sampled=100,
    n_streamed=20,
    n_stalled=200,
    n_idle=20,
    n_calls=10,
    n_created=5,
    n_spark_passes=2,
)


@dataclass(frozen=True)
class Load:
    """A loaded index: `ids` has the id of each subscription, ascending."""

    index: XPathIndex | BooleanIndex
    ids: np.ndarray
    seconds: float
    merged_seconds: float

    def positions(self, matched: np.ndarray) -> np.ndarray:
        """The places, among the subscriptions, of the ids that a match returned."""
        return np.searchsorted(self.ids, matched)


class Workbench:
    def __init__(self, sizes: Sizes, shape: QueryShape = USUAL) -> None:
        self.sizes = sizes
        self.checks = Checks()
        self.documents = list(islice(documents(), sizes.n_documents))
        self.large_document = next(documents(seed=11, shape=sizes.large))
        self._stream: Iterator[str] = expressions(shape=shape)
        self._expressions: list[str] = []
        self._loads: dict[tuple[int, str], Load] = {}
        progress("compiling kernels")
        warm_up()

    def expressions(self, n: int, after: int = 0) -> list[str]:
        """`n` expressions of the stream that everybody shares, from the one numbered `after` on."""
        missing = max(0, after + n - len(self._expressions))
        self._expressions += islice(self._stream, missing)
        return self._expressions[after : after + n]

    def some_documents(self, n: int) -> list[int]:
        """The positions of `n` documents, spread over all."""
        return spread(n, len(self.documents))

    def load(self, n: int, algorithm: str = "suffix") -> Load:
        """The index of the first `n` expressions, loaded in one call the first time it is asked for."""
        if (n, algorithm) not in self._loads:
            texts = self.expressions(n)
            progress(f"loading {n:,} subscriptions, {algorithm}")
            self._loads[n, algorithm] = load_into(XPathIndex(algorithm=algorithm), texts)
        return self._loads[n, algorithm]

    def check_sample(self, load: Load, n: int, n_documents: int) -> None:
        """Compare some of the first `n` expressions with lxml's answers, over a few documents."""
        step = max(1, n // self.sizes.n_sampled)
        self.check_texts(load, np.arange(0, n, step), self.expressions(n)[::step], n_documents)

    def check_texts(self, load: Load, sample: np.ndarray, texts: list[str], n_documents: int) -> None:
        """Compare the expressions at the places `sample`, whose texts are given, with lxml's answers."""
        loop = XPathLoop(texts)
        for position in self.some_documents(n_documents):
            document = self.documents[position]
            found = np.intersect1d(sample, load.positions(load.index.match(document)))
            what = f"document {position}, {len(load.ids):,} subscriptions, and lxml"
            self.checks.equal(what, found, sample[loop.match(document)])


def load_into(index: XPathIndex | BooleanIndex, subscriptions: list[str] | PredicateColumns) -> Load:
    """Load all in one call, timed."""
    with quiet():
        start = perf_counter()
        ids = index.add_many(subscriptions)
        loaded = perf_counter()
        index.wait_until_merged()
        merged = perf_counter()
    return Load(index, ids, loaded - start, merged - start)


def progress(message: str) -> None:
    print(f"… {message}", file=sys.stderr, flush=True)
