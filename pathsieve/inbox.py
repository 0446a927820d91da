"""Messages that have come and that nobody has taken yet.

    (server) ──▶ stream ──▶ put ──┐
    (server) ──▶ stream ──▶ put ──┴▶ buffer ──▶ take ──▶ the caller
                   ▲                              │
                   └── took: as much again ───────┘

Several streams may fill it; what is taken is credit again for the stream that it came on. `take` may be called from
another thread than the loop's, by one caller.
"""

import threading
from collections import deque

from pathsieve.messages import Message, Origin

__all__ = ["Inbox"]


class Inbox:
    """With `auto_ack`, whoever takes the next message is done with the last one."""

    def __init__(self, auto_ack: bool) -> None:
        self._auto_ack = auto_ack
        self._buffer: deque[Message] = deque()
        self._lock = threading.Lock()
        self._last: Message | None = None

    def put(self, messages: list[Message]) -> None:
        with self._lock:
            self._buffer.extend(messages)

    def drop(self, origin: Origin) -> None:
        """This stream is gone: forget what the server will deliver again."""
        with self._lock:
            kept = [message for message in self._buffer if message.is_ephemeral or message.origin is not origin]
            self._buffer = deque(kept)

    def take(self) -> Message | None:
        """The next message; None if there is none."""
        if self._last:
            self._last.ack()
            self._last = None
        with self._lock:
            message = self._buffer.popleft() if self._buffer else None
        if message:
            message.origin.took(message.size)
            self._last = message if self._auto_ack else None
        return message
