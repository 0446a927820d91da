"""Sets of tokens as bits: on the wire, and to see what is still missing.

tokens 0 and 9 of 16  ──▶  10000000 01000000
"""

from collections.abc import Iterable

import numpy as np

from server.subscriptions import N_TOKENS

__all__ = ["bits_of", "from_bytes", "no_tokens", "to_bytes"]


def no_tokens() -> np.ndarray:
    return np.zeros(N_TOKENS, np.bool_)


def bits_of(tokens: Iterable[int]) -> np.ndarray:
    """A mask of all tokens with these set.

    >>> np.flatnonzero(from_bytes(to_bytes(bits_of([0, 9])))).tolist()
    [0, 9]
    """
    mask = no_tokens()
    mask[list(tokens)] = True
    return mask


def to_bytes(mask: np.ndarray) -> bytes:
    return np.packbits(mask).tobytes()


def from_bytes(code: bytes) -> np.ndarray:
    return np.unpackbits(np.frombuffer(code, np.uint8)).astype(np.bool_)[:N_TOKENS]
