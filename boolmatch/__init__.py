"""Boolean subscriptions, millions of them, matched against events.

subscription text ─▶ lexer ─▶ parser ─▶ expression ─▶ predicates ─▶ normal form ─▶ index (frozen arrays) ─┐
                                                                                                       ├─▶ ids
event {name: value} ───────────────────────────────────────────────────────────────────────────────────┘
"""

from boolmatch.errors import (
    AddManyError,
    BooleanMatchError,
    BooleanSyntaxError,
    EventError,
    UndecidedAtomError,
    UnknownSubscription,
)
from boolmatch.index import BooleanIndex
from boolmatch.values import Interval, Point

__all__ = [
    "AddManyError",
    "BooleanIndex",
    "BooleanMatchError",
    "BooleanSyntaxError",
    "EventError",
    "Interval",
    "Point",
    "UndecidedAtomError",
    "UnknownSubscription",
]
