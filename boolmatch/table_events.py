"""Tables of events, a column an attribute: written to flat events without looking at values one by one.

    price    120.0   7.5          pairs of row 0: price 120, symbol IBM
    symbol   IBM     null         pairs of row 1: price 7.5

A column is a numpy array of numbers, booleans or strings, masked where a value is absent, or one of an Arrow table.
NaN is refused, like in a single event: a value that is absent is a null or masked.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from boolmatch.errors import EventError
from boolmatch.flat_events import BOOLEAN, NUMBER, PAIR, STRING, FlatEvents
from boolmatch.names import AttributeNames
from boolmatch.values import EXACT_INTEGERS, to_double, to_utf8

__all__ = ["columns_of", "rows_of", "write_table"]

Columns = dict[str, np.ma.MaskedArray]


class _Cells(NamedTuple):
    """One column as pairs have it."""

    kind: int
    numbers: np.ndarray
    texts: list[bytes]
    present: np.ndarray


def columns_of(table: Any) -> Columns:
    """The columns of a mapping of arrays or of an Arrow table, all of one length."""
    named = table if isinstance(table, Mapping) else _arrow_columns(table)
    columns = {str(name): _masked(str(name), column) for name, column in named.items()}
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"columns must be of one length, found {lengths}")
    return columns


def _arrow_columns(table: Any) -> dict[str, Any]:
    if not hasattr(table, "column_names"):
        raise TypeError(f"a table is an Arrow table or a mapping of numpy columns, not {type(table).__name__}")
    return {name: _from_arrow(table.column(name)) for name in table.column_names}


def _from_arrow(column: Any) -> np.ma.MaskedArray:
    absent = column.is_null().to_numpy()
    if str(column.type) in ("string", "large_string", "string_view") or str(column.type).startswith("dictionary"):
        return np.ma.array(np.array(column.to_pylist(), object), mask=absent)
    filled = column.fill_null(False if str(column.type) == "bool" else 0) if absent.any() else column
    return np.ma.array(filled.to_numpy(), mask=absent)


def _masked(name: str, column: Any) -> np.ma.MaskedArray:
    array = np.ma.asarray(column)
    if array.ndim != 1:
        raise ValueError(f"column {name!r} must have one dimension, found {array.ndim}")
    return array


def rows_of(columns: Columns) -> Iterator[dict[str, Any]]:
    """The rows as events."""
    cells = {name: column.tolist() for name, column in columns.items()}
    for row in zip(*cells.values(), strict=True):
        yield dict(zip(cells, row, strict=True))


def write_table(columns: Columns, names: AttributeNames) -> FlatEvents | None:
    """The rows as flat events; None if a column has values that only a closer look can tell apart."""
    n_rows = len(next(iter(columns.values()), ()))
    cells: dict[int, _Cells] = {}
    for name, column in columns.items():
        found = _cells(name, column)
        if found is None:
            return None
        if name in names.numbers:
            cells[names.numbers[name]] = found
    return _interleaved(cells, n_rows)


def _cells(name: str, column: np.ma.MaskedArray) -> _Cells | None:
    present = ~np.ma.getmaskarray(column)
    values = np.ma.getdata(column)
    if values.dtype.kind == "b":
        return _Cells(BOOLEAN, values.astype(np.float64), [], present)
    if values.dtype.kind in "iuf":
        return _Cells(NUMBER, _doubles(name, values, present), [], present)
    if values.dtype.kind == "O":
        present = present & np.array([value is not None for value in values], np.bool_)
        if not all(isinstance(value, str) for value in values[present]):
            return None
    elif values.dtype.kind != "U":
        raise EventError(name, f"a column of {values.dtype} cannot be matched", "expected numbers, booleans or strings")
    texts = [_converted(to_utf8, name, row, str(values[row])) for row in np.flatnonzero(present).tolist()]
    return _Cells(STRING, np.zeros(len(values)), texts, present)


def _doubles(name: str, values: np.ndarray, present: np.ndarray) -> np.ndarray:
    doubles = values.astype(np.float64)
    odd = np.isnan(doubles) if values.dtype.kind == "f" else np.abs(doubles) >= EXACT_INTEGERS
    for row in np.flatnonzero(odd & present).tolist():
        _converted(to_double, name, row, values[row].item())
    return doubles


def _converted(convert: Callable[[Any, str], Any], name: str, row: int, value: Any) -> Any:
    """The value converted, or an error that tells the row."""
    try:
        return convert(value, name)
    except EventError as error:
        raise EventError(name, error.reason, error.hint, row) from None


def _interleaved(cells: dict[int, _Cells], n_rows: int) -> FlatEvents:
    """Columns side by side, read row by row, without what is absent."""
    present = np.stack([column.present for column in cells.values()], axis=1) if cells else np.zeros((n_rows, 0), bool)
    shape = present.shape
    pairs = np.zeros(int(present.sum()), PAIR)
    pairs["attribute"] = np.broadcast_to(np.array(list(cells), np.int32), shape)[present]
    pairs["kind"] = np.broadcast_to(np.array([column.kind for column in cells.values()], np.int32), shape)[present]
    if cells:
        pairs["low"] = np.stack([column.numbers for column in cells.values()], axis=1)[present]
    pairs["high"] = pairs["low"]
    text = _place_texts(pairs, cells)
    start = np.concatenate([[0], np.cumsum(present.sum(axis=1))]).astype(np.int64)
    return FlatEvents(start, pairs, text)


def _place_texts(pairs: np.ndarray, cells: dict[int, _Cells]) -> np.ndarray:
    parts, end = [b""], 0
    for number, column in cells.items():
        if column.texts:
            ends = end + np.cumsum(np.fromiter(map(len, column.texts), np.int64, len(column.texts)))
            own = pairs["attribute"] == number
            pairs["text_end"][own] = ends
            pairs["text_start"][own] = np.concatenate([[end], ends[:-1]])
            parts.append(b"".join(column.texts))
            end = int(ends[-1])
    return np.frombuffer(b"".join(parts) or b"\0", np.uint8)
