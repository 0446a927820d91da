"""The credit of one stream: how much may be on its way to us or wait here, and when to grant more.

    granted 8 ──▶ (server) ──▶ messages ──▶ taken 1, 2: a quarter ──▶ granted 2 more

What is taken is granted again, a quarter at a time, so that grants are few and the stream never runs dry.
"""

from pathsieve.v1.delivery_service_pb2 import Credit

__all__ = ["Window"]


class Window:
    """Counts what has been taken; for the one thread that takes."""

    def __init__(self, credit: Credit) -> None:
        self._enough_messages = max(1, credit.messages // 4)
        self._enough_bytes = max(1, credit.bytes // 4)
        self._n_taken = self._bytes_taken = 0

    def took(self, n_bytes: int) -> tuple[int, int] | None:
        """A message of this size has been taken; messages and bytes to grant, once they are enough.

        >>> window = Window(Credit(messages=8, bytes=1000))
        >>> window.took(10), window.took(10)
        (None, (2, 20))
        """
        self._n_taken += 1
        self._bytes_taken += n_bytes
        if self._n_taken < self._enough_messages and self._bytes_taken < self._enough_bytes:
            return None
        granted = self._n_taken, self._bytes_taken
        self._n_taken = self._bytes_taken = 0
        return granted
