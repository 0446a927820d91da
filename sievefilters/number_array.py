"""A growing array of int64: element i is 0 until it is put, and may be asked for before it exists.

Readers in other threads take from whichever array is current; growing copies it, and one reference is swapped.
"""

import threading

import numpy as np

__all__ = ["NumberArray"]

FIRST_SIZE = 1024


class NumberArray:
    """
    >>> owners = NumberArray()
    >>> owners.put(3, 42)
    >>> owners.take(np.array([2, 3, 1_000_000])).tolist()
    [0, 42, 0]
    """

    def __init__(self, values: np.ndarray | None = None) -> None:
        self._values = np.zeros(FIRST_SIZE, np.int64) if values is None else values
        self._lock = threading.Lock()

    def put(self, index: int, value: int) -> None:
        with self._lock:
            self._reach(index)
            self._values[index] = value

    def put_many(self, indices: np.ndarray, values: np.ndarray) -> None:
        with self._lock:
            self._reach(int(indices.max(initial=0)))
            self._values[indices] = values

    def _reach(self, index: int) -> None:
        if index >= len(self._values):
            grown = np.zeros(max(2 * len(self._values), index + 1), np.int64)
            grown[: len(self._values)] = self._values
            self._values = grown

    def take(self, indices: np.ndarray) -> np.ndarray:
        values = self._values
        if not len(indices) or indices.max() < len(values):
            return values[indices]
        known = indices < len(values)
        return np.where(known, values[np.where(known, indices, 0)], 0)

    def __getitem__(self, index: int) -> int:
        values = self._values
        return int(values[index]) if index < len(values) else 0

    @property
    def values(self) -> np.ndarray:
        """All of them, as they are now; not to be changed."""
        return self._values

    @property
    def nbytes(self) -> int:
        return self._values.nbytes
