"""An index in one file: the arrays of a segment, and the names of what its predicates are about.

The attributes of the segment are numbered anew, from 0, so that a file does not depend on what else the index that
wrote it has met.
"""

import os
from typing import Any

import numpy as np

from boolmatch.expression import Within
from boolmatch.names import AttributeNames, Subject, XPathKey
from boolmatch.segment import Segment
from boolmatch.spaces import renumbered
from sievecore.storage import load_arrays, save_arrays

__all__ = ["load_segment", "save_segment"]

FILE_KIND = "boolmatch.index"
FILE_VERSION = 2


def save_segment(
    path: str | os.PathLike[str], segment: Segment, names: AttributeNames, algorithm: str, next_id: int
) -> None:
    """Write a segment and what an index needs to go on from it."""
    subjects = [names.subjects[number] for number in segment.filed.spaces.attributes.tolist()]
    filed = segment.filed._replace(spaces=renumbered(segment.filed.spaces, np.arange(len(subjects), dtype=np.int32)))
    metadata = {
        "algorithm": algorithm,
        "filed_by": segment.algorithm.name,
        "next_id": next_id,
        "subjects": [_written(subject) for subject in subjects],
        "denied": [subject in names.denied for subject in subjects],
    }
    save_arrays(path, FILE_KIND, FILE_VERSION, Segment(segment.algorithm, filed, segment.filing).arrays(), metadata)


def load_segment(path: str | os.PathLike[str], mmap: bool) -> tuple[Segment, AttributeNames, str, int]:
    """The segment, the names, the algorithm that was asked for and the next id."""
    arrays, metadata = load_arrays(path, FILE_KIND, FILE_VERSION, mmap=mmap)
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
