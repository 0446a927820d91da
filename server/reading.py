"""Reading notifications without taking them, and acknowledging by a point instead of one by one.

    ranges ─▶ what there is        read ─▶ a page of it, with names        meant ─▶ what an acknowledgement is about

Nothing of this has a state of its own: no lease, no attempt, no consumer. So a page may be asked for again, of another
server too; of several replicas each follows the whole log, and any of them answers. Who is attached to a subscription
that is read does not notice; of what is acknowledged by a point it is no longer sent anything, and what is on its way
is done.

All subscriptions of a tenant are read by positions of the log. One that was deleted is read as long as there is a trace
of it (`retention.traces`), so that a range that is read again soon is the same.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from server.catalog import Catalog
from server.documents import Document
from server.errors import InvalidRequest, LimitExceeded
from server.log.match_log import MatchLog
from server.log.ranges import LogPage
from server.store import Store

__all__ = ["ALL", "Mark", "Notification", "NotificationPage", "Range", "Reading"]

ALL = "-"
MAX_SUBSCRIPTIONS = 1000
DEFAULT_MESSAGES, MAX_MESSAGES = 1000, 10_000
DEFAULT_BYTES, MAX_BYTES = 4 << 20, 16 << 20


@dataclass(frozen=True, slots=True)
class Range:
    """What there is of a subscription, in sequences, or of all of the tenant, in positions."""

    name: str
    dropped: int
    head: int
    through: int = 0


@dataclass(frozen=True, slots=True)
class Notification:
    """A document, and the subscriptions that want it, by their places in the page's `names`."""

    position: int
    document: Document
    slots: Sequence[int]
    sequences: Sequence[int]


@dataclass(frozen=True, slots=True)
class NotificationPage:
    """Some notifications, up to where the page goes, and the newest that retention has dropped; 0 if none is."""

    names: Sequence[str]
    notifications: Sequence[Notification]
    through: int
    dropped: int


@dataclass(frozen=True, slots=True)
class Mark:
    """Up to where all is done. `after` is for all of a tenant: who has nothing after it stays as it is."""

    subscription_id: str
    through: int
    after: int = 0


async def _nothing() -> None:
    """A server that stands alone has all there is."""


class Reading:
    """`catch_up` brings the log of one of several replicas up to what the others have appended."""

    def __init__(self, store: Store, catalog: Catalog, log: MatchLog) -> None:
        self.catch_up: Callable[[], Awaitable[None]] = _nothing
        self._store = store
        self._catalog = catalog
        self._log = log

    async def ranges(self, tenant: str, ids: Sequence[str]) -> list[Range]:
        """Of some subscriptions, in their order."""
        _check_number(len(ids))
        subscriptions = await self._catalog.get_many(tenant, ids)
        await self.catch_up()
        return [
            Range(one.name, await self._log.ranges.dropped_of(one.number), self._log.head(one.number))
            for one in subscriptions
        ]

    async def tenant_range(self, tenant: str, after: int, max_documents: int) -> Range:
        """Of all of a tenant; `through` is where its next `max_documents` documents after a position end."""
        _check_at_least(0, after=after, max_documents=max_documents)
        await self.catch_up()
        through = await self._log.ranges.tenant_end(tenant, after, max_documents)
        return Range(f"subscriptions/{ALL}", self._log.ranges.dropped, self._log.position, through)

    async def read(
        self, tenant: str, subscription_id: str, after: int, through: int, max_messages: int = 0, max_bytes: int = 0
    ) -> NotificationPage:
        """A page of a range: at least one notification, if there is one, or all that is left of it."""
        _check_at_least(0, after=after, max_messages=max_messages, max_bytes=max_bytes)
        limits = min(max_messages or DEFAULT_MESSAGES, MAX_MESSAGES), min(max_bytes or DEFAULT_BYTES, MAX_BYTES)
        if subscription_id == ALL:
            await self._reach(f"subscriptions/{ALL}", lambda: self._log.position, through)
            return await self._named(await self._log.ranges.read_tenant(tenant, after, through, *limits))
        subscription = await self._catalog.get(tenant, subscription_id)
        await self._reach(subscription.name, partial(self._log.head, subscription.number), through)
        page = await self._log.ranges.read(subscription.number, after, through, *limits)
        return _page(page, {subscription.number: subscription.id})

    async def meant(self, tenant: str, marks: Sequence[Mark]) -> tuple[np.ndarray, np.ndarray]:
        """The numbers that marks are about, in their order or those of a whole tenant, and up to where each is done."""
        _check_number(len(marks))
        if [mark.subscription_id for mark in marks] == [ALL]:
            after, through = marks[0].after, marks[0].through
            await self._reach(f"subscriptions/{ALL}", lambda: self._log.position, through)
            return await self._log.ranges.last_sequences(tenant, after, through)
        ids = [mark.subscription_id for mark in marks]
        if len(set(ids)) < len(ids) or ALL in ids:
            raise InvalidRequest("marks", f"expected each subscription once, or subscriptions/{ALL} alone")
        found = await self._catalog.get_many(tenant, ids)
        for mark, subscription in zip(marks, found, strict=True):
            await self._reach(subscription.name, partial(self._log.head, subscription.number), mark.through)
        numbers, sequences = [one.number for one in found], [mark.through for mark in marks]
        return np.array(numbers, np.int64), np.array(sequences, np.int64)

    async def _reach(self, name: str, head: Callable[[], int], through: int) -> None:
        """Go no further than there is; another replica may know of more."""
        if through > head():
            await self.catch_up()
        if not 0 <= through <= head():
            expected = f"expected a point of {name}, from 0 to {head()}, found {through}"
            raise InvalidRequest("through", expected, name=name, found=through, head=head())

    async def _named(self, page: LogPage) -> NotificationPage:
        numbers = {int(number) for record in page.records for number in record.numbers.tolist()}
        return _page(page, await self._store.subscriptions.ids_of(sorted(numbers)))


def _page(page: LogPage, ids: dict[int, str]) -> NotificationPage:
    """With names; whoever has none any more is left out."""
    slots = {number: slot for slot, number in enumerate(ids)}
    notifications = []
    for record in page.records:
        pairs = zip(record.numbers.tolist(), record.sequences.tolist(), strict=True)
        wanting = [(slots[number], sequence) for number, sequence in pairs if number in slots]
        if wanting:
            places, sequences = zip(*wanting, strict=True)
            notifications.append(Notification(record.position, record.document, places, sequences))
    names = [f"subscriptions/{subscription_id}" for subscription_id in ids.values()]
    return NotificationPage(names, notifications, page.through, page.dropped)


def _check_number(n_subscriptions: int) -> None:
    if n_subscriptions > MAX_SUBSCRIPTIONS:
        hint = "ask for some at a time, or for subscriptions/-"
        raise LimitExceeded("subscriptions in a call", MAX_SUBSCRIPTIONS, n_subscriptions, hint)


def _check_at_least(least: int, **fields: int) -> None:
    for field, found in fields.items():
        if found < least:
            raise InvalidRequest(field, f"expected {least} or more, found {found}", found=found)
