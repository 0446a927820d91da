"""How fast a million Boolean subscriptions are loaded, from columns and from texts, and how much memory they take."""

from benchmarks.bool_table import filing_bytes
from benchmarks.bool_workbench import BooleanWorkbench, match_chunk
from benchmarks.floors import bound
from benchmarks.report import Row
from benchmarks.workbench import Load, load_into, progress
from boolmatch import BooleanIndex
from boolmatch.algorithms import ALGORITHMS

__all__ = ["load_booleans"]

WORKLOAD = "dense"
SMALL, LARGE = "pst-bloom", "pst-hash"


def load_booleans(bench: BooleanWorkbench) -> list[Row]:
    """Both ways must give the same answers, which a few are compared of."""
    n = bench.sizes.million
    from_columns = bench.load(WORKLOAD, n)
    progress(f"loading {n:,} texts, {WORKLOAD}")
    from_texts = load_into(BooleanIndex(), bench.workload(WORKLOAD).texts(n))
    chunk = bench.chunks(WORKLOAD)[0]
    expected, found = (match_chunk(load)(chunk) for load in (from_columns, from_texts))
    bench.check_same("texts and columns", (from_texts, found), (from_columns, expected))
    bench.check_columns(WORKLOAD, from_columns, chunk, expected)
    bytes_each, ceiling = from_columns.index.stats()["bytes"] / n, bound("bytes a Boolean subscription", n)
    return [
        *_rate_rows("columns", from_columns),
        *_rate_rows("texts", from_texts),
        Row("bool-build", "memory of the index", n, bytes_each, "bytes each", at_most=ceiling),
        *_filing_rows(bench),
    ]


def _rate_rows(source: str, load: Load) -> list[Row]:
    n = len(load.ids)
    floor = bound(f"Boolean subscriptions loaded a second from {source}", n)
    return [
        Row("bool-build", f"add_many of {source}", n, n / load.seconds, "/s", at_least=floor),
        Row("bool-build", f"add_many of {source} until merged", n, n / load.merged_seconds, "/s"),
    ]


def _filing_rows(bench: BooleanWorkbench) -> list[Row]:
    """How much smaller one access predicate is than two."""
    if not {SMALL, LARGE} <= set(ALGORITHMS):
        progress(f"{SMALL} against {LARGE} is left out, boolmatch.algorithms does not have both")
        return []
    n, what = bench.sizes.million, f"filing of {SMALL} in those of {LARGE}"
    small, large = (filing_bytes(bench.load(WORKLOAD, n, algorithm).index) for algorithm in (SMALL, LARGE))
    return [
        Row("bool-build", f"filing of {SMALL}", n, small / n, "bytes each"),
        Row("bool-build", f"filing of {LARGE}", n, large / n, "bytes each"),
        Row("bool-build", what, n, small / large, "of the bytes", at_most=bound(what, n)),
    ]
