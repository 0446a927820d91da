"""Messages that have come and that nobody has taken yet, and the credit that they hold.

    (server) ──▶ put ──▶ buffer ──▶ take ──▶ the caller
       ▲                              │
       └── grant: a quarter at a time ┘

Credit is what may be on its way to us or wait here; what is taken is granted again. `take` may be called from another
thread than the loop's, by one caller.
"""

from collections import deque

from pathsieve.messages import Message

__all__ = ["Inbox"]


class Inbox:
    """With `auto_ack`, whoever takes the next message is done with the last one."""

    def __init__(self, credit_messages: int, credit_bytes: int, auto_ack: bool) -> None:
        self._enough_messages = max(1, credit_messages // 4)
        self._enough_bytes = max(1, credit_bytes // 4)
        self._auto_ack = auto_ack
        self._buffer: deque[Message] = deque()
        self._last: Message | None = None
        self._n_taken = self._bytes_taken = 0

    def put(self, messages: list[Message]) -> None:
        self._buffer.extend(messages)

    def drop_stale(self) -> None:
        """The stream is gone: forget what the server will deliver again."""
        kept = [message for message in list(self._buffer) if message.is_ephemeral]
        self._buffer.clear()
        self._buffer.extend(kept)
        self._n_taken = self._bytes_taken = 0

    def take(self) -> Message | None:
        """The next message; None if there is none."""
        if self._last:
            self._last.ack()
            self._last = None
        try:
            message = self._buffer.popleft()
        except IndexError:
            return None
        self._grant(message)
        self._last = message if self._auto_ack else None
        return message

    def _grant(self, message: Message) -> None:
        self._n_taken += 1
        self._bytes_taken += message.size
        if self._n_taken >= self._enough_messages or self._bytes_taken >= self._enough_bytes:
            message.origin.grant(self._n_taken, self._bytes_taken)
            self._n_taken = self._bytes_taken = 0
