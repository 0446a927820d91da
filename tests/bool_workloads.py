"""Random subscriptions and events by the thousand, for structures that look different when they are large.

subscriptions   "a3 = 7 AND a11 BETWEEN 2 AND 9 AND a0 IS NULL …", all kinds of conditions
events          plain ones, and ones with several values or intervals
similar_events  copies of a few plain ones, with some of the pairs replaced
"""

import random
from typing import Any

from boolmatch.values import Interval

N_ATTRIBUTES, N_VALUES = 24, 40

Event = dict[str, Any]


def subscriptions(source: random.Random, count: int, odd: float = 0.1) -> list[str]:
    """Conjunctions; `odd` is the share of conditions that are no comparison with a range."""
    return [_conjunction(source, odd) for _ in range(count)]


def _conjunction(source: random.Random, odd: float) -> str:
    attributes = source.sample(range(N_ATTRIBUTES), source.randint(1, 6))
    return " AND ".join(_condition(source, f"a{attribute}", odd) for attribute in attributes)


def _condition(source: random.Random, name: str, odd: float) -> str:
    low, width = source.randrange(N_VALUES), source.randrange(8)
    if source.random() < odd:
        return source.choice(
            [
                f"{name} IS NULL",
                f"{name} IS NOT NULL",
                f"{name} <> {low}",
                f"{name} IN ({low}, {low + width}, {low + 2 * width})",
                f"NOT {name} > {low}",
                f"{name} >= {low} AND {name} < {low + width}",
            ]
        )
    forms = [f"{name} = {low}", f"{name} = {low}", f"{name} BETWEEN {low} AND {low + width}", f"{name} <= {low}"]
    return source.choice(forms)


def plain_event(source: random.Random) -> Event:
    attributes = source.sample(range(N_ATTRIBUTES), source.randint(4, N_ATTRIBUTES - 2))
    return {f"a{attribute}": source.randrange(N_VALUES) for attribute in attributes}


def events(source: random.Random, count: int) -> list[Event]:
    """Every other one has an attribute with several values or an interval."""
    made = [plain_event(source) for _ in range(count)]
    for event in made[::2]:
        low = source.randrange(N_VALUES)
        odd = source.choice([{low, source.randrange(N_VALUES)}, Interval(low, low + 3), "text"])
        event[source.choice(list(event))] = odd
    return made


def similar_events(source: random.Random, n_bases: int, n_copies: int, replaced: float) -> list[Event]:
    """Shuffled copies of a few events in which a share of the pairs has other values."""
    bases = [plain_event(source) for _ in range(n_bases)]
    made = [
        {name: source.randrange(N_VALUES) if source.random() < replaced else value for name, value in base.items()}
        for base in bases
        for _ in range(n_copies)
    ]
    source.shuffle(made)
    return made
