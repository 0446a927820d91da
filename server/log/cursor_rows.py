"""Cursors in the store: pages of 1024 subscriptions that share a token, and the leftovers of the few that have some.

token   page   floors    floor_positions    gone        number   state
5       0      coded     coded              coded       17       JSON

The token of a number is `number % N_TOKENS`: replicas share the subscriptions by it, and each writes pages of its own.
Page 0 of token 5 has the numbers 5, 261, 517, ...
"""

from collections.abc import Sequence

import numpy as np

from server.log.number_codes import pack, unpack
from server.store.databases import Connection, Row, placeholders

__all__ = ["BLOCK", "COLUMNS", "N_TOKENS", "PAGE", "convert", "paged", "pages_of", "read", "write"]

PAGE = 1024
N_TOKENS = 256
BLOCK = PAGE * N_TOKENS
"""An array of cursors has room for whole blocks: one page of each token."""

COLUMNS = ("floors", "floor_positions", "gone")
ROWS_AT_ONCE = 500


def pages_of(numbers: np.ndarray) -> np.ndarray:
    """The page of each number, counted over all tokens: page 1 of token 5 is N_TOKENS + 5."""
    return numbers // BLOCK * N_TOKENS + numbers % N_TOKENS


def paged(array: np.ndarray) -> np.ndarray:
    """A view of an array of cursors, page by page: [place in the page, page]."""
    return array.reshape(-1, PAGE, N_TOKENS).swapaxes(0, 1).reshape(PAGE, -1)


def read(connection: Connection, tokens: Sequence[int]) -> tuple[list[Row], list[Row]]:
    """(page over all tokens, columns) and (number, state) of some tokens."""
    pages: list[Row] = []
    wanted = set(tokens)
    for start in range(0, len(tokens), ROWS_AT_ONCE):
        some = tokens[start : start + ROWS_AT_ONCE]
        sql = f"SELECT token, page, {', '.join(COLUMNS)} FROM cursors WHERE token IN ({placeholders(len(some))})"
        pages += [(page * N_TOKENS + token, *codes) for token, page, *codes in connection.execute(sql, some)]
    leftovers = connection.execute("SELECT number, state FROM leftovers")
    return pages, [row for row in leftovers if row[0] % N_TOKENS in wanted]


def write(
    connection: Connection, pages: np.ndarray, columns: Sequence[np.ndarray], leftovers: list[tuple[int, str]]
) -> None:
    """Whole pages, a row of each column, and the leftovers of some numbers; those without any are deleted."""
    for page in pages.tolist():
        connection.execute("DELETE FROM cursors WHERE token = ? AND page = ?", (page % N_TOKENS, page // N_TOKENS))
    rows = [
        (page % N_TOKENS, page // N_TOKENS, *(pack(column[row]) for column in columns))
        for row, page in enumerate(pages.tolist())
    ]
    connection.insert("cursors", ("token", "page", *COLUMNS), rows)
    for start in range(0, len(leftovers), ROWS_AT_ONCE):
        numbers = [number for number, _ in leftovers[start : start + ROWS_AT_ONCE]]
        connection.execute(f"DELETE FROM leftovers WHERE number IN ({placeholders(len(numbers))})", numbers)
    connection.insert("leftovers", ("number", "state"), [row for row in leftovers if row[1]])


def convert(connection: Connection) -> None:
    """Cursors of an older store, in pages of numbers in a row, become pages of tokens."""
    old = connection.execute(f"SELECT page, {', '.join(COLUMNS)} FROM cursor_pages")
    if not old:
        return
    n_blocks = max(row[0] for row in old) * PAGE // BLOCK + 1
    arrays = [np.zeros(n_blocks * BLOCK, np.int64) for _ in COLUMNS]
    for page, *codes in old:
        for array, code in zip(arrays, codes, strict=True):
            array[page * PAGE : (page + 1) * PAGE] = unpack(code, PAGE)
    pages = np.unique(pages_of(np.flatnonzero(np.logical_or.reduce(arrays))))
    write(connection, pages, [paged(array)[:, pages].T for array in arrays], [])
    connection.execute("DELETE FROM cursor_pages")
