"""Arrow batches in, Arrow batches out: what runs in a worker.

    body, attributes ─▶ documents ─▶ StandingFilters.match_many ─▶ numbers ─▶ ids ─┬─▶ a row for each match
                           └── malformed: the reason, in the column of errors     └─▶ an array for each document

Documents go through the engines a slice of a batch at a time, so that the answers of one slice stay in the caches and
what goes out stays small: a document may match thousands of subscriptions.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from boolmatch import Interval, Point
from pyspark_pathsieve.compiled import Part
from pyspark_pathsieve.shipping import ExtractorSettings, part_of
from sievefilters import AttributeValue, Given
from xpathfilter import DocumentError
from xpathfilter.document import parse_document

__all__ = ["Matched", "Matcher", "matched", "matched_arrays", "matched_rows"]

ROW_BYTES = 8 << 20
"""About how much of what is kept goes out at a time when there is a row for each match."""


@dataclass(frozen=True)
class Matcher:
    """How to match: which file, which columns, how many at a time. It travels to the workers."""

    name: str
    body: str
    attributes: str | None = None
    settings: ExtractorSettings = field(default_factory=ExtractorSettings)
    batch_documents: int = 64
    threads: int = 1

    def part(self) -> Part:
        return part_of(self.name, self.settings)

    def match(self, bodies: pa.Array, attributes: pa.Array | None) -> "Matched":
        """The answers for some documents."""
        part = self.part()
        documents = _documents(bodies, attributes)
        found = part.filters.match_many(documents, self.threads)
        errors: list[str | None] = [str(one) if isinstance(one, Exception) else None for one in found]
        for place in _empty(bodies):
            errors[place] = EMPTY
        numbers = [np.zeros(0, np.int64) if errors[place] else one for place, one in enumerate(found)]
        return Matched(part, numbers, errors)


@dataclass(frozen=True)
class Matched:
    """The numbers that want each document, and why some have none."""

    part: Part
    numbers: Sequence[Any]
    errors: Sequence[str | None]

    @property
    def counts(self) -> np.ndarray:
        return np.fromiter(map(len, self.numbers), np.int64, len(self.numbers))

    def ids(self) -> pa.Array:
        """The ids of all matches, document after document."""
        return self.part.ids.take(pa.array(self._places()))

    def placed_ids(self) -> pa.Array:
        """The same, each with its place among all subscriptions, of which this part may have a few."""
        places = self._places()
        columns = [pa.array(self.part.places[places]), self.part.ids.take(pa.array(places))]
        return pa.StructArray.from_arrays(columns, ["place", "id"])

    def _places(self) -> np.ndarray:
        return np.concatenate([np.zeros(0, np.int64), *self.numbers]) - 1

    def arrays(self, values: pa.Array) -> pa.Array:
        """Values of matches as an array for each document; null where there is an error."""
        offsets = np.zeros(len(self.numbers) + 1, np.int32)
        np.cumsum(self.counts, out=offsets[1:])
        bad = pa.array([error is not None for error in self.errors], pa.bool_())
        return pa.ListArray.from_arrays(pa.array(offsets), values, mask=bad)

    def error_column(self) -> pa.Array:
        return pa.array(self.errors, pa.string())


def matched_arrays(
    matcher: Matcher, kept: Sequence[str], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The kept columns, an array of ids and the error of each document."""
    for batch, found in matched(matcher, batches):
        columns = [*(batch.column(name) for name in kept), found.arrays(found.ids()), found.error_column()]
        yield pa.RecordBatch.from_arrays(columns, [*kept, "matches", "error"])


def matched_rows(
    matcher: Matcher, kept: Sequence[str], batches: Iterator[pa.RecordBatch], tells_errors: bool = True
) -> Iterator[pa.RecordBatch]:
    """The kept columns and one id for each match; a malformed document is one row without an id."""
    for batch, found in matched(matcher, batches):
        whole = batch.select(list(kept))
        rows = np.repeat(np.arange(len(batch)), found.counts)
        ids, step = found.ids(), _rows_at_a_time(whole)
        for first in range(0, len(rows), step):
            chosen = whole.take(pa.array(rows[first : first + step]))
            own = ids.slice(first, step)
            yield _with(chosen, kept, own, pa.nulls(len(own), pa.string()))
        bad = [place for place, error in enumerate(found.errors) if error is not None]
        if bad and tells_errors:
            chosen = whole.take(pa.array(bad, pa.int64()))
            yield _with(chosen, kept, pa.nulls(len(bad), ids.type), found.error_column().take(pa.array(bad)))


def _with(chosen: pa.RecordBatch, kept: Sequence[str], ids: pa.Array, errors: pa.Array) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([*chosen.columns, ids, errors], [*kept, "subscription", "error"])


def _rows_at_a_time(batch: pa.RecordBatch) -> int:
    bytes_each = batch.nbytes / max(1, len(batch)) + 16
    return max(1, int(ROW_BYTES / bytes_each))


def matched(matcher: Matcher, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[pa.RecordBatch, Matched]]:
    """Slices of the batches, and the answers for each."""
    for batch in batches:
        for first in range(0, len(batch), matcher.batch_documents):
            part = batch.slice(first, matcher.batch_documents)
            attributes = part.column(matcher.attributes) if matcher.attributes else None
            yield part, matcher.match(part.column(matcher.body), attributes)


# Documents


def _documents(bodies: pa.Array, attributes: pa.Array | None) -> list[Given]:
    texts = bodies.to_pylist()
    if attributes is None:
        return [Given(text or b"") for text in texts]
    return [Given(text or b"", _attributes(cell)) for text, cell in zip(texts, attributes.to_pylist(), strict=True)]


def _attributes(cell: Any) -> dict[str, AttributeValue]:
    """A struct is a mapping, a map a list of pairs; what is null is not there."""
    pairs = (cell.items() if isinstance(cell, Mapping) else cell) if cell else ()
    return {name: _value(value) for name, value in pairs if value is not None}


def _value(value: Any) -> AttributeValue:
    if isinstance(value, list):
        return [_single(one) for one in value if one is not None]
    return _single(value)


def _single(value: Any) -> Any:
    if isinstance(value, Mapping):
        return Point(value["x"], value["y"]) if "x" in value else Interval(value["low"], value["high"])
    return value


def _empty(bodies: pa.Array) -> list[int]:
    """The places of documents without a single byte, which are no XML; null is no document, and no mistake."""
    lengths = pa.compute.binary_length(bodies).to_numpy(zero_copy_only=False)
    return np.flatnonzero(lengths == 0).tolist()


def _told_of_empty() -> str:
    try:
        parse_document(b"")
    except DocumentError as error:
        return str(error)
    raise AssertionError("an empty document is none")


EMPTY = _told_of_empty()
