"""How much a publisher may have on the way: a window of documents and of bytes.

    granted ──sent──▶ outstanding ──answered──▶ granted again

The window is granted when the stream opens; what is answered is granted again with the answer. So the server holds at
most one window of a stream, however fast it sends. A document counts with its size on the wire.
"""

from server.errors import LimitExceeded

__all__ = ["Credit"]


class Credit:
    """The window of one stream."""

    def __init__(self, documents: int, n_bytes: int) -> None:
        self._window_documents, self._window_bytes = documents, n_bytes
        self._documents, self._bytes = documents, n_bytes

    def spend(self, documents: int, n_bytes: int) -> None:
        """Something came; `LimitExceeded` if it is more than was granted."""
        self._documents -= documents
        self._bytes -= n_bytes
        hint = "send no more than the server's responses have granted in all"
        if self._documents < 0:
            sent = self._window_documents - self._documents
            raise LimitExceeded("credit_documents", self._window_documents, sent, hint)
        if self._bytes < 0:
            raise LimitExceeded("credit_bytes", self._window_bytes, self._window_bytes - self._bytes, hint)

    def restore(self, documents: int, n_bytes: int) -> None:
        """It was answered, and as much is granted again."""
        self._documents += documents
        self._bytes += n_bytes
