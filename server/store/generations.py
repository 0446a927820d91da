"""Generations of tokens: a write of somebody who is no longer the owner is refused.

    taken, generation 7 ──▶ claim: 7 is written, unless 8 is there already
    each write          ──▶ check, in the same transaction: is 7 still the newest? else `Fenced`

Replicas' transactions follow one another, so nothing can change between the check and the commit.
"""

from collections.abc import Mapping
from functools import partial

from server.errors import Fenced
from server.store.databases import Connection
from server.store.tables import ReadsAndWrites

__all__ = ["GenerationTable", "check"]


class GenerationTable:
    """The newest generation of each token, of each kind."""

    def __init__(self, store: ReadsAndWrites) -> None:
        self._store = store

    async def claim(self, kind: str, generations: Mapping[int, int], replica: str) -> None:
        """Write down that `replica` has these tokens; `Fenced` if one of them has been taken since."""
        await self._store.write(partial(_claim, kind=kind, generations=generations, replica=replica))


def check(connection: Connection, kind: str, generations: Mapping[int, int]) -> None:
    """`Fenced` unless these are the newest generations of their tokens."""
    found: dict[int, int] = dict(
        connection.execute("SELECT token, generation FROM token_generations WHERE kind = ?", (kind,))
    )
    stale = [token for token, generation in generations.items() if found.get(token) != generation]
    if stale:
        raise Fenced(kind, stale)


def _claim(connection: Connection, kind: str, generations: Mapping[int, int], replica: str) -> None:
    """All in one statement: the others wait for their turn meanwhile, and publish nothing."""
    rows = ", ".join(["(?, ?, ?, ?)"] * len(generations))
    sql = f"""INSERT INTO token_generations (kind, token, generation, replica) VALUES {rows}
        ON CONFLICT (kind, token) DO UPDATE SET generation = excluded.generation, replica = excluded.replica
        WHERE token_generations.generation < excluded.generation"""
    connection.execute(sql, [value for one in generations.items() for value in (kind, *one, replica)])
    check(connection, kind, generations)
