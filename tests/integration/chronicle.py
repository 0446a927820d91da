"""What is seen while a cluster is ill-treated: each event a line of JSON, in the order in which they happened.

    crowd, nemesis, token watch ──▶ chronicle ──▶ a file, for whoever wants to judge it again
                                        └───────▶ a judge, who knows at any time what is still owed

One event loop writes it, so the order of the lines is the order of events.
"""

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.integration.judge import Judge

__all__ = ["Chronicle"]


class Chronicle:
    """Use it in a `with` block."""

    def __init__(self, path: Path) -> None:
        self.judge = Judge()
        self._file = path.open("w")
        self._started = time.monotonic()
        self._changed = asyncio.Event()

    def note(self, what: str, **facts: Any) -> None:
        """One event, now."""
        event = {"at": round(time.monotonic() - self._started, 4), "what": what, **facts}
        self._file.write(json.dumps(event) + "\n")
        self.judge.take(event)
        self._changed.set()

    @contextmanager
    def during(self, what: str, **facts: Any) -> Iterator[None]:
        """Something that begins, and is done if the block ends well."""
        self.note(what, state="begun", **facts)
        yield
        self.note(what, state="done", **facts)

    def count(self, what: str) -> int:
        return self.judge.counts[what]

    async def until(self, is_so: Callable[[], bool]) -> None:
        """Wait for a state that events bring about."""
        while not is_so():
            self._changed.clear()
            await self._changed.wait()

    async def more(self, what: str, n: int) -> None:
        """Wait until something has happened so many times more."""
        wanted = self.count(what) + n
        await self.until(lambda: self.count(what) >= wanted)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
