"""What both engines stand on: compiled kernels, atomic array cells, arrays in files.

    xpathfilter     boolmatch
         │              │
         ▼              ▼
    jit          @kernel: compile once, keep the machine code while its sources stay the same
    atomics      compare-and-swap and fetch-add on cells of arrays  ┐
    bits         lowest set bit, population count, prefetch         │ for use
    hashing      where to look first in a table                     │ inside kernels
    memory       reads at bare addresses                            ┘
    breathing    long Python loops that let other threads in
    storage      named arrays in one file: written all or nothing, mapped, checked
    errors       SieveError and what stems from it
    refusals     what every engine says when it refuses a text, a batch or an id

This package imports nothing else of the project. Import its modules by name
(`from sievecore.jit import kernel`); only the errors are also offered here.
"""

from sievecore.errors import SieveError, StorageError

__all__ = ["SieveError", "StorageError"]
