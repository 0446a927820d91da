"""What one may do with notifications: have them delivered, ask for them, go back to older ones."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from datetime import datetime

from google.protobuf.timestamp_pb2 import Timestamp

from pathsieve.attaching import AsyncAttachment
from pathsieve.calls import Caller
from pathsieve.documents import from_document, from_timestamp
from pathsieve.messages import DeadLetter, Pulled
from pathsieve.subscriptions import Filter, Named, Subscription, name_of
from pathsieve.v1 import delivery_service_pb2 as pb
from pathsieve.wishes import to_duration, to_filter

__all__ = ["CREDIT_BYTES", "CREDIT_MESSAGES", "EXCLUSIVE", "SHARED", "DeliveryCalls"]

EXCLUSIVE, SHARED = "exclusive", "shared"
MODES = {EXCLUSIVE: pb.ATTACH_MODE_EXCLUSIVE, SHARED: pb.ATTACH_MODE_SHARED}

CREDIT_MESSAGES, CREDIT_BYTES = 1000, 16 << 20
PAGE = 100


class DeliveryCalls:
    """Receive notifications, at least once each, in the order of their sequence numbers."""

    _caller: Caller

    def __init__(self) -> None:
        super().__init__()
        self._attachments: set[AsyncAttachment] = set()

    async def detach_all(self) -> None:
        """Leave all streams; what has been said about messages is sent first."""
        await asyncio.gather(*(attachment.close() for attachment in list(self._attachments)))

    def attach(
        self,
        subscriptions: Named | Sequence[Named] = (),
        *,
        ephemeral: Filter | Sequence[Filter] = (),
        mode: str = EXCLUSIVE,
        consumer: str = "",
        auto_ack: bool = False,
        credit: int = CREDIT_MESSAGES,
        credit_bytes: int = CREDIT_BYTES,
    ) -> AsyncAttachment:
        """Messages of one subscription, of several, of all (`"-"`), or of filters that live as long as this does.

        `shared` lets several consumers with the same list have a part of the messages each. A `consumer` that comes
        back under its name takes over from its former self. `credit` bounds what may wait here.
        """
        names = _several(subscriptions)
        filters = [ephemeral] if isinstance(ephemeral, Filter) else list(ephemeral)
        if bool(names) == bool(filters):
            raise ValueError("expected either subscriptions or ephemeral=…, found " + ("both" if names else "neither"))
        if mode not in MODES:
            raise ValueError(f"expected mode {EXCLUSIVE!r} or {SHARED!r}, found {mode!r}")
        start = pb.Start(
            subscriptions=names,
            ephemeral=map(to_filter, filters),
            mode=MODES[mode],
            consumer=consumer,
            credit=pb.Credit(messages=credit, bytes=credit_bytes),
        )
        expressions = [chosen.expression for chosen in filters]
        return AsyncAttachment(self._caller, start, expressions, auto_ack, self._attachments)

    async def pull(self, subscription: Named, max_messages: int = 100, wait: float = 0.0) -> Sequence[Pulled]:
        """Some messages now; `wait` so many seconds for the first. `acknowledge` them before their deadline."""
        name = name_of(subscription)
        request = pb.PullRequest(subscription=name, max_messages=max_messages, wait=to_duration(wait))
        response = await self._caller.unary(lambda endpoint: endpoint.delivery.Pull, request, longer=wait, about=name)
        return [Pulled(name, one.sequence, from_document(one.document), one.attempt) for one in response.messages]

    async def acknowledge(self, subscription: Named, messages: Iterable[Pulled | int]) -> None:
        """These messages, or sequence numbers, are dealt with. When this returns, that is durable."""
        request = pb.AcknowledgeRequest(subscription=name_of(subscription), sequences=_sequences(messages))
        await self._caller.unary(lambda endpoint: endpoint.delivery.Acknowledge, request, about=request.subscription)

    async def modify_ack_deadline(self, subscription: Named, messages: Iterable[Pulled | int], seconds: float) -> None:
        """These take longer: so many seconds from now. 0 returns them for redelivery."""
        request = pb.ModifyAckDeadlineRequest(
            subscription=name_of(subscription), sequences=_sequences(messages), deadline=to_duration(seconds)
        )
        await self._caller.unary(
            lambda endpoint: endpoint.delivery.ModifyAckDeadline, request, about=request.subscription
        )

    async def seek(self, subscription: Named, *, time: datetime | None = None, sequence: int | None = None) -> int:
        """Deliver again from an earlier point, or go on at a later one; the sequence that comes next."""
        if (time is None) == (sequence is None):
            raise ValueError("expected either time=… or sequence=…, found " + ("neither" if time is None else "both"))
        request = pb.SeekRequest(subscription=name_of(subscription))
        if time is not None:
            request.time.CopyFrom(_timestamp(time))
        else:
            request.sequence = sequence or 0
        response = await self._caller.unary(
            lambda endpoint: endpoint.delivery.Seek, request, about=request.subscription
        )
        return response.next_sequence

    async def dead_letters(self, subscription: Named) -> AsyncIterator[DeadLetter]:
        """The messages of a subscription that were given up."""
        name, token = name_of(subscription), ""
        while True:
            request = pb.ListDeadLettersRequest(subscription=name, page_size=PAGE, page_token=token)
            page = await self._caller.unary(lambda endpoint: endpoint.delivery.ListDeadLetters, request, about=name)
            for letter in page.dead_letters:
                yield _dead_letter(name, letter)
            token = page.next_page_token
            if not token:
                break


def _several(subscriptions: Named | Sequence[Named]) -> list[str]:
    if isinstance(subscriptions, str | Subscription):
        return [name_of(subscriptions)]
    return [name_of(subscription) for subscription in subscriptions]


def _sequences(messages: Iterable[Pulled | int]) -> list[int]:
    return [message.sequence if isinstance(message, Pulled) else message for message in messages]


def _timestamp(time: datetime) -> Timestamp:
    if time.tzinfo is None:
        raise ValueError("expected a time with its zone, such as datetime.now(UTC), found one without")
    timestamp = Timestamp()
    timestamp.FromDatetime(time)
    return timestamp


def _dead_letter(name: str, letter: pb.DeadLetter) -> DeadLetter:
    return DeadLetter(
        name,
        letter.sequence,
        from_document(letter.document),
        letter.attempts,
        from_timestamp(letter.time),
        letter.reason,
    )
