"""Boolean subscriptions, millions of them, matched against events.

subscription text ─▶ lexer ─▶ parser ─▶ expression ─▶ predicates ─▶ normal form ─▶ index (frozen arrays) ─┐
                                                                                                       ├─▶ ids
event {name: value} ───────────────────────────────────────────────────────────────────────────────────┘
"""

from boolmatch.columns import PredicateColumns, predicate_columns
from boolmatch.errors import (
    AddManyError,
    BooleanMatchError,
    BooleanSyntaxError,
    EventError,
    UndecidedAtomError,
    UnknownSubscription,
)
from boolmatch.explanation import Explanation
from boolmatch.index import BooleanIndex
from boolmatch.values import Interval, Point
from boolmatch.warmup import warm_up

__all__ = [
    "AddManyError",
    "BooleanIndex",
    "BooleanMatchError",
    "BooleanSyntaxError",
    "EventError",
    "Explanation",
    "Interval",
    "Point",
    "PredicateColumns",
    "UndecidedAtomError",
    "UnknownSubscription",
    "predicate_columns",
    "warm_up",
]
