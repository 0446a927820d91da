"""Many texts in one array of bytes, as kernels read them.

content  I B M A A P L        start  0 3 7        text i is content[start[i]:start[i + 1]], in UTF-8
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from sievecore.breathing import breathing
from sievecore.hashing import SEED, hash_bytes, new_slots, same_bytes
from sievecore.jit import builder, kernel
from sievecore.rows import offsets

__all__ = ["Texts", "chosen_texts", "concatenate_texts", "distinct_texts", "new_texts", "text_at"]


class Texts(NamedTuple):
    """See the module."""

    content: np.ndarray
    start: np.ndarray


def new_texts(texts: Iterable[str]) -> Texts:
    """The texts, encoded and joined."""
    encoded = [text.encode() for text in breathing(texts)]
    content = np.frombuffer(bytearray().join(encoded), np.uint8)
    return _joined(content, np.fromiter(map(len, encoded), np.int64, len(encoded)))


def concatenate_texts(parts: list[Texts]) -> Texts:
    """All texts of all parts, in order."""
    lengths = np.concatenate([part.start[1:] - part.start[:-1] for part in parts])
    return _joined(np.concatenate([part.content[: part.start[-1]] for part in parts]), lengths)


def chosen_texts(texts: Texts, chosen: np.ndarray) -> Texts:
    """Some of the texts, in the order chosen."""
    lengths = (texts.start[1:] - texts.start[:-1])[chosen]
    kept = _joined(np.empty(int(lengths.sum()), np.uint8), lengths)
    _copy_texts(texts, chosen, kept)
    return kept


def distinct_texts(texts: Texts) -> tuple[np.ndarray, np.ndarray]:
    """The first of each kind of text, and for each text which of those it equals."""
    number = np.empty(len(texts.start) - 1, np.int32)
    return _number_texts(texts, new_slots(len(number)), number), number


def text_at(texts: Texts, number: int) -> bytes:
    """The bytes of one text."""
    return texts.content[texts.start[number] : texts.start[number + 1]].tobytes()


def _joined(content: np.ndarray, lengths: np.ndarray) -> Texts:
    """Never without a byte: an empty array cannot be mapped from a file."""
    return Texts(content if len(content) else np.zeros(1, np.uint8), offsets(lengths))


@builder
def _number_texts(texts, slots, number):
    first = np.empty(len(number), np.int32)
    n_distinct = 0
    mask = np.uint64(len(slots) - 1)
    content, start = texts.content, texts.start
    for i in range(len(number)):
        place = hash_bytes(content, start[i], start[i + 1], SEED) & mask
        while slots[place] >= 0:
            known = first[slots[place]]
            if same_bytes(content, start[known], start[known + 1], content, start[i], start[i + 1]):
                break
            place = (place + np.uint64(1)) & mask
        if slots[place] < 0:
            slots[place] = n_distinct
            first[n_distinct] = i
            n_distinct += 1
        number[i] = slots[place]
    return first[:n_distinct].copy()


@kernel
def _copy_texts(texts, chosen, target):
    for i in range(len(chosen)):
        source = texts.start[chosen[i]]
        for j in range(target.start[i], target.start[i + 1]):
            target.content[j] = texts.content[source + j - target.start[i]]
