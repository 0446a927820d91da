"""What could not be delivered, kept for people to look at: the document itself, and what the last attempt ended with.

The document is a copy, so that it outlives the retention of the log.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from server.documents import Document
from server.store.databases import Connection
from server.store.document_codes import DOCUMENT_COLUMNS, document_from_row, document_to_row
from server.store.jobs import Operation
from server.store.tables import ReadsAndWrites

__all__ = ["DeadLetter", "DeadLetterTable"]

COLUMNS = ("number", "sequence", *DOCUMENT_COLUMNS, "attempts", "time", "reason")


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """One match of the subscription `number` that was given up."""

    number: int
    sequence: int
    document: Document
    attempts: int
    time: float
    reason: str


class DeadLetterTable:
    """Dead letters of all subscriptions. Deleting a subscription deletes its own."""

    def __init__(self, store: ReadsAndWrites) -> None:
        self._store = store

    async def add(self, letters: Sequence[DeadLetter]) -> None:
        """Keep some letters; one that is kept already is replaced."""
        await self._store.write(adding(letters))

    async def page(self, number: int, after_sequence: int, limit: int) -> Sequence[DeadLetter]:
        """The next letters of a subscription after a sequence."""
        return await self._store.read(lambda connection: _page(connection, number, after_sequence, limit))

    async def count(self, number: int) -> int:
        sql = "SELECT count(*) FROM dead_letters WHERE number = ?"
        return await self._store.read(lambda connection: int(connection.execute(sql, (number,))[0][0]))

    async def counts(self) -> dict[int, int]:
        """How many letters each subscription has that has any."""
        sql = "SELECT number, count(*) FROM dead_letters GROUP BY number"
        return dict(await self._store.read(lambda connection: connection.execute(sql)))

    async def forget(self, before: float) -> int:
        """Delete letters from before a time; how many there were."""
        sql = "DELETE FROM dead_letters WHERE time < ? RETURNING number"
        return await self._store.write(lambda connection: len(connection.execute(sql, (before,))))


def adding(letters: Sequence[DeadLetter]) -> Operation:
    """The operation that keeps some letters."""

    def add(connection: Connection) -> None:
        for letter in letters:
            sql = "DELETE FROM dead_letters WHERE number = ? AND sequence = ?"
            connection.execute(sql, (letter.number, letter.sequence))
        connection.insert("dead_letters", COLUMNS, [_to_row(letter) for letter in letters])

    return add


def _to_row(letter: DeadLetter) -> tuple[object, ...]:
    document = document_to_row(letter.document)
    return letter.number, letter.sequence, *document, letter.attempts, letter.time, letter.reason.replace("\0", "�")


def _page(connection: Connection, number: int, after_sequence: int, limit: int) -> list[DeadLetter]:
    sql = f"""SELECT {", ".join(COLUMNS)} FROM dead_letters
        WHERE number = ? AND sequence > ? ORDER BY sequence LIMIT ?"""
    rows = connection.execute(sql, (number, after_sequence, limit))
    return [DeadLetter(row[0], row[1], document_from_row(row[2:-3]), *row[-3:]) for row in rows]
