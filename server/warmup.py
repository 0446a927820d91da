"""Every kernel compiled, or read from the cache of compiled ones, before the first document and not by it."""

import boolmatch
import xpathfilter
from server.log import segments
from server.rpc import packed

__all__ = ["warm_up"]


def warm_up() -> None:
    """Compile all that the server runs."""
    xpathfilter.warm_up()
    boolmatch.warm_up()
    segments.warm_up()
    packed.warm_up()
