"""Plain documents by the batch: one kernel reads and matches many, and Python meets only what they found.

    documents  <a/> <b><?p?></b> <c/>      ──▶ one run of bytes, with a zero behind each
    ids        3 9 · 3                     ◀── match_batch: the ids that want <a/>, then those that want <c/>
    n_ids      2  -1  1                        -1: not plain, or too deep: it has to be matched alone

A kernel is handed some eighty arrays, which takes 11 us, and the way of one document through Python takes 5 more. Here
both are paid once for 64 documents. The segment is one of suffix families. Where lxml has the last word the kernel
stops, and goes on behind that document: it is parsed, but neither read nor matched again.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from sievecore.jit import kernel
from sievecore.snapshots import Layer
from xpathfilter.document import DocumentLimits, parse_document
from xpathfilter.flat_document import N_LEVELS, OK, grown, is_oversized, new_flat_document
from xpathfilter.plain_reader import read_plain, with_sentinel
from xpathfilter.reading import flat_documents
from xpathfilter.records import BLOCK_NODES
from xpathfilter.records import OK as RECORDS_OK
from xpathfilter.records import grown as grown_records
from xpathfilter.segment import PENDING, Segment, match_once

__all__ = ["matched_in_batches", "takes_batches"]

BATCH = 64
ROOM = 1 << 15
"""Ids after which a batch is handed over: what is still in the caches."""

ALONE, UNDECIDED = -1, -2
"""In place of a number of ids: to be matched alone; waits for lxml, and the scratch with it."""


class Batch(NamedTuple):
    """Documents, and what they found."""

    content: np.ndarray
    ends: np.ndarray  # of each document, its zero included
    ids: np.ndarray  # one after the other; there is always room for those of one more document
    n_ids: np.ndarray  # of each document, or ALONE, or UNDECIDED


def takes_batches(segment: Segment) -> bool:
    """Whether documents can be matched in batches against this segment."""
    return segment.algorithm.merging


def matched_in_batches(
    layer: Layer[Segment], documents: Sequence[Any], limits: DocumentLimits
) -> list[np.ndarray | None]:
    """The ids that want each document; None where it has to be matched alone."""
    found: list[np.ndarray | None] = []
    for first in range(0, len(documents), BATCH):
        found += _matched(layer, documents[first : first + BATCH], limits)
    return found


def _matched(layer: Layer[Segment], documents: Sequence[Any], limits: DocumentLimits) -> list[np.ndarray | None]:
    batch = _new_batch(documents, len(layer.segment))
    found: list[np.ndarray | None] = []
    with layer.segment.scratches.lend() as scratch:
        flat = flat_documents.take()
        if is_oversized(flat):
            flat = new_flat_document()
        while (first := len(found)) < len(documents):
            end, full_flat, full_records = match_batch(
                layer.segment.words,
                layer.segment.families,
                layer.segment.subscribers,
                layer.alive,
                batch,
                first,
                flat,
                scratch.records,
                scratch.walker,
                scratch.results,
                limits.max_bytes,
                limits.max_depth,
            )
            found += _results(batch, first, end)
            if full_flat != OK:
                flat = grown(flat, full_flat)
            if full_records != RECORDS_OK:
                scratch.records = grown_records(scratch.records, full_records)
            if end < len(documents) and batch.n_ids[end] == UNDECIDED:
                root = parse_document(documents[end], limits)
                found.append(layer.segment.verified_results(root, scratch, layer.alive))
        flat_documents.give_back(flat)
    return found


def _new_batch(documents: Sequence[Any], n_slots: int) -> Batch:
    texts = [with_sentinel(document) for document in documents]
    ends = np.cumsum([len(text) for text in texts])
    content = np.frombuffer(b"".join(texts), np.uint8)
    return Batch(content, ends, np.empty(n_slots + ROOM, np.int64), np.zeros(len(texts), np.int64))


def _results(batch: Batch, first: int, end: int) -> list[np.ndarray | None]:
    """What the documents from `first` on have found; whoever keeps some of it keeps that of all, and no more."""
    n_ids = batch.n_ids[first:end].tolist()
    ids, start = batch.ids[: sum(n for n in n_ids if n > 0)].copy(), 0
    found: list[np.ndarray | None] = []
    for n in n_ids:
        found.append(None if n == ALONE else ids[start : start + n])
        start += max(n, 0)
    return found


@kernel
def match_batch(
    words, families, subscribers, alive, batch, place, flat, records, walker, results, max_bytes, max_depth
):
    """Match from document `place` on; where it stopped, and if something was too small there, what."""
    end = 0
    while place < len(batch.ends) and end + len(subscribers.ids) <= len(batch.ids):
        start = batch.ends[place - 1] if place else 0
        code = read_plain(batch.content, start, batch.ends[place] - 1, flat, max_bytes, max_depth)
        if code >= 0:
            return place, code, RECORDS_OK
        n_ids = ALONE
        if code == OK and flat.counts[N_LEVELS] <= BLOCK_NODES:
            full, n_ids = match_once(words, families, subscribers, alive, flat, records, walker, results)
            if full != RECORDS_OK:
                return place, OK, full
            if n_ids == PENDING:
                batch.n_ids[place] = UNDECIDED
                return place, OK, RECORDS_OK
            for i in range(n_ids):
                batch.ids[end + i] = results.ids[i]
            end += n_ids
        batch.n_ids[place] = n_ids
        place += 1
    return place, OK, RECORDS_OK
