"""Subscriptions in the store: created by the thousand, changed one by one, loaded column by column.

    number      ascending, never used again
    revision    ascending over all subscriptions: each change takes the next, so `changed_since` is what happened

A deleted one leaves a tombstone, so that others who hold subscriptions in memory can learn of it.
"""

import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from server.errors import AlreadyExists, EtagMismatch, NotFound
from server.store.databases import Connection, Row, placeholders
from server.store.subscription_codes import COLUMNS, from_row, namespaces_from_text, to_row
from server.store.tables import ReadsAndWrites
from server.subscriptions import N_TOKENS, Subscription

__all__ = ["Changes", "Columns", "Page", "SubscriptionTable", "Tombstone"]

ALL_COLUMNS = ", ".join(COLUMNS)
NAMES_AT_ONCE = 500
CHUNK = 50_000
CHANGES_AT_ONCE = 20_000


@dataclass(frozen=True, slots=True)
class Page:
    """Some subscriptions of a tenant in the order of their ids, and how many it has in all."""

    subscriptions: list[Subscription]
    total: int


@dataclass(frozen=True, slots=True)
class Columns:
    """Many subscriptions, column by column, for loading. `has_options` tells which have push or schedule or such."""

    numbers: np.ndarray
    tenants: list[str]
    kinds: list[str]
    expressions: list[str]
    namespaces: list[tuple[tuple[str, str], ...]]
    has_options: np.ndarray


class Tombstone(NamedTuple):
    """What is left of a deleted subscription."""

    number: int
    tenant: str
    id: str


@dataclass(frozen=True, slots=True)
class Changes:
    """What happened after some revision, up to `revision`; `newest` is the last one there is."""

    revision: int
    newest: int
    changed: list[Subscription]
    deleted: list[Tombstone]


class SubscriptionTable:
    """All subscriptions of all tenants."""

    def __init__(self, store: ReadsAndWrites, clock: Callable[[], float] = time.time) -> None:
        self._store = store
        self._clock = clock

    async def create(self, subscriptions: Sequence[Subscription]) -> list[Subscription | AlreadyExists]:
        """Store new subscriptions, in one transaction; those whose name is taken are refused, each for itself.

        The result of each, in order: as it was stored, with number, revision and times.
        """
        now = self._clock()
        return await self._store.write(lambda connection: _create(connection, subscriptions, now))

    async def update(self, subscription: Subscription, expected_revision: int | None = None) -> Subscription:
        """Store a changed subscription under its name; `EtagMismatch` if it is not at the expected revision."""
        now = self._clock()
        return await self._store.write(lambda connection: _update(connection, subscription, expected_revision, now))

    async def delete(self, tenant: str, subscription_id: str, expected_revision: int | None = None) -> Subscription:
        """Delete a subscription, its leftovers and its dead letters; what it was."""
        now = self._clock()
        return await self._store.write(
            lambda connection: _delete(connection, tenant, subscription_id, expected_revision, now)
        )

    async def get(self, tenant: str, subscription_id: str) -> Subscription:
        return await self._store.read(lambda connection: _get(connection, tenant, subscription_id))

    async def by_numbers(self, numbers: Iterable[int]) -> dict[int, Subscription]:
        """Those that exist of some numbers."""
        wanted = [int(number) for number in numbers]
        return await self._store.read(lambda connection: _by_numbers(connection, wanted))

    async def ids_of(self, numbers: Iterable[int]) -> dict[int, str]:
        """The ids of some numbers, also of those that were deleted, as long as there is a trace of them."""
        wanted = [int(number) for number in numbers]
        return await self._store.read(lambda connection: _ids_of(connection, wanted))

    async def by_ids(self, tenant: str, ids: Sequence[str]) -> dict[str, Subscription]:
        """Those that exist of some ids of a tenant."""
        return await self._store.read(lambda connection: _by_ids(connection, tenant, ids))

    async def page(self, tenant: str, after_id: str, n_subscriptions: int) -> Page:
        """The next subscriptions of a tenant after an id; "" is before all ids."""
        return await self._store.read(lambda connection: _page(connection, tenant, after_id, n_subscriptions))

    async def count(self, tenant: str) -> int:
        return await self._store.read(lambda connection: _count(connection, tenant))

    async def counts(self) -> dict[str, int]:
        """How many subscriptions each tenant has."""
        sql = "SELECT tenant, count(*) FROM subscriptions GROUP BY tenant"
        return dict(await self._store.read(lambda connection: connection.execute(sql)))

    async def loads(self) -> tuple[list[int], list[int]]:
        """How many subscriptions each matching token stands for, and each notifying token."""
        matching = "SELECT token, count(*) FROM subscriptions GROUP BY token"
        notifying = f"SELECT number & {N_TOKENS - 1} AS notifying, count(*) FROM subscriptions GROUP BY notifying"
        found: list[dict[int, int]] = await self._store.read(
            lambda connection: [dict(connection.execute(sql)) for sql in (matching, notifying)]
        )
        of_matching, of_notifying = ([counts.get(token, 0) for token in range(N_TOKENS)] for counts in found)
        return of_matching, of_notifying

    async def scan(self, chunk: int = CHUNK) -> AsyncIterator[Columns]:
        """All subscriptions, in the order of their numbers."""
        last = 0
        while len((columns := await self._store.read(lambda connection: _scan(connection, last, chunk))).numbers):  # noqa: B023
            yield columns
            last = int(columns.numbers[-1])

    async def of_tokens(self, tokens: Sequence[int]) -> AsyncIterator[Columns]:
        """All subscriptions of some tokens, in the order of their numbers."""
        last = 0
        while len((columns := await self._store.read(lambda connection: _of_tokens(connection, tokens, last))).numbers):  # noqa: B023
            yield columns
            last = int(columns.numbers[-1])

    async def revision(self) -> int:
        """The newest revision."""
        return await self._store.read(_revision)

    async def with_options(self) -> AsyncIterator[Subscription]:
        """All subscriptions that have labels, a delivery policy, a schedule or push."""
        last = 0
        while rows := await self._store.read(lambda connection: _with_options(connection, last)):  # noqa: B023
            for row in rows:
                yield from_row(row)
            last = rows[-1][0]

    async def pushed(self, picks: Callable[[int], bool]) -> Sequence[Subscription]:
        """Those that are pushed, of numbers that a test picks."""
        return [
            subscription
            async for subscription in self.with_options()
            if subscription.push and picks(subscription.number)
        ]

    async def changed_since(self, revision: int) -> Changes:
        """Which subscriptions were created, changed or deleted after a revision, as they are now; at most so many."""
        return await self._store.read(lambda connection: _changed_since(connection, revision))

    async def forget_deleted(self, before: float) -> int:
        """Clean up tombstones from before a time; how many there were."""
        sql = "DELETE FROM tombstones WHERE time < ? RETURNING number"
        return await self._store.write(lambda connection: len(connection.execute(sql, (before,))))


def _create(
    connection: Connection, subscriptions: Sequence[Subscription], now: float
) -> list[Subscription | AlreadyExists]:
    revision = _advance(connection, "revision", len(subscriptions)) - len(subscriptions)
    number = _advance(connection, "number", len(subscriptions)) - len(subscriptions)
    taken = _taken_names(connection, subscriptions)
    results: list[Subscription | AlreadyExists] = []
    rows = []
    for place, subscription in enumerate(subscriptions, 1):
        name = (subscription.tenant, subscription.id)
        if name in taken:
            results.append(AlreadyExists(subscription.name))
            continue
        taken.add(name)
        stamped = _stamped(subscription, number + place, revision + place, now)
        results.append(stamped)
        rows.append(to_row(stamped))
    connection.insert("subscriptions", COLUMNS, rows)
    connection.tell("subscriptions")
    return results


def _stamped(given: Subscription, number: int, revision: int, now: float) -> Subscription:
    return Subscription(
        given.tenant,
        given.id,
        given.filter,
        given.labels,
        given.delivery,
        given.schedule,
        given.push,
        number,
        revision,
        now,
        now,
    )


def _advance(connection: Connection, counter: str, by: int) -> int:
    """Take the next values of a counter; the last one taken. Others who take some wait until this commits."""
    sql = "UPDATE counters SET value = value + ? WHERE name = ? RETURNING value"
    return int(connection.execute(sql, (by, counter))[0][0])


def _taken_names(connection: Connection, subscriptions: Sequence[Subscription]) -> set[tuple[str, str]]:
    by_tenant: dict[str, list[str]] = {}
    for subscription in subscriptions:
        by_tenant.setdefault(subscription.tenant, []).append(subscription.id)
    taken: set[tuple[str, str]] = set()
    for tenant, ids in by_tenant.items():
        for start in range(0, len(ids), NAMES_AT_ONCE):
            some = ids[start : start + NAMES_AT_ONCE]
            sql = f"SELECT id FROM subscriptions WHERE tenant = ? AND id IN ({placeholders(len(some))})"
            taken.update((tenant, found) for (found,) in connection.execute(sql, (tenant, *some)))
    return taken


def _get(connection: Connection, tenant: str, subscription_id: str) -> Subscription:
    sql = f"SELECT {ALL_COLUMNS} FROM subscriptions WHERE tenant = ? AND id = ?"
    rows = connection.execute(sql, (tenant, subscription_id))
    if not rows:
        raise NotFound(f"subscriptions/{subscription_id}")
    return from_row(rows[0])


def _by_numbers(connection: Connection, numbers: Sequence[int]) -> dict[int, Subscription]:
    found: dict[int, Subscription] = {}
    for start in range(0, len(numbers), NAMES_AT_ONCE):
        some = numbers[start : start + NAMES_AT_ONCE]
        sql = f"SELECT {ALL_COLUMNS} FROM subscriptions WHERE number IN ({placeholders(len(some))})"
        found.update((row[0], from_row(row)) for row in connection.execute(sql, some))
    return found


def _ids_of(connection: Connection, numbers: Sequence[int]) -> dict[int, str]:
    found: dict[int, str] = {}
    for start in range(0, len(numbers), NAMES_AT_ONCE):
        some = numbers[start : start + NAMES_AT_ONCE]
        for table in ("subscriptions", "tombstones"):
            sql = f"SELECT number, id FROM {table} WHERE number IN ({placeholders(len(some))})"
            found.update((number, subscription_id) for number, subscription_id in connection.execute(sql, some))
    return found


def _by_ids(connection: Connection, tenant: str, ids: Sequence[str]) -> dict[str, Subscription]:
    found: dict[str, Subscription] = {}
    for start in range(0, len(ids), NAMES_AT_ONCE):
        some = ids[start : start + NAMES_AT_ONCE]
        sql = f"SELECT {ALL_COLUMNS} FROM subscriptions WHERE tenant = ? AND id IN ({placeholders(len(some))})"
        found.update((row[3], from_row(row)) for row in connection.execute(sql, (tenant, *some)))
    return found


def _current(connection: Connection, tenant: str, subscription_id: str, expected: int | None) -> Subscription:
    found = _get(connection, tenant, subscription_id)
    if expected is not None and found.revision != expected:
        raise EtagMismatch(found.name, f"{expected:x}", found.etag)
    return found


def _update(connection: Connection, subscription: Subscription, expected: int | None, now: float) -> Subscription:
    revision = _advance(connection, "revision", 1)
    found = _current(connection, subscription.tenant, subscription.id, expected)
    changed = replace(
        subscription, number=found.number, revision=revision, create_time=found.create_time, update_time=now
    )
    settings = ", ".join(f"{column} = ?" for column in COLUMNS[1:])
    row = to_row(changed)
    connection.execute(f"UPDATE subscriptions SET {settings} WHERE number = ?", (*row[1:], row[0]))
    connection.tell("subscriptions")
    return changed


def _delete(
    connection: Connection, tenant: str, subscription_id: str, expected: int | None, now: float
) -> Subscription:
    revision = _advance(connection, "revision", 1)
    found = _current(connection, tenant, subscription_id, expected)
    for table in ("subscriptions", "leftovers", "dead_letters"):
        connection.execute(f"DELETE FROM {table} WHERE number = ?", (found.number,))
    connection.insert(
        "tombstones",
        ("number", "token", "revision", "time", "tenant", "id"),
        [(found.number, found.token, revision, now, found.tenant, found.id)],
    )
    connection.tell("subscriptions")
    return found


def _page(connection: Connection, tenant: str, after_id: str, n_subscriptions: int) -> Page:
    sql = f"SELECT {ALL_COLUMNS} FROM subscriptions WHERE tenant = ? AND id > ? ORDER BY id LIMIT ?"
    rows = connection.execute(sql, (tenant, after_id, n_subscriptions))
    return Page([from_row(row) for row in rows], _count(connection, tenant))


def _count(connection: Connection, tenant: str) -> int:
    return int(connection.execute("SELECT count(*) FROM subscriptions WHERE tenant = ?", (tenant,))[0][0])


def _scan(connection: Connection, after_number: int, limit: int) -> Columns:
    sql = """SELECT number, tenant, kind, expression, namespaces, options <> '' FROM subscriptions
        WHERE number > ? ORDER BY number LIMIT ?"""
    return _columns(connection.execute(sql, (after_number, limit)))


def _of_tokens(connection: Connection, tokens: Sequence[int], after_number: int) -> Columns:
    sql = f"""SELECT number, tenant, kind, expression, namespaces, options <> '' FROM subscriptions
        WHERE token IN ({placeholders(len(tokens))}) AND number > ? ORDER BY number LIMIT ?"""
    return _columns(connection.execute(sql, (*tokens, after_number, CHUNK)))


def _columns(rows: Sequence[Row]) -> Columns:
    numbers, tenants, kinds, expressions, namespaces, has_options = zip(*rows, strict=True) if rows else ((),) * 6
    return Columns(
        np.array(numbers, np.int64),
        list(tenants),
        list(kinds),
        list(expressions),
        [namespaces_from_text(text) for text in namespaces],
        np.array(has_options, np.bool_),
    )


def _with_options(connection: Connection, after_number: int) -> list[Row]:
    sql = f"SELECT {ALL_COLUMNS} FROM subscriptions WHERE number > ? AND options <> '' ORDER BY number LIMIT ?"
    return connection.execute(sql, (after_number, CHUNK))


def _changed_since(connection: Connection, revision: int) -> Changes:
    newest = _revision(connection)
    last = min(newest, revision + CHANGES_AT_ONCE)
    sql = f"SELECT {ALL_COLUMNS} FROM subscriptions WHERE revision > ? AND revision <= ? ORDER BY revision"
    changed = [from_row(row) for row in connection.execute(sql, (revision, last))]
    sql = "SELECT number, tenant, id FROM tombstones WHERE revision > ? AND revision <= ? ORDER BY revision"
    return Changes(last, newest, changed, [Tombstone(*row) for row in connection.execute(sql, (revision, last))])


def _revision(connection: Connection) -> int:
    return int(connection.execute("SELECT value FROM counters WHERE name = 'revision'")[0][0])
