"""What both engines stand on: compiled kernels, atomic array cells, arrays in files.

    xpathfilter     boolmatch
         │              │
         ▼              ▼
    jit          @kernel: compile once, keep the machine code while its sources stay the same
    atomics      compare-and-swap and fetch-add on cells of arrays  ┐
    bits         lowest set bit, population count, prefetch         │ for use
    hashing      where to look first in a table                     │ inside kernels
    ranking      numbers that are few among many                    │
    memory       reads at bare addresses                            │
    result_bits  which slots a match has found                      ┘
    breathing    long Python loops that let other threads in
    settling     what is loaded is out of the garbage collector's sight
    crews        threads that wait for work
    scratch      working memory, lent out
    snapshots    one version of an index: frozen segments, and who in them is alive
    overlay      updates that cost little at any size
    standing     the half of an index that is the same whatever is subscribed to
    tables       rows of columns, as kernels and numpy see them
    rows         many short rows of integers in two arrays
    storage      named arrays in one file: written all or nothing, mapped, checked
    errors       SieveError and what stems from it
    refusals     what every engine says when it refuses a text, a batch or an id

This package imports nothing else of the project. Import its modules by name
(`from sievecore.jit import kernel`); only the errors are also offered here.
"""

from sievecore.errors import SieveError, StorageError

__all__ = ["SieveError", "StorageError"]
