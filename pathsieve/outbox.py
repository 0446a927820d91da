"""What a consumer has to say to the server, gathered while the last of it is being sent.

    ack 1, ack 2, nack 3, ack 4      ──▶      Ack [1, 2, 4], Nack [3]

Any thread may say something. One message in the loop's queue is on its way at a time, however much is said.
"""

import asyncio
from collections import deque
from collections.abc import Iterator

from pathsieve.v1.delivery_service_pb2 import Ack, AttachRequest, Credit, Extend, Nack
from pathsieve.wishes import to_duration

__all__ = ["Outbox"]

ACK, NACK, EXTEND = "ack", "nack", "extend"


class Outbox:
    """Says things in batches."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._news = asyncio.Event()
        self._is_told = self._is_closed = False
        self._said: deque[tuple[str, float | None, int]] = deque()
        self._granted: deque[tuple[int, int]] = deque()

    def ack(self, message_id: int) -> None:
        self._say(ACK, None, message_id)

    def nack(self, message_id: int, delay: float | None) -> None:
        self._say(NACK, delay, message_id)

    def extend(self, message_id: int, seconds: float) -> None:
        self._say(EXTEND, seconds, message_id)

    def grant(self, messages: int, n_bytes: int) -> None:
        """More may be sent to us."""
        self._granted.append((messages, n_bytes))
        self._tell()

    def close(self) -> None:
        """Nothing more will be said."""
        self._is_closed = True
        self._tell()

    def _say(self, what: str, seconds: float | None, message_id: int) -> None:
        self._said.append((what, seconds, message_id))
        self._tell()

    def _tell(self) -> None:
        if not self._is_told:
            self._is_told = True
            self._loop.call_soon_threadsafe(self._news.set)

    async def requests(self) -> list[AttachRequest]:
        """Wait until there is something to say; all of it. Nothing, once it is closed and all has been said."""
        while not (requests := [*self._drained(), *self._credit()]) and not self._is_closed:
            await self._news.wait()
            self._news.clear()
            self._is_told = False
        return requests

    def _drained(self) -> Iterator[AttachRequest]:
        gathered: dict[tuple[str, float | None], list[int]] = {}
        while self._said:
            what, seconds, message_id = self._said.popleft()
            gathered.setdefault((what, seconds), []).append(message_id)
        for (what, seconds), message_ids in gathered.items():
            yield _request(what, seconds, message_ids)

    def _credit(self) -> Iterator[AttachRequest]:
        messages = n_bytes = 0
        while self._granted:
            more_messages, more_bytes = self._granted.popleft()
            messages, n_bytes = messages + more_messages, n_bytes + more_bytes
        if messages or n_bytes:
            yield AttachRequest(credit=Credit(messages=messages, bytes=n_bytes))


def _request(what: str, seconds: float | None, message_ids: list[int]) -> AttachRequest:
    if what == ACK:
        return AttachRequest(ack=Ack(message_ids=message_ids))
    duration = None if seconds is None else to_duration(seconds)
    if what == NACK:
        return AttachRequest(nack=Nack(message_ids=message_ids, delay=duration))
    return AttachRequest(extend=Extend(message_ids=message_ids, deadline=duration))
