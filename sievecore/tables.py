"""Structured arrays: the rows of a table as kernels and numpy see them.

A kernel that takes a few tables compiles and is called several times faster than one that takes all their
columns as arrays of their own.
"""

import numpy as np

__all__ = ["columns"]


def columns(*integers: str, **others: type) -> np.dtype:
    """A row of int32 columns, followed by columns of other types.

    >>> columns("start", "end", number=np.float64)
    dtype([('start', '<i4'), ('end', '<i4'), ('number', '<f8')], align=True)
    """
    return np.dtype([(name, np.int32) for name in integers] + list(others.items()), align=True)
