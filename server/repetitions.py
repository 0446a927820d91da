"""Which documents were published already: the same (source, id) again is acknowledged, not delivered again.

    NEW ──begin──▶ IN FLIGHT ──finish──▶ DONE ──window has passed, or too many──▶ forgotten
                       └──────fail─────▶ NEW

A repetition that comes while the first one is in flight waits for it and shares its fate. An id is kept as a hash of
16 bytes. What matched something durable is found in the store again after a restart; what matched nothing is not, and
need not be: nobody has been sent anything.
"""

import asyncio
import hashlib
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

__all__ = ["Repetitions", "key_of"]

Outcome = TypeVar("Outcome")


def key_of(tenant: str, source: str, document_id: str) -> bytes:
    """What a document goes by. Lengths go in, so that no two different triples read the same."""
    text = f"{len(tenant)} {len(source)} {tenant}{source}{document_id}"
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


class Repetitions(Generic[Outcome]):
    """Keys of the last `window` seconds, at most `most` of them, the oldest forgotten first."""

    def __init__(self, window: float, most: int, clock: Callable[[], float]) -> None:
        self._window = window
        self._most = most
        self._clock = clock
        self._done: dict[bytes, float] = {}
        self._in_flight: dict[bytes, asyncio.Future[Outcome]] = {}

    def __len__(self) -> int:
        return len(self._done)

    def load(self, keys: Iterable[tuple[bytes, float]]) -> None:
        """Keys and times from the store, oldest first."""
        self._done.update(keys)

    def is_done(self, key: bytes) -> bool:
        self._forget_old()
        return key in self._done

    def in_flight(self, key: bytes) -> "asyncio.Future[Outcome] | None":
        """The fate of the first one, while it is not decided."""
        return self._in_flight.get(key)

    def begin(self, key: bytes) -> None:
        self._in_flight[key] = asyncio.get_running_loop().create_future()

    def finish(self, key: bytes, outcome: Outcome, was_accepted: bool) -> None:
        """Tell those who wait. A document that was refused or not stored may come again."""
        self._in_flight.pop(key).set_result(outcome)
        if was_accepted:
            self._done[key] = self._clock()
            self._forget_old()

    def _forget_old(self) -> None:
        oldest = self._clock() - self._window
        while self._done:
            key, time = next(iter(self._done.items()))
            if time >= oldest and len(self._done) <= self._most:
                return
            del self._done[key]
