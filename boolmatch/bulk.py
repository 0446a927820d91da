"""The fast lane of `add_many`: plain texts are read by a kernel, the others one by one by the parser.

    price>100 AND symbol = 'IBM'       ──▶  two rows of columns
    size BETWEEN 1 AND 5               ──▶  one row
    price > 100 OR symbol = 'IBM'      ──▶  odd

Plain is a conjunction of comparisons of an unquoted ASCII name with a number or a string. Everything else is *odd*
and left to the caller: OR, NOT, IN, parentheses, a doubled quote, and all that is wrong, so that there is one parser
to say what is wrong with it.

The texts are joined in chunks and their bytes walked once (`plain_texts`). Names and strings are numbered on the way
and decoded once each. Texts of five predicates: about a million a second, against 20 thousand one by one.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from boolmatch.columns import PredicateColumns
from boolmatch.plain_texts import Rows, read_texts
from boolmatch.string_table import StringTable
from sievecore.breathing import breathe

__all__ = ["read_simple"]

CHUNK_TEXTS = 16_384
CHUNK_CHARACTERS = 1 << 21
SEPARATOR = "\0"


def read_simple(texts: Sequence[str]) -> tuple[PredicateColumns, np.ndarray]:
    """Return the columns of the plain texts, and the positions of those texts.

    >>> columns, positions = read_simple(["a > 5 AND b = 'x'", "NOT a"])
    >>> columns.names, columns.lows, positions
    (['a', 'b'], array([ 5., nan]), array([0]))
    """
    names, strings = StringTable(), StringTable()
    parts = [_new_rows(0, 0)]
    for first, last in _chunks(texts):
        parts.append(_read_chunk(texts[first:last], names, strings))
        breathe()
    rows = Rows(*(np.concatenate(column) for column in zip(*parts, strict=True)))
    positions = np.flatnonzero(rows.counts)
    columns = rows._replace(counts=rows.counts[positions])
    return PredicateColumns(*columns, names=names.strings(), texts=strings.strings()), positions


def _chunks(texts: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Cut the texts where there are many of them or much of them."""
    ends = np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)))
    first, done = 0, 0
    while first < len(texts):
        enough = int(np.searchsorted(ends, done + CHUNK_CHARACTERS))
        last = min(max(enough, first + 1), first + CHUNK_TEXTS, len(texts))
        yield first, last
        first, done = last, int(ends[last - 1])


def _read_chunk(texts: Sequence[str], names: StringTable, strings: StringTable) -> Rows:
    joined = SEPARATOR.join([*texts, "", ""])  # One NUL more: the kernel looks one letter ahead.
    if joined.count(SEPARATOR) != len(texts) + 1:  # A text with a NUL is odd, like an empty one.
        joined = SEPARATOR.join([*("" if SEPARATOR in text else text for text in texts), "", ""])
    text = np.frombuffer(joined.encode(errors="surrogatepass"), np.uint8)
    most = len(text) // len("a=1") + 1
    names.make_room(most, len(text))
    strings.make_room(most, len(text))
    rows = _new_rows(len(texts), most)
    n_rows = read_texts(text, np.flatnonzero(text == 0)[:-1], rows, names.arrays, strings.arrays)
    return Rows(rows.counts, *(column[:n_rows].copy() for column in rows[1:]))


def _new_rows(n_texts: int, n_rows: int) -> Rows:
    types = (np.int32, np.int8, np.float64, np.float64, np.int32, np.int32)
    return Rows(np.empty(n_texts, np.int32), *(np.empty(n_rows, of_type) for of_type in types))
