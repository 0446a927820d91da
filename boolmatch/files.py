"""An index in one file: the arrays of a segment, and the names of what its predicates are about.

The attributes of the segment are numbered anew, from 0, so that a file does not depend on what else the index that
wrote it has met.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from boolmatch.expression import Within
from boolmatch.names import AttributeNames, Subject, XPathKey
from boolmatch.segment import Segment
from boolmatch.spaces import renumbered

__all__ = ["FILE_KIND", "FILE_VERSION", "Stored", "segment_from_stored", "stored_segment"]

FILE_KIND = "boolmatch.index"
FILE_VERSION = 2

Stored = tuple[dict[str, np.ndarray], dict[str, Any]]


def stored_segment(segment: Segment, names: AttributeNames, algorithm: str, next_id: int) -> Stored:
    """The arrays of a segment and, as metadata, what an index needs to go on from it."""
    subjects = [names.subjects[number] for number in segment.filed.spaces.attributes.tolist()]
    filed = segment.filed._replace(spaces=renumbered(segment.filed.spaces, np.arange(len(subjects), dtype=np.int32)))
    metadata = {
        "algorithm": algorithm,
        "filed_by": segment.algorithm.name,
        "next_id": next_id,
        "subjects": [_written(subject) for subject in subjects],
        "denied": [subject in names.denied for subject in subjects],
    }
    return Segment(segment.algorithm, filed, segment.filing).arrays(), metadata


def segment_from_stored(
    arrays: Mapping[str, np.ndarray], metadata: Mapping[str, Any]
) -> tuple[Segment, AttributeNames, str, int]:
    """The segment, the names, the algorithm that was asked for and the next id."""
    subjects = [_read(entry) for entry in metadata["subjects"]]
    names = AttributeNames(subjects)
    names.denied |= {subject for subject, is_denied in zip(subjects, metadata["denied"], strict=True) if is_denied}
    return Segment.from_arrays(metadata["filed_by"], arrays), names, metadata["algorithm"], metadata["next_id"]


def _written(subject: Subject) -> Any:
    match subject:
        case Within(attribute, polygon):
            return {"within": [attribute, polygon]}
        case XPathKey(key, text):
            return {"xpath": [key, text]}
    return subject


def _read(entry: Any) -> Subject:
    match entry:
        case {"within": [attribute, polygon]}:
            return Within(attribute, polygon)
        case {"xpath": [key, text]}:
            return XPathKey(key, text)
    return str(entry)
