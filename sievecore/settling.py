"""After compiling: what is loaded by now is out of the garbage collector's sight.

The compiler leaves about a million objects behind. A full collection visits them all, which stops every thread for
100 to 170 ms, and loading many subscriptions brings such collections about.
"""

import gc

__all__ = ["settle"]


def settle() -> None:
    """Collect what is garbage now, and leave the rest alone for ever."""
    gc.collect()
    gc.freeze()
