"""DeliveryService: notifications out."""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from typing import Any

from pathsieve.v1 import delivery_service_pb2 as wire
from pathsieve.v1.delivery_service_pb2_grpc import DeliveryServiceServicer
from server.broker import Broker
from server.deliveries import Attachment, AttachMode, Credit, DeadLetter, EphemeralAttachment
from server.errors import DeliveredElsewhere, InvalidRequest
from server.reading import Mark, Notification
from server.rpc.attach_stream import AttachStream
from server.rpc.delivery_events import credit_from
from server.rpc.gate import caller
from server.rpc.open_streams import OpenStreams
from server.rpc.paging import page_size_from, page_token_from, page_token_to
from server.rpc.translate import document_to, seconds_from, timestamp_from, timestamp_to
from server.rpc.translate_subscriptions import filter_from, id_from

__all__ = ["DeliveryServicer"]

ALL = "-"
MODES = {
    wire.ATTACH_MODE_UNSPECIFIED: AttachMode.EXCLUSIVE,
    wire.ATTACH_MODE_EXCLUSIVE: AttachMode.EXCLUSIVE,
    wire.ATTACH_MODE_SHARED: AttachMode.SHARED,
}


class DeliveryServicer(DeliveryServiceServicer):
    """Translates for the broker, which is there once the server is ready."""

    def __init__(self, broker: Callable[[], Broker], streams: OpenStreams) -> None:
        self._broker = broker
        self._streams = streams

    async def Attach(  # type: ignore[override]  # writes to the context
        self, request_iterator: AsyncIterator[wire.AttachRequest], context: Any
    ) -> None:
        start = _start(await anext(request_iterator, None))
        with self._streams.admit(caller()) as revoked:
            try:
                attachment = await self._attached(start)
            except DeliveredElsewhere as elsewhere:
                await context.write(
                    wire.AttachResponse(elsewhere=wire.Elsewhere(placements=_placements(elsewhere.names)))
                )
                return
            try:
                await AttachStream(attachment, request_iterator, context).run(revoked)
            finally:
                await self._broker().detach(attachment)

    async def _attached(self, start: wire.Start) -> Attachment | EphemeralAttachment:
        tenant, heartbeat = caller().tenant, seconds_from(start.heartbeat)
        credit = Credit(*credit_from(start.credit, "start.credit"))
        if start.ephemeral and start.subscriptions:
            raise InvalidRequest("start", "expected either subscriptions or ephemeral filters, found both")
        if start.ephemeral:
            filters = [filter_from(message, f"start.ephemeral[{i}]") for i, message in enumerate(start.ephemeral)]
            return await self._broker().attach_ephemeral(tenant, filters, credit, heartbeat)
        return await self._broker().attach(
            tenant, _ids(start), _mode(start), start.consumer, credit, heartbeat, start.here_only
        )

    async def Pull(self, request: wire.PullRequest, context: Any) -> wire.PullResponse:
        subscription_id = id_from(request.subscription, "subscription")
        size = page_size_from(request.max_messages, "max_messages")
        pulled = await self._broker().pull(caller().tenant, subscription_id, size, seconds_from(request.wait))
        messages = (
            wire.PulledMessage(sequence=one.sequence, document=document_to(one.document), attempt=one.attempt)
            for one in pulled
        )
        return wire.PullResponse(messages=messages)

    async def Acknowledge(self, request: wire.AcknowledgeRequest, context: Any) -> wire.AcknowledgeResponse:
        subscription_id = id_from(request.subscription, "subscription")
        await self._broker().acknowledge(caller().tenant, subscription_id, request.sequences)
        return wire.AcknowledgeResponse()

    async def ModifyAckDeadline(
        self, request: wire.ModifyAckDeadlineRequest, context: Any
    ) -> wire.ModifyAckDeadlineResponse:
        subscription_id, seconds = id_from(request.subscription, "subscription"), seconds_from(request.deadline)
        await self._broker().modify_ack_deadline(caller().tenant, subscription_id, request.sequences, seconds)
        return wire.ModifyAckDeadlineResponse()

    async def Seek(self, request: wire.SeekRequest, context: Any) -> wire.SeekResponse:
        subscription_id = id_from(request.subscription, "subscription")
        target = request.WhichOneof("target")
        time = timestamp_from(request.time) if target == "time" else None
        sequence = request.sequence if target == "sequence" else None
        found = await self._broker().seek(caller().tenant, subscription_id, time=time, sequence=sequence)
        return wire.SeekResponse(next_sequence=found)

    async def ListDeadLetters(self, request: wire.ListDeadLettersRequest, context: Any) -> wire.ListDeadLettersResponse:
        subscription_id, size = id_from(request.subscription, "subscription"), page_size_from(request.page_size)
        after = _sequence_from(request.page_token)
        letters = await self._broker().dead_letters(caller().tenant, subscription_id, after, size)
        is_last = len(letters) < size
        return wire.ListDeadLettersResponse(
            dead_letters=[_dead_letter_to(letter) for letter in letters],
            next_page_token="" if is_last else page_token_to(str(letters[-1].sequence)),
        )

    async def ReadNotifications(
        self, request: wire.ReadNotificationsRequest, context: Any
    ) -> wire.ReadNotificationsResponse:
        subscription_id = id_from(request.subscription, "subscription")
        limits = request.max_messages, request.max_bytes
        page = await self._broker().read(caller().tenant, subscription_id, request.after, request.through, *limits)
        return wire.ReadNotificationsResponse(
            subscriptions=page.names,
            notifications=[_notification_to(one) for one in page.notifications],
            through=page.through,
            dropped=page.dropped,
        )

    async def GetRanges(self, request: wire.GetRangesRequest, context: Any) -> wire.GetRangesResponse:
        ids = _ids_from(request.subscriptions, "subscriptions")
        if ids == [ALL]:
            found = [await self._broker().tenant_range(caller().tenant, request.after, request.max_documents)]
        else:
            found = list(await self._broker().ranges(caller().tenant, ids))
        ranges = [
            wire.Range(subscription=one.name, dropped=one.dropped, head=one.head, through=one.through) for one in found
        ]
        return wire.GetRangesResponse(ranges=ranges)

    async def AcknowledgeThrough(
        self, request: wire.AcknowledgeThroughRequest, context: Any
    ) -> wire.AcknowledgeThroughResponse:
        ids = _ids_from([mark.subscription for mark in request.marks], "marks.subscription")
        marks = [Mark(one, mark.through, mark.after) for one, mark in zip(ids, request.marks, strict=True)]
        names = await self._broker().acknowledge_through(caller().tenant, marks, request.here_only)
        return wire.AcknowledgeThroughResponse(elsewhere=_placements(names))


def _start(request: wire.AttachRequest | None) -> wire.Start:
    kind = request.WhichOneof("kind") if request else None
    if request is None or kind != "start":
        raise InvalidRequest("kind", f"expected start in the first request, found {kind or 'nothing'}")
    return request.start


def _ids(start: wire.Start) -> list[str]:
    """The ids of the subscriptions, or the one that stands for all."""
    return _ids_from(start.subscriptions, "start.subscriptions")


def _ids_from(names: Iterable[str], field: str) -> list[str]:
    ids = [id_from(name, field) for name in names]
    if ALL in ids and len(ids) > 1:
        raise InvalidRequest(field, "expected subscriptions/- alone, since it stands for all")
    return ids


def _placements(names: Mapping[str, Sequence[str]]) -> list[wire.Placement]:
    return [wire.Placement(address=address, subscriptions=some) for address, some in names.items()]


def _notification_to(notification: Notification) -> wire.Notification:
    return wire.Notification(
        document=document_to(notification.document),
        position=notification.position,
        slots=notification.slots,
        sequences=notification.sequences,
    )


def _mode(start: wire.Start) -> AttachMode:
    if start.mode not in MODES:
        raise InvalidRequest("start.mode", f"expected exclusive or shared, found {start.mode}")
    return MODES[start.mode]


def _sequence_from(token: str) -> int:
    key = page_token_from(token)
    if key and not key.isdecimal():
        raise InvalidRequest("page_token", f"expected the next_page_token of the page before, found {token[:200]!r}")
    return int(key or 0)


def _dead_letter_to(letter: DeadLetter) -> wire.DeadLetter:
    return wire.DeadLetter(
        sequence=letter.sequence,
        document=document_to(letter.document),
        attempts=letter.attempts,
        time=timestamp_to(letter.time),
        reason=letter.reason,
    )
