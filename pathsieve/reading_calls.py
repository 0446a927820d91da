"""Reading what is in the log without taking it, as often as one likes, and acknowledging by a point.

    ranges, tenant_range ──▶ read_page ──▶ read_page ──▶ ...      any server, any replica
    acknowledge_through ──▶ who delivers it; of several replicas, each its own part

Of one subscription by sequences; of all together (`"-"`) by positions of the log, where a document has one position
however many want it. Each page is a call of its own, so a failure costs a page and the next address goes on.
"""

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from pathsieve.calls import Caller, Pauses
from pathsieve.errors import PathSieveError, WrongReplica
from pathsieve.messages import Notification, Page, Range
from pathsieve.statuses import is_passing
from pathsieve.subscriptions import Named, name_of
from pathsieve.v1 import delivery_service_pb2 as pb

__all__ = ["ReadingCalls"]

Value = TypeVar("Value")

ALL = "subscriptions/-"
NAMES_AT_ONCE = 1000


class ReadingCalls:
    """Read notifications. What is read is neither leased nor acknowledged."""

    _caller: Caller

    async def ranges(self, subscriptions: Sequence[Named]) -> Sequence[Range]:
        """What there is to read of some subscriptions, in their order: sequences."""
        found: list[Range] = []
        for names in _in_blocks([name_of(one) for one in subscriptions]):
            found += await self._ranges(pb.GetRangesRequest(subscriptions=names))
        return found

    async def tenant_range(self, after: int = 0, max_documents: int = 0) -> Range:
        """What there is to read of all subscriptions together: positions. `through` is where the next `max_documents`
        documents after a position end; `after`, if there is none."""
        request = pb.GetRangesRequest(subscriptions=[ALL], after=after, max_documents=max_documents)
        return (await self._ranges(request))[0]

    async def _ranges(self, request: pb.GetRangesRequest) -> list[Range]:
        response = await self._caller.unary(lambda endpoint: endpoint.delivery.GetRanges, request)
        return [Range(one.subscription, one.dropped, one.head, one.through) for one in response.ranges]

    async def read(
        self, subscription: Named, after: int = 0, through: int | None = None
    ) -> AsyncIterator[Notification]:
        """What is in the log of one subscription, or of all (`"-"`), in a range; None: up to the newest that there is
        now. Takes nothing, and nobody who is attached notices."""
        if through is None:
            is_all = name_of(subscription) == ALL
            through = (await self.tenant_range() if is_all else (await self.ranges([subscription]))[0]).head
        while after < through:
            page = await self.read_page(subscription, after, through)
            for notification in page.notifications:
                yield notification
            after = page.through

    async def read_page(
        self, subscription: Named, after: int, through: int, max_messages: int = 0, max_bytes: int = 0
    ) -> Page:
        """The first part of a range, as much as the server likes to send at once."""
        request = pb.ReadNotificationsRequest(
            subscription=name_of(subscription),
            after=after,
            through=through,
            max_messages=max_messages,
            max_bytes=max_bytes,
        )
        response = await self._caller.unary(lambda endpoint: endpoint.delivery.ReadNotifications, request)
        names = list(response.subscriptions)
        notifications = [Notification(one, names) for one in response.notifications]
        return Page(notifications, response.through, response.dropped)

    async def acknowledge_through(self, marks: Mapping[str, int], *, after: int = 0) -> None:
        """All up to these sequences is dealt with, durably when this returns; `{"-": position}` is of all that have a
        document after position `after`, up to their last one there."""
        given = [pb.Mark(subscription=name_of(one), through=through, after=after) for one, through in marks.items()]
        for some in _in_blocks(given):
            await self._acknowledge(some)

    async def _acknowledge(self, marks: list[pb.Mark]) -> None:
        """Until each has been taken by the replica that delivers it."""
        pauses = Pauses(self._caller.patience)
        while True:
            request = pb.AcknowledgeThroughRequest(marks=marks)
            response = await self._caller.unary(lambda endpoint: endpoint.delivery.AcknowledgeThrough, request)
            marks, error = await self._follow_marks(marks, response.elsewhere)
            if error is None:
                return
            await pauses.pause(error)

    async def _follow_marks(
        self, marks: list[pb.Mark], elsewhere: Iterable[pb.Placement]
    ) -> tuple[list[pb.Mark], PathSieveError | None]:
        """Ask the replicas that were named; what has to be asked for again, and why."""
        left: list[pb.Mark] = []
        error: PathSieveError | None = None
        for placement in elsewhere:
            names = set(placement.subscriptions)
            part = [mark for mark in marks if mark.subscription in names]
            failed = await self._acknowledge_at(placement.address, part)
            if failed is not None:
                error, left = failed, [*left, *part]
        return left[:1] if left and left[0].subscription == ALL else left, error

    async def _acknowledge_at(self, address: str, marks: list[pb.Mark]) -> PathSieveError | None:
        nobody = WrongReplica(f"no replica delivers {marks[0].subscription} just now", {"address": ""})
        if not address:
            return nobody
        request = pb.AcknowledgeThroughRequest(marks=marks, here_only=marks[0].subscription == ALL)
        try:
            response = await self._caller.at(address, lambda endpoint: endpoint.delivery.AcknowledgeThrough, request)
        except PathSieveError as failed:
            if not is_passing(failed):
                raise
            return failed
        return nobody if response.elsewhere else None


def _in_blocks(values: list[Value]) -> Iterator[list[Value]]:
    for start in range(0, len(values), NAMES_AT_ONCE):
        yield values[start : start + NAMES_AT_ONCE]
