"""Events as arrays: what every segment and every thread reads, written once a batch.

    {"price": 120, "symbol": ["IBM", "I"]}, {"price": Interval(1, 9)}

    start   0 3 4          pairs   attribute  kind     low  high  text
    text    I B M I           0    price      NUMBER   120   120
                              1    symbol     STRING               0:3
                              2    symbol     STRING               3:4
                              3    price      NUMBER     1     9

Only attributes that some subscription names have pairs; several values of one attribute stand side by side. Atoms
that were decided outside, WITHIN and XPATH, are pairs with a truth value.
"""

from typing import NamedTuple

import numpy as np

from sievecore.tables import columns

__all__ = ["BOOLEAN", "NUMBER", "OTHER", "PAIR", "STRING", "FlatEvents"]

OTHER, BOOLEAN, NUMBER, STRING = range(1, 5)

PAIR = columns("attribute", "kind", "text_start", "text_end", low=np.float64, high=np.float64)


class FlatEvents(NamedTuple):
    """Event i is pairs[start[i]:start[i + 1]]."""

    start: np.ndarray
    pairs: np.ndarray
    text: np.ndarray

    @property
    def n_events(self) -> int:
        return len(self.start) - 1
