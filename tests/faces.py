"""Both clients with one face, so that one test is about both: `Client`, and `AsyncClient` made to look like it."""

import inspect
from collections.abc import Iterator
from typing import Any

from pathsieve import AsyncClient, Client
from pathsieve.background import background

FACES = ["sync", "async"]


def make(face: str, *args: Any, **kwargs: Any) -> Any:
    """A client of either kind."""
    return Client(*args, **kwargs) if face == "sync" else Blocking(AsyncClient(*args, **kwargs))


def run(work: Any) -> Any:
    return background().run(work)


class Blocking:
    """Waits for what is awaited, and iterates over what is iterated over with `async for`."""

    def __init__(self, subject: Any) -> None:
        self._subject = subject

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._subject, name)
        return self._waiting(attribute) if callable(attribute) else attribute

    def _waiting(self, method: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            async def work() -> Any:
                result = method(*args, **kwargs)
                if hasattr(result, "ready"):
                    return await result.ready()
                return await result if inspect.isawaitable(result) else result

            result = run(work())
            return Blocking(result) if hasattr(result, "__anext__") else result

        return call

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        ended = object()
        found = run(_next(self._subject, ended))
        if found is ended:
            raise StopIteration
        return found

    def __enter__(self) -> "Blocking":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


async def _next(iterator: Any, ended: object) -> Any:
    return await anext(iterator, ended)
