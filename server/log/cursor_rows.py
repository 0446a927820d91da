"""Cursors in the store: pages of 1024 subscriptions, a column each, and the leftovers of the few that have some.

page   floors    floor_positions    gone        number   state
0      coded     coded              coded       17       JSON
"""

from collections.abc import Sequence

import numpy as np

from server.log.number_codes import pack
from server.store.databases import Connection, Row, placeholders

__all__ = ["COLUMNS", "read", "write"]

COLUMNS = ("floors", "floor_positions", "gone")
ROWS_AT_ONCE = 500


def read(connection: Connection) -> tuple[list[Row], list[Row]]:
    pages = connection.execute(f"SELECT page, {', '.join(COLUMNS)} FROM cursor_pages")
    return pages, connection.execute("SELECT number, state FROM leftovers")


def write(
    connection: Connection, pages: np.ndarray, columns: Sequence[np.ndarray], leftovers: list[tuple[int, str]]
) -> None:
    """Whole pages, and the leftovers of some numbers; those without any are deleted."""
    rows = [(page, *(pack(column[row]) for column in columns)) for row, page in enumerate(pages.tolist())]
    _replace(connection, "cursor_pages", ("page", *COLUMNS), rows)
    _replace(connection, "leftovers", ("number", "state"), leftovers)


def _replace(connection: Connection, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
    """Rows by their first column; one whose last column is empty is only deleted."""
    for start in range(0, len(rows), ROWS_AT_ONCE):
        keys = [row[0] for row in rows[start : start + ROWS_AT_ONCE]]
        connection.execute(f"DELETE FROM {table} WHERE {columns[0]} IN ({placeholders(len(keys))})", keys)
    connection.insert(table, columns, [row for row in rows if row[-1]])
