"""From record batches to documents, row by row.

    RecordBatch ─▶ columns ─▶ Row(number, document)        or what is wrong with it, in place of the document
                                  └── where it came from, so that the row as it was can be kept

Null means "not given": no id, no source, no header or attribute of that name. A null body is fine where there are
attributes; without any there would be nothing to match.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from pathsieve import Document, Interval, Point
from pathsieve.documents import to_document
from pyspark_pathsieve.columns import Columns

__all__ = ["Row", "rows_of"]

Values = Mapping[str, Any]


@dataclass(slots=True, eq=False)
class Row:
    """One row of a partition, counted from 0; if it makes no document, `problem` says why."""

    number: int
    batch: pa.RecordBatch
    place: int
    document: Document
    problem: Exception | None = None


def rows_of(batches: Iterable[pa.RecordBatch], columns: Columns, source: str = "") -> Iterator[Row]:
    """All rows, in order; `source` is for those that have none of their own."""
    number = 0
    for batch in batches:
        for place, fields in enumerate(_fields(batch, columns)):
            yield _row(number, batch, place, fields, source)
            number += 1


def _fields(batch: pa.RecordBatch, columns: Columns) -> Iterator[tuple[Any, ...]]:
    """Of each row: body, id, source, headers, attributes."""
    names = columns.body, columns.id, columns.source, columns.headers, columns.attributes
    nothing = [None] * batch.num_rows
    lists = [nothing if name is None else _values(batch.column(name)) for name in names]
    return zip(*lists, strict=True)


def _values(column: pa.Array) -> list[Any]:
    """As Python has them; a map is a list of pairs."""
    return column.to_pylist()


def _row(number: int, batch: pa.RecordBatch, place: int, fields: tuple[Any, ...], source: str) -> Row:
    body, document_id, own_source, headers, attributes = fields
    named = "" if document_id is None else str(document_id)
    try:
        document = Document(
            b"" if body is None else body,
            id=named,
            source=source if own_source is None else own_source,
            headers=_pairs(headers),
            attributes={name: _value(value) for name, value in _pairs(attributes).items()},
        )
        if document.attributes:
            to_document(document)  # an attribute that cannot travel is told here, of this row alone
        elif not document.xml:
            raise ValueError("expected a body, or attributes, found neither")
    except (TypeError, ValueError, LookupError) as problem:
        return Row(number, batch, place, Document(id=named), problem)
    return Row(number, batch, place, document)


def _pairs(found: Values | list[tuple[str, Any]] | None) -> dict[str, Any]:
    """What a struct or a map has, without nulls."""
    pairs = found.items() if isinstance(found, Mapping) else found or ()
    return {name: value for name, value in pairs if value is not None}


def _value(value: Any) -> Any:
    """A value as documents have it.

    >>> _value([{"x": 13.4, "y": 52.5}, None, 7])
    [Point(x=13.4, y=52.5), 7]
    """
    match value:
        case list():
            return [_value(one) for one in value if one is not None]
        case {"x": x, "y": y}:
            return Point(x, y)
        case {"low": low, "high": high}:
            return Interval(low, high)
    return value
