"""Streams whose filters live as long as they do: nothing is kept, nothing is acknowledged.

    ids         first   first+1   ...         numbers from EPHEMERAL upward, one stretch a stream, never used again
    slot        0       1         ...

A stream without credit, or one that is not read, has a bounded buffer. When that is full it is told goodbye, and the
publisher never waits.
"""

from collections.abc import Callable, Iterable

import numpy as np

from server.deliveries.environment import Environment
from server.deliveries.events import Credit, GoodbyeReason, Heartbeat, Message
from server.deliveries.leases import size_of, weight_of
from server.deliveries.stream import Stream
from server.documents import Document

__all__ = ["EPHEMERAL", "EphemeralAttachment", "EphemeralRoutes"]

EPHEMERAL = 1 << 48
NO_SEQUENCES = np.zeros(0, np.int64)


class EphemeralAttachment(Stream):
    """A stream with filters of its own. Acks and the like mean nothing here and are passed over."""

    __slots__ = ("_buffer", "_buffered_bytes", "_on_close", "first", "n_filters")

    def __init__(
        self,
        environment: Environment,
        ids: np.ndarray,
        credit: Credit,
        heartbeat: float,
        on_close: Callable[["EphemeralAttachment"], None],
    ) -> None:
        super().__init__(environment, credit, heartbeat)
        self.first, self.n_filters = int(ids[0]), len(ids)
        self._buffer: list[tuple[Message, int]] = []
        self._buffered_bytes = 0
        self._on_close = on_close
        self.join(self.slots)

    @property
    def slots(self) -> list[tuple[int, str]]:
        """Slots are places in the list of filters, which have no names."""
        return [(slot, "") for slot in range(self.n_filters)]

    def ack(self, message_ids: Iterable[int]) -> None:
        """There is nothing to acknowledge."""

    def nack(self, message_ids: Iterable[int], delay: float | None = None) -> None:
        """There is nothing to refuse."""

    def extend(self, message_ids: Iterable[int], seconds: float) -> None:
        """There is no deadline."""

    def grant(self, messages: int, size: int) -> None:
        """So many more messages, and so many more bytes of documents, may be sent."""
        self.credit_messages += messages
        self.credit_bytes += size
        self._wake()

    async def close(self) -> None:
        """The stream has ended, and its filters with it."""
        self._on_close(self)

    def put(self, document: Document, size: int, slots: np.ndarray) -> None:
        """A document for some filters; too much of it ends the stream."""
        if self.is_leaving:
            return
        self._buffer.append((Message(0, document, slots, NO_SEQUENCES, 1), size))
        self._buffered_bytes += weight_of(size, len(slots))
        if self._is_full():
            self._buffer.clear()
            self.goodbye(GoodbyeReason.TOO_SLOW)
        self._wake()

    def _is_full(self) -> bool:
        settings = self._environment.settings
        too_many = len(self._buffer) > settings.ephemeral_buffer_messages
        return too_many or (self._buffered_bytes > settings.ephemeral_buffer_bytes and len(self._buffer) > 1)

    def _take_messages(self) -> list[Message]:
        messages: list[Message] = []
        settings, weight = self._environment.settings, 0
        for message, size in self._buffer[: min(settings.max_batch_messages, max(self.credit_messages, 0))]:
            weight += weight_of(size, len(message.slots))
            if self.credit_bytes <= 0 or (messages and weight > settings.max_batch_bytes):
                break
            messages.append(message)
            self.credit_bytes -= size
        self.credit_messages -= len(messages)
        self._buffered_bytes -= sum(weight_of(size, len(left.slots)) for left, size in self._buffer[: len(messages)])
        del self._buffer[: len(messages)]
        return messages

    def _beat(self) -> Heartbeat:
        self._beat_due = False
        oldest = self._buffer[0][0].document.publish_time if self._buffer else self._environment.clock()
        return Heartbeat(len(self._buffer), max(self._environment.clock() - oldest, 0.0))


class EphemeralRoutes:
    """From an id to the stream it belongs to: stretches of ids, in order."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._firsts = np.zeros(0, np.int64)
        self._streams: list[EphemeralAttachment] = []

    @property
    def streams(self) -> list[EphemeralAttachment]:
        return list(self._streams)

    def attach(self, ids: np.ndarray, credit: Credit, heartbeat: float) -> EphemeralAttachment:
        """A stream for the filters with these ids, which must follow each other."""
        if not len(ids) or ids[0] < EPHEMERAL or int(ids[-1]) - int(ids[0]) != len(ids) - 1:
            raise ValueError(f"expected ids that follow each other from {EPHEMERAL} upward, found {ids}")
        stream = EphemeralAttachment(self._environment, ids, credit, heartbeat, self._close)
        place = int(np.searchsorted(self._firsts, stream.first))
        self._firsts = np.insert(self._firsts, place, stream.first)
        self._streams.insert(place, stream)
        return stream

    def dispatch(self, document: Document, ids: np.ndarray) -> None:
        """Put a document on the streams of these ids, which ascend; those of streams that are gone are passed over."""
        if not len(ids) or not self._streams:
            return
        size = size_of(document)
        places = np.searchsorted(self._firsts, ids, side="right") - 1
        starts = np.flatnonzero(np.append(True, places[1:] != places[:-1])).tolist()
        for start, end in zip(starts, [*starts[1:], len(ids)], strict=True):
            if places[start] >= 0:
                self._put(self._streams[places[start]], document, size, ids[start:end])

    def _put(self, stream: EphemeralAttachment, document: Document, size: int, ids: np.ndarray) -> None:
        slots = ids - stream.first
        slots = slots[: int(np.searchsorted(slots, stream.n_filters))]
        if len(slots):
            stream.put(document, size, slots.astype(np.uint32))

    def _close(self, stream: EphemeralAttachment) -> None:
        if stream in self._streams:
            place = self._streams.index(stream)
            del self._streams[place]
            self._firsts = np.delete(self._firsts, place)
