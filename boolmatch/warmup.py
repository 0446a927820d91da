"""Compile every kernel now, so that nobody's first event waits for it.

    python -c "import boolmatch; boolmatch.warm_up()"        after installing

Later processes find the machine code on disk.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

from boolmatch.algorithms import ALGORITHMS
from boolmatch.event_writer import Event
from boolmatch.index import BooleanIndex
from sievecore.settling import settle

__all__ = ["warm_up"]

EXPRESSIONS = [
    "a = 1 AND b > 2",
    "c BETWEEN 'x' AND 'y' OR d <> 3",
    "NOT e LIKE 'a%b'",
    " AND ".join(f"(a = {number} OR b{number} = 1)" for number in range(8)),
]
EVENTS: list[Event] = [{"a": 1, "b": 3, "c": "x", "d": [1, 2], "e": "ab"}, {"a": 2, "b": 1}] * 8


def warm_up() -> None:
    """Run every kernel once on a small index, and take what is loaded by then out of the garbage collector's sight."""
    for algorithm in ALGORITHMS:
        index = BooleanIndex(algorithm)
        ids = index.add_many(EXPRESSIONS)
        index.match_many(EVENTS, threads=2)
        index.match(EVENTS[0])
        index.explain(int(ids[0]), EVENTS[0])
        index.explain(int(ids[-1]), EVENTS[0])
        index.remove(index.add("f = 1"))
        index.merge()
    with TemporaryDirectory() as folder:
        index.save(Path(folder) / "index.sieve")
        BooleanIndex.load(Path(folder) / "index.sieve").match_many(EVENTS, threads=1)
    settle()
