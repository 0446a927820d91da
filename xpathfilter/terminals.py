"""What phase 2 leaves behind: the terminals (trie nodes or columns) found in a document, each once.

A walker of either algorithm has `marks` (one bit a terminal), `found` (those whose bit is set) and `n_found`.
"""

import numpy as np

from sievecore.jit import kernel

__all__ = ["absorb_found", "forget_found", "note_found"]


@kernel
def note_found(walker, terminal):
    """Add a terminal, unless it is there."""
    bit = np.uint64(1) << np.uint64(terminal & 63)
    if not walker.marks[terminal >> 6] & bit:
        walker.marks[terminal >> 6] |= bit
        walker.found[walker.n_found[0]] = terminal
        walker.n_found[0] += 1


@kernel
def forget_found(walker):
    """Make the walker ready for the next document."""
    for i in range(walker.n_found[0]):
        walker.marks[walker.found[i] >> 6] = 0
    walker.n_found[0] = 0


@kernel
def absorb_found(walker, other):
    """Move what another walker has found to this one."""
    for i in range(other.n_found[0]):
        note_found(walker, other.found[i])
    forget_found(other)
