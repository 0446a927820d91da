"""Many subscriptions that differ only in their constants: a million symbols, a million limits, both at once.

    symbol    //quote[@symbol='S123']/price                brothers of one large group
    both      //quote[price > 17.3 and @symbol='S123']     conditions of two tests
    limit     /invoice[total > 1234.5]                     one sorted list

What parsing costs is known from an index that holds nothing of use, with the same document in turn. Most of a
million match nothing here: who has matches pays for them.
"""

from collections.abc import Callable
from time import perf_counter

import numpy as np

from benchmarks.answers import XPathLoop
from benchmarks.floors import bound
from benchmarks.measure import interleave, quiet, seconds, timed
from benchmarks.report import Row
from benchmarks.workbench import Workbench, progress
from xpathfilter import XPathIndex

__all__ = ["constants"]

N_QUOTES = 20
N_REPEATS = 50

SHAPES: dict[str, Callable[[int], str]] = {
    "symbol": lambda i: f"//quote[@symbol='S{i}']/price",
    "both": lambda i: f"//quote[price > {i * 7919 % 1_000_003 / 10} and @symbol='S{i}']",
    "limit": lambda i: f"/invoice[total > {i + 0.5}]",
}


def constants(bench: Workbench) -> list[Row]:
    """Load, match and merge each shape; answers compared with lxml's."""
    return [row for name, shape in SHAPES.items() for row in _constants(bench, name, shape)]


def _constants(bench: Workbench, name: str, shape: Callable[[int], str]) -> list[Row]:
    n = bench.sizes.million
    progress(f"{n:,} subscriptions like {shape(123)}")
    texts, index = [shape(i) for i in range(n)], XPathIndex()
    with quiet():
        start = perf_counter()
        ids = index.add_many(texts)
        loaded = perf_counter() - start
    bytes_each = index.stats()["bytes"] / n
    document = _document(name, n)
    _check(bench, index, ids, texts, document)
    matching = _beyond_parsing(bench, index, document)
    merged = _merge(index)
    _check(bench, index, ids, texts, document)
    return [
        _at_least(f"{name}, add_many", "subscriptions loaded a second", n, n / loaded),
        _at_least(f"{name}, merge", "subscriptions merged a second", n, n / merged),
        _at_most(f"{name}, memory of the index", "bytes a subscription", n, bytes_each, "bytes each"),
        _at_most(f"{name}, a document beyond parsing", "ms of a document beyond parsing", n, matching * 1e3, "ms"),
    ]


def _document(name: str, n: int) -> bytes:
    """A document that a few of the subscriptions want."""
    if name == "limit":
        return b"<invoice><total>12</total></invoice>"
    quotes = (f"<quote symbol='S{i}'><price>{i * 50_000 / n:.1f}</price></quote>" for i in _quoted(n))
    return f"<quotes>{''.join(quotes)}</quotes>".encode()


def _quoted(n: int) -> list[int]:
    return [n * i // N_QUOTES for i in range(N_QUOTES)]


def _check(bench: Workbench, index: XPathIndex, ids: np.ndarray, texts: list[str], document: bytes) -> None:
    """Compare some expressions with lxml's answers, those that the document is about among them."""
    n = len(texts)
    sample = np.unique([*range(0, n, max(1, n // bench.sizes.n_sampled)), *range(20), *_quoted(n)])
    found = np.intersect1d(index.match(document), ids[sample])
    expected = ids[sample][XPathLoop([texts[i] for i in sample]).match(document)]
    bench.checks.equal(f"{texts[-1]} and so on, and lxml", found, expected)


def _beyond_parsing(bench: Workbench, index: XPathIndex, document: bytes) -> float:
    """Seconds of a document, less those with an index that holds nothing of use."""
    bare, documents = XPathIndex(), [document] * N_REPEATS
    bare.add("//nothing")
    sides = {"index": timed(index.match, documents), "bare": timed(bare.match, documents)}
    medians = interleave(sides, bench.sizes.n_rounds)
    return float(np.median(medians["index"]) - np.median(medians["bare"]))


def _merge(index: XPathIndex) -> float:
    """Seconds to merge everything with one subscription more."""
    index.add("//nothing")
    with quiet():
        return seconds(index.merge)


def _at_least(what: str, floor: str, n: int, measured: float) -> Row:
    return Row("constants", what, n, measured, "/s", at_least=bound(floor, n))


def _at_most(what: str, ceiling: str, n: int, measured: float, unit: str) -> Row:
    return Row("constants", what, n, measured, unit, at_most=bound(ceiling, n))
