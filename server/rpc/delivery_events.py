"""What an attached stream is told, on the wire, and the credit it gives.

Everything is written into the response where it belongs, since a protobuf message that is given to another is copied.
"""

from pathsieve.v1 import delivery_service_pb2 as wire
from server.deliveries import Event, Goodbye, Heartbeat, Message, Messages
from server.errors import InvalidRequest
from server.rpc.packed import extend
from server.rpc.translate import document_to, duration_to

__all__ = ["credit_from", "response_of"]


def credit_from(credit: wire.Credit, field: str) -> tuple[int, int]:
    """Messages and bytes, neither of them taken back."""
    if credit.messages < 0 or credit.bytes < 0:
        raise InvalidRequest(field, f"expected 0 or more, found {credit.messages} messages and {credit.bytes} bytes")
    return credit.messages, credit.bytes


def response_of(event: Event) -> wire.AttachResponse:
    """The response that says it."""
    if isinstance(event, Messages):
        return _messages(event)
    if isinstance(event, Heartbeat):
        heartbeat = wire.Heartbeat(backlog=event.backlog, oldest_age=duration_to(event.oldest_age))
        return wire.AttachResponse(heartbeat=heartbeat)
    if isinstance(event, Goodbye):
        return wire.AttachResponse(goodbye=_goodbye(event))
    return wire.AttachResponse(slots=wire.Slots(slots=event.slots, names=event.names))


def _messages(event: Messages) -> wire.AttachResponse:
    response = wire.AttachResponse()
    add = response.messages.messages.add
    for message in event.messages:
        _fill(add(message_id=message.message_id, attempt=message.attempt), message)
    return response


def _fill(target: wire.Message, message: Message) -> None:
    extend(target, "slots", message.slots)
    extend(target, "sequences", message.sequences)
    target.document.CopyFrom(document_to(message.document))


def _goodbye(event: Goodbye) -> wire.Goodbye:
    reason = wire.GoodbyeReason.Value(f"GOODBYE_REASON_{event.reason.name}")
    return wire.Goodbye(reason=reason, message=event.message)
