"""Boolean subscriptions and events to measure with: random, but the same for everybody.

    topic             a3 = 17   a8 = 40   a21 = 5   a77 = 63 …     as many pairs as an event has
      ├─▶ subscription    a8 >= 31 AND a21 = 5 AND a77 BETWEEN 50 AND 69
      └─▶ event           {a3: 17, a8: 2, a21: 5, a77: 63, …}      every pair, some with another value

Every event is made from a topic, and so is half of the subscriptions; the other half is made of pairs at random. Thus
the number of topics decides how many subscriptions an event matches. The shapes are those of the literature:

    dense, sparse, ads    PS-Tree (Ji and Jacobsen): few attributes, very many, and those of an advertising exchange
    apcm                  A-PCM (Sadoghi and Jacobsen): events in batches, copies of each other with some pairs replaced
    near-miss             all equalities hold, and a wide range at the end does not: access predicates find candidates,
                          and each has to be read to its end
    wide, zipf            ranges of half the domain and more; a few attributes that everybody uses

The first n subscriptions and events are the same whatever comes after them.
"""

from dataclasses import dataclass, replace
from itertools import islice
from typing import NamedTuple

import numpy as np

from boolmatch.columns import Operator, PredicateColumns

__all__ = ["BATCH", "SHAPES", "BooleanWorkload", "Event", "Shape"]

PLANTED = 0.5
NOISE = 0.03
"""How many of an event's pairs have another value than its topic."""
BATCH = 1024
CHUNK = 1 << 14

TOPICS, SUBSCRIPTIONS, EVENTS = range(3)
TEMPLATES = {
    Operator.EQUAL: "{} = {}",
    Operator.LESS_EQUAL: "{} <= {}",
    Operator.GREATER_EQUAL: "{} >= {}",
    Operator.BETWEEN: "{} BETWEEN {} AND {}",
}

Event = dict[str, int]


@dataclass(frozen=True)
class Shape:
    """What a workload is like; predicates that are neither equalities nor one-sided are ranges as wide as `widths`."""

    n_attributes: int = 100
    n_values: int = 100
    n_predicates: tuple[int, int] = (5, 5)
    n_pairs: int = 30
    equality: float = 0.2
    one_sided: float = 0.4
    widths: tuple[float, float] = (0.2, 0.2)
    match: float = 0.001
    """How many of the subscriptions an event matches, before copies of it are made."""
    zipf: float = 0.0
    near_miss: float = 0.0
    """How many of the subscriptions made from topics fail by their last predicate, which then is one-sided for all."""
    n_copies: int = 1
    """How often an event is repeated in its batch, each time with this share of its pairs replaced:"""
    replaced: float = 0.0

    @property
    def n_topics(self) -> int:
        fewest, most = self.n_predicates
        undisturbed = np.mean([(1 - NOISE) ** n for n in range(fewest, most + 1)])
        return max(1, round(PLANTED * (1 - self.near_miss) * float(undisturbed) / self.match))

    @property
    def weights(self) -> np.ndarray:
        """How likely each attribute is, relative to the others."""
        return 1.0 / np.arange(1, self.n_attributes + 1) ** self.zipf


DENSE = Shape()
SHAPES = {
    "dense": DENSE,
    "ads": Shape(
        n_attributes=122,
        n_values=1000,
        n_predicates=(4, 12),
        n_pairs=20,
        equality=0.8,
        one_sided=0.1,
        widths=(0.12, 0.12),
        zipf=0.5,
    ),
    "sparse": replace(DENSE, n_attributes=30_000),
    "apcm": Shape(
        n_attributes=128,
        n_values=48,
        n_predicates=(7, 7),
        n_pairs=15,
        equality=0.4,
        one_sided=0.0,
        widths=(0.12, 0.12),
        match=0.01,
        n_copies=16,
        replaced=0.3,
    ),
    "near-miss": replace(DENSE, equality=1.0, one_sided=0.0, near_miss=0.95),
    "wide": replace(DENSE, equality=0.0, one_sided=0.0, widths=(0.5, 0.9)),
    "zipf": replace(DENSE, zipf=1.0),
}


class Pairs(NamedTuple):
    """Attributes and their values, a row for each topic, subscription or event; no attribute twice in a row."""

    attributes: np.ndarray
    values: np.ndarray


class Predicates(NamedTuple):
    """Predicates one after the other, and how many each subscription has."""

    counts: np.ndarray
    attributes: np.ndarray
    operators: np.ndarray
    lows: np.ndarray
    highs: np.ndarray


class BooleanWorkload:
    def __init__(self, shape: Shape, seed: int = 1) -> None:
        self.shape, self._seed = shape, seed
        self.names = [f"a{number}" for number in range(shape.n_attributes)]
        self._topics = self._pairs(self._random(TOPICS), shape.n_topics, shape.n_pairs)

    def columns(self, n: int, after: int = 0) -> PredicateColumns:
        """`n` subscriptions, from the one numbered `after` on."""
        counts, attributes, operators, lows, highs = self._predicates(n, after)
        no_texts = np.full(len(attributes), -1, np.int32)
        return PredicateColumns(counts, attributes, operators, lows, highs, no_texts, no_texts, self.names, [])

    def texts(self, n: int, after: int = 0) -> list[str]:
        """The same subscriptions as texts."""
        counts, *predicates = (column.tolist() for column in self._predicates(n, after))
        written = (
            TEMPLATES[operator].format(self.names[attribute], int(low), int(high))
            for attribute, operator, low, high in zip(*predicates, strict=True)
        )
        return [" AND ".join(islice(written, count)) for count in counts]

    def events(self, n: int) -> list[Event]:
        attributes, values = (column.tolist() for column in self._event_pairs(n))
        names = self.names
        return [
            {names[attribute]: value for attribute, value in zip(*row, strict=True)}
            for row in zip(attributes, values, strict=True)
        ]

    def table(self, n: int) -> dict[str, np.ma.MaskedArray]:
        """The same events as columns, masked where an event does not have the attribute."""
        attributes, values = self._event_pairs(n)
        used, column_of = np.unique(attributes, return_inverse=True)
        cells = np.ma.masked_all((len(used), n), np.int64)
        cells[column_of.reshape(attributes.shape), np.arange(n)[:, None]] = values
        return {self.names[attribute]: cells[column] for column, attribute in enumerate(used.tolist())}

    def _random(self, *what: int) -> np.random.Generator:
        return np.random.default_rng([self._seed, *what])

    def _pairs(self, random: np.random.Generator, n: int, n_each: int) -> Pairs:
        """Pairs that have to do with no topic."""
        drawn = _distinct(random, n, n_each, self.shape.weights)
        return Pairs(drawn, random.integers(0, self.shape.n_values, drawn.shape, np.int32))

    def _predicates(self, n: int, after: int) -> Predicates:
        first = after // CHUNK
        chunks = [self._chunk(self._random(SUBSCRIPTIONS, number)) for number in range(first, -(-(after + n) // CHUNK))]
        joined = [np.concatenate(columns) for columns in zip(*chunks, strict=True)]
        start = np.concatenate([[0], np.cumsum(joined[0])])
        skipped = after - first * CHUNK
        rows = slice(start[skipped], start[skipped + n])
        return Predicates(joined[0][skipped : skipped + n], *(column[rows] for column in joined[1:]))

    def _chunk(self, random: np.random.Generator) -> Predicates:
        fewest, most = self.shape.n_predicates
        planted = random.random(CHUNK) < PLANTED
        attributes, values = self._pairs(random, CHUNK, most)
        attributes[planted], values[planted] = self._topic_pairs(random, np.count_nonzero(planted), most)
        operators, lows, highs = _comparisons(random, values, self.shape)
        if self.shape.near_miss:
            missing = planted & (random.random(CHUNK) < self.shape.near_miss)
            operators[:, -1], lows[:, -1] = _last_predicates(random, values[:, -1], missing, self.shape.n_values)
            highs[:, -1] = lows[:, -1]
        counts = random.integers(fewest, most + 1, CHUNK, np.int32)
        used = np.arange(most) < counts[:, None]
        return Predicates(counts, *(column[used] for column in (attributes, operators, lows, highs)))

    def _topic_pairs(self, random: np.random.Generator, n: int, n_each: int) -> Pairs:
        """Some pairs of a topic, in each row of another one."""
        topics = random.integers(0, self.shape.n_topics, n)[:, None]
        chosen = _distinct(random, n, n_each, np.ones(self.shape.n_pairs))
        return Pairs(self._topics.attributes[topics, chosen], self._topics.values[topics, chosen])

    def _event_pairs(self, n: int) -> Pairs:
        batches = [self._batch(self._random(EVENTS, number)) for number in range(-(-n // BATCH))]
        return Pairs(*(np.concatenate(columns)[:n] for columns in zip(*batches, strict=True)))

    def _batch(self, random: np.random.Generator) -> Pairs:
        shape = self.shape
        topics = random.integers(0, shape.n_topics, BATCH // shape.n_copies)
        attributes, values = self._topics.attributes[topics], self._topics.values[topics].copy()
        noisy = random.random(values.shape) < NOISE
        values[noisy] = random.integers(0, shape.n_values, np.count_nonzero(noisy))
        if shape.n_copies == 1:
            return Pairs(attributes, values)
        copies = Pairs(*(np.repeat(column, shape.n_copies, axis=0) for column in (attributes, values)))
        mixed = random.permutation(BATCH)
        return Pairs(*(column[mixed] for column in self._partly_replaced(random, copies)))

    def _partly_replaced(self, random: np.random.Generator, pairs: Pairs) -> Pairs:
        """The pairs, some of each row replaced; those that are kept come first."""
        new = random.random(pairs.values.shape) < self.shape.replaced
        kept_first = np.argsort(new, axis=1, kind="stable")
        attributes, values, new = (np.take_along_axis(column, kept_first, axis=1) for column in (*pairs, new))
        limits = np.cumsum(self.shape.weights)
        attributes = np.where(new, _draw(random, limits, new.shape), attributes)
        values = np.where(new, random.integers(0, self.shape.n_values, new.shape, np.int32), values)
        return Pairs(_without_repeats(random, attributes, limits), values)


def _distinct(random: np.random.Generator, n: int, n_each: int, weights: np.ndarray) -> np.ndarray:
    """Rows of distinct numbers, the likelier ones drawn more often."""
    limits = np.cumsum(weights)
    return _without_repeats(random, _draw(random, limits, (n, n_each)), limits)


def _without_repeats(random: np.random.Generator, drawn: np.ndarray, limits: np.ndarray) -> np.ndarray:
    """The rows, with what stands before it already drawn again until it does not."""
    rows = np.arange(len(drawn))
    while len(rows):
        row, column = np.nonzero(_repeats(drawn[rows]))
        drawn[rows[row], column] = _draw(random, limits, len(row))
        rows = rows[np.unique(row)]
    return drawn


def _draw(random: np.random.Generator, limits: np.ndarray, size: int | tuple[int, ...]) -> np.ndarray:
    return np.searchsorted(limits, random.random(size) * limits[-1], "right").astype(np.int32)


def _repeats(rows: np.ndarray) -> np.ndarray:
    """Where a number stands before it in its row already."""
    order = np.argsort(rows, axis=1, kind="stable")
    ascending = np.take_along_axis(rows, order, axis=1)
    repeats = np.zeros(rows.shape, np.bool_)
    np.put_along_axis(repeats, order[:, 1:], ascending[:, 1:] == ascending[:, :-1], axis=1)
    return repeats


def _comparisons(
    random: np.random.Generator, values: np.ndarray, shape: Shape
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Operators, lows and highs of predicates that hold for the values."""
    kind = random.random(values.shape)
    operators = np.full(values.shape, Operator.EQUAL, np.int8)
    lows, highs = values.astype(np.float64), values.astype(np.float64)
    one_sided = (kind >= shape.equality) & (kind < shape.equality + shape.one_sided)
    operators[one_sided], lows[one_sided] = _one_sided(random, values[one_sided], shape.n_values)
    highs[one_sided] = lows[one_sided]
    between = kind >= shape.equality + shape.one_sided
    operators[between] = Operator.BETWEEN
    lows[between], highs[between] = _ranges(random, values[between], shape)
    return operators, lows, highs


def _one_sided(random: np.random.Generator, values: np.ndarray, n_values: int) -> tuple[np.ndarray, np.ndarray]:
    """Operators and constants of ranges from an end of the domain to somewhere beyond the values."""
    upwards = random.random(len(values)) < 0.5
    constants = np.where(upwards, random.integers(0, values + 1), random.integers(values, n_values))
    return np.where(upwards, Operator.GREATER_EQUAL, Operator.LESS_EQUAL), constants


def _last_predicates(
    random: np.random.Generator, values: np.ndarray, missing: np.ndarray, n_values: int
) -> tuple[np.ndarray, np.ndarray]:
    """Operators and constants of ranges that hold for the values, or just not where they are to be missing."""
    ends, beside = _one_sided(random, values, n_values), _just_beside(random, values, n_values)
    return np.where(missing, beside[0], ends[0]), np.where(missing, beside[1], ends[1])


def _just_beside(random: np.random.Generator, values: np.ndarray, n_values: int) -> tuple[np.ndarray, np.ndarray]:
    """Operators and constants of ranges from the farther end of the domain to just before the values."""
    upper = values >= n_values // 2
    n_before = np.where(upper, values, n_values - 1 - values)
    gaps = random.integers(1, n_before // 4 + 2)
    constants = np.where(upper, values - gaps, values + gaps)
    return np.where(upper, Operator.LESS_EQUAL, Operator.GREATER_EQUAL), constants


def _ranges(random: np.random.Generator, values: np.ndarray, shape: Shape) -> tuple[np.ndarray, np.ndarray]:
    """The ends of ranges that hold the values, as wide as the shape says."""
    widths = np.rint(random.uniform(*shape.widths, len(values)) * shape.n_values).astype(np.int64)
    lows = np.clip(values - random.integers(0, widths), 0, shape.n_values - widths)
    return lows, lows + widths - 1
