"""Messages as they come, for programs without an event loop."""

from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, Self

from pathsieve.attaching import AsyncAttachment
from pathsieve.errors import Cancelled
from pathsieve.messages import Message

__all__ = ["Attachment"]


class Attachment:
    """Iterate over it; inside `with`, or with `close`, to leave cleanly. `AsyncAttachment` tells about the rest."""

    def __init__(self, core: AsyncAttachment, run: Callable[[Coroutine[Any, Any, Any]], Any]) -> None:
        self._core = core
        self._run = run

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Message:
        message = self._core.take() or self.receive()
        if message is None:
            raise StopIteration
        return message

    def ready(self) -> Self:
        """Wait until the server has attached us; from then on nothing is missed."""
        self._run(self._core.ready())
        return self

    def receive(self, timeout: float | None = None) -> Message | None:
        """The next message; None if none comes within `timeout` seconds, or the attachment is closed."""
        try:
            message: Message | None = self._run(self._core.receive(timeout))
        except Cancelled:
            return None
        return message

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Leave; what is not acknowledged is delivered again, to whoever attaches next."""
        self._run(self._core.close())

    @property
    def backlog(self) -> int:
        """How many notifications wait, as the last heartbeat told."""
        return self._core.backlog

    @property
    def oldest_age(self) -> float:
        """For how many seconds the oldest of them does."""
        return self._core.oldest_age

    @property
    def n_breaks(self) -> int:
        """How many streams broke and were opened again."""
        return self._core.n_breaks

    @property
    def n_late(self) -> int:
        """How often something was said about a message of a broken stream."""
        return self._core.n_late
