"""Where to read from, and how much: offsets, the ranges between them, and how these are shared out.

    offset     {"ibm": 18, "sap": 5}      the sequence that each subscription reads next
               {"-": 4712}                all of a tenant: the position of the log that is read next
    spans      ("ibm", 18, 40)            from 18 up to, not including, 40

An offset of a query's progress may be given as a `startingPosition` as it is. All here is plain: no Spark, no server.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from pyspark_pathsieve.option_kinds import Kind

__all__ = [
    "ALL",
    "EARLIEST",
    "LATEST",
    "POSITION",
    "SUBSCRIPTIONS",
    "UNTIL",
    "Offset",
    "Position",
    "Span",
    "limited",
    "named",
    "shared_out",
    "spans_between",
]

ALL = "-"
EARLIEST, LATEST = "earliest", "latest"
PREFIX = "subscriptions/"
MAX_SUBSCRIPTIONS = 1000
MAX_PARTITIONS = 10_000

Offset = dict[str, int]
Position = str | Offset
"""`EARLIEST`, `LATEST`, or what each subscription reads next; those that are not named read what is earliest."""


class Span(NamedTuple):
    """Sequences of a subscription in a row, or positions of the log: `end` is the first that is not in it."""

    name: str
    first: int
    end: int

    def __len__(self) -> int:
        return self.end - self.first


def _position(text: str) -> Position:
    """
    >>> _position('{"ibm": 17}')
    {'ibm': 17}
    """
    word = text.strip().lower()
    if word in (EARLIEST, LATEST):
        return word
    found = json.loads(text)
    if not isinstance(found, dict) or not found:
        raise ValueError
    if any(isinstance(next_one, bool) or not isinstance(next_one, int) or next_one < 1 for next_one in found.values()):
        raise ValueError
    return {name.removeprefix(PREFIX): next_one for name, next_one in found.items()}


def _until(text: str) -> Position:
    position = _position(text)
    if position == EARLIEST:
        raise ValueError
    return position


def _subscriptions(text: str) -> tuple[str, ...]:
    """
    >>> _subscriptions("ibm, subscriptions/sap")
    ('ibm', 'sap')
    """
    names = tuple(name.strip().removeprefix(PREFIX) for name in text.split(","))
    if not all(names) or len(set(names)) < len(names) or (ALL in names and len(names) > 1):
        raise ValueError
    if len(names) > MAX_SUBSCRIPTIONS:
        raise ValueError
    return names


POSITION = Kind('earliest, latest, or what to read first as in {"ibm": 17}', _position)
UNTIL = Kind('latest, or what is not read any more as in {"ibm": 40}', _until)
SUBSCRIPTIONS = Kind(
    f"the id of a subscription, up to {MAX_SUBSCRIPTIONS:,} different ones with commas between them, or - for all",
    _subscriptions,
)


def spans_between(start: Mapping[str, int], end: Mapping[str, int]) -> list[Span]:
    """What lies between two offsets. A subscription that has gone back was made anew: it is read from its first."""
    spans = (Span(name, start[name] if start[name] <= stop else 1, stop) for name, stop in end.items())
    return [span for span in spans if len(span)]


def limited(start: Mapping[str, int], end: Mapping[str, int], limit: int) -> Offset:
    """The end of at most `limit` notifications after `start`: each subscription has a share, by how much it has.

    >>> limited({"a": 1, "b": 1, "c": 7}, {"a": 301, "b": 101, "c": 7}, 40)
    {'a': 31, 'b': 11, 'c': 7}
    """
    spans = {span.name: span for span in spans_between(start, end)}
    total = sum(map(len, spans.values()))
    if total <= limit:
        return dict(end)
    shares = {name: limit * len(span) // total for name, span in spans.items()}
    rest = sorted(spans, key=lambda name: (-(limit * len(spans[name]) % total), name))
    for name in rest[: limit - sum(shares.values())]:
        shares[name] += 1
    stays = {name: start[name] for name in end}
    return stays | {name: spans[name].first + share for name, share in shares.items() if share}


def shared_out(spans: Iterable[Span], size: int) -> list[list[Span]]:
    """Parts of about the same size, one a task; long spans are cut, short ones go together.

    >>> shared_out([Span("a", 1, 8), Span("b", 1, 2), Span("c", 4, 6)], 4)
    [[Span(name='a', first=1, end=5)], [Span(name='a', first=5, end=8), Span(name='b', first=1, end=2)], \
[Span(name='c', first=4, end=6)]]
    """
    given = list(spans)
    size = max(size, -(-sum(map(len, given)) // MAX_PARTITIONS))
    parts: list[list[Span]] = []
    room = 0
    for span in given:
        first = span.first
        while first < span.end:
            if not room:
                parts.append([])
                room = size
            end = min(first + room, span.end)
            parts[-1].append(Span(span.name, first, end))
            room -= end - first
            first = end
    return parts


def named(names: Sequence[str]) -> str:
    """Names as people read them.

    >>> named(["a", "b", "c", "d"])
    'a, b, c and 1 more'
    """
    shown = ", ".join(names[:3])
    return f"{shown} and {len(names) - 3:,} more" if len(names) > 3 else shown
