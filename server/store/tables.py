"""The part of the store that its tables stand on."""

from collections.abc import Callable
from typing import Protocol, TypeVar

from server.store.databases import Connection

__all__ = ["ReadsAndWrites"]

Result = TypeVar("Result")


class ReadsAndWrites(Protocol):
    """Operations on a connection, run in a thread."""

    async def read(self, operation: Callable[[Connection], Result]) -> Result:
        """What `operation` returns; it sees one state of the store."""

    async def write(self, operation: Callable[[Connection], Result]) -> Result:
        """What `operation` returns, once it is durable."""
