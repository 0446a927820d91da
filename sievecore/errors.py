"""What can go wrong below the engines.

    SieveError
    └── StorageError (also a ValueError)     a file is not what it should be

Each engine has a root class of its own; these are the errors of the parts they share.
"""

import os

__all__ = ["SieveError", "StorageError"]


class SieveError(Exception):
    """The root of all errors that sievecore raises of its own accord."""


class StorageError(SieveError, ValueError):
    """A stored file was refused: `reason` says what was expected, what was found and what to do.

    >>> print(StorageError("index.sieve", "expected 96 bytes, found 80: copy the file again"))
    index.sieve: expected 96 bytes, found 80: copy the file again
    """

    def __init__(self, path: str | os.PathLike[str], reason: str) -> None:
        super().__init__(path, reason)
        self.path = os.fspath(path)
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"
