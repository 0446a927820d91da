"""What becomes of documents that are none: the three ways of `onMalformed`.

refused ──▶ fail         MalformedDocument: which one, where, why; the task fails, and with it the job
       ├──▶ drop         counted, the first few logged
       └──▶ deadLetter   the row as it was, and why, in a file of its partition: `dead_letters`
"""

import logging
from typing import Any, Protocol

from pathsieve.errors import DocumentRefused
from pyspark_pathsieve.dead_letters import DeadLetters
from pyspark_pathsieve.errors import MalformedDocument
from pyspark_pathsieve.places import Place
from pyspark_pathsieve.rows import Row

__all__ = ["Dropping", "Failing", "Malformed", "malformed_of"]

LOG = logging.getLogger("pathsieve.spark")
MOST_LOGGED = 10


class Malformed(Protocol):
    """Takes what was refused."""

    count: int

    def take(self, row: Row, reason: Exception) -> None: ...
    def finish(self) -> str | None:
        """All is well: keep what was taken. The file that has it, if there is one."""

    def give_up(self) -> None:
        """The task fails: keep nothing."""


class Failing:
    """The first one is one too many."""

    count = 0

    def __init__(self, place: Place) -> None:
        self._place = place

    def take(self, row: Row, reason: Exception) -> None:
        raise _error(row, self._place.partition, reason)

    def finish(self) -> None: ...
    def give_up(self) -> None: ...


class Dropping:
    """Counts and logs."""

    def __init__(self, place: Place) -> None:
        self.count = 0
        self._place = place

    def take(self, row: Row, reason: Exception) -> None:
        self.count += 1
        if self.count <= MOST_LOGGED:
            LOG.warning("dropped: %s", _named(row, self._place.partition, reason))

    def finish(self) -> None:
        if self.count > MOST_LOGGED:
            LOG.warning("dropped %d documents of partition %d in all", self.count, self._place.partition)

    def give_up(self) -> None: ...


def malformed_of(choice: str, folder: str | None, place: Place) -> Malformed:
    """As the options say."""
    if choice == "deadLetter":
        assert folder is not None
        return DeadLetters(folder, place)
    return Dropping(place) if choice == "drop" else Failing(place)


def _error(row: Row, partition: int, reason: Exception) -> MalformedDocument:
    is_refused = isinstance(reason, DocumentRefused)
    facts: dict[str, Any] = {
        "document_id": row.document.id or None,
        "partition": partition,
        "row": row.number,
        "line": reason.line if is_refused else None,  # type: ignore[attr-defined]
        "column": reason.column if is_refused else None,  # type: ignore[attr-defined]
    }
    hint = "mend it, or set the option onMalformed to drop or deadLetter"
    return MalformedDocument(f"{_named(row, partition, reason)}; {hint}", facts)


def _named(row: Row, partition: int, reason: Exception) -> str:
    named = f"document {row.document.id!r}" if row.document.id else "a document"
    return f"{named} in partition {partition}, row {row.number}: {reason}"
