"""Working memory, lent out: each thread that works has one, and idle ones wait to be used again.

A scratch that an exception passed by is dropped, since nobody knows what state it is in.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

__all__ = ["ScratchPool"]

Scratch = TypeVar("Scratch")


class ScratchPool(Generic[Scratch]):
    """Lends scratches made by `create`; as many exist as were ever in use at once.

    >>> pool = ScratchPool(list)
    >>> with pool.lend() as first, pool.lend() as second:
    ...     first is second
    False
    >>> with pool.lend() as again:
    ...     again is first or again is second
    True
    """

    def __init__(self, create: Callable[[], Scratch]) -> None:
        self._create = create
        self._idle: list[Scratch] = []  # list.append and list.pop are atomic

    @contextmanager
    def lend(self) -> Iterator[Scratch]:
        """A scratch of one's own until the block ends."""
        scratch = self.take()
        yield scratch
        self.give_back(scratch)

    def take(self) -> Scratch:
        """A scratch of one's own until it is given back."""
        try:
            return self._idle.pop()
        except IndexError:
            return self._create()

    def give_back(self, scratch: Scratch) -> None:
        """Let others use the scratch."""
        self._idle.append(scratch)
