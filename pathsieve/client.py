"""A client for programs without an event loop.

    with Client("localhost:7443", token="…") as client:
        client.subscribe(id="ibm", xpath="//quote[@symbol='IBM']")
        client.publish("<quote symbol='IBM'/>")
        for message in client.attach("ibm"):
            print(message.xml)
            message.ack()

It is `AsyncClient` on a loop in the background, so the two cannot differ. What is iterated over comes in batches: one
change of threads for many messages.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import Self, Unpack

from pathsieve.async_client import PATIENCE, TIMEOUT, AsyncClient
from pathsieve.attaching import AsyncAttachment
from pathsieve.attachment import Attachment
from pathsieve.background import background
from pathsieve.cluster import Cluster
from pathsieve.delivery_calls import CREDIT_BYTES, CREDIT_MESSAGES, EXCLUSIVE
from pathsieve.endpoints import DEFAULT_ADDRESS, Tls
from pathsieve.importing import batches_of
from pathsieve.messages import DeadLetter, Notification, Page, Pulled, Range
from pathsieve.publish_calls import AnyDocument, StagedPart
from pathsieve.results import Committed, Imported, Published, Staged, Tested
from pathsieve.subscriptions import Filter, Named, Subscription
from pathsieve.values import AttributeValue
from pathsieve.wishes import Wish

__all__ = ["Client"]


class Client:
    """Talks to one server, or to one of several that are the same service. `AsyncClient` tells about the arguments.

    Several threads may use one client. An iterator that it returns is for one of them.
    """

    def __init__(
        self,
        address: str | Sequence[str] = DEFAULT_ADDRESS,
        *,
        token: str = "",
        tls: Tls = False,
        timeout: float = TIMEOUT,
        patience: float = PATIENCE,
    ) -> None:
        self._run = background().run
        self._core = AsyncClient(address, token=token, tls=tls, timeout=timeout, patience=patience)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Leave streams, then close the connection; other calls that are on their way are given up."""
        self._run(self._core.close())

    # -- subscriptions -----------------------------------------------------------------------------

    def subscribe(self, **wish: Unpack[Wish]) -> Subscription:
        """Create a subscription; every document that is accepted from now on meets it."""
        return self._run(self._core.subscribe(**wish))

    def get(self, subscription: Named) -> Subscription:
        """A subscription as it is now, and how far its delivery has come."""
        return self._run(self._core.get(subscription))

    def list(self) -> Iterator[Subscription]:
        """All subscriptions, in the order of their names."""
        token = ""
        while True:
            found, token, _ = self._run(self._core.page(token))
            yield from found
            if not token:
                break

    def count(self) -> int:
        """How many subscriptions there are."""
        return self._run(self._core.page(size=1))[2]

    def update(self, subscription: Named, etag: str = "", **wish: Unpack[Wish]) -> Subscription:
        """Change what is given, and nothing else; `EtagMismatch` if somebody else has changed it since."""
        return self._run(self._core.update(subscription, etag, **wish))

    def delete(self, subscription: Named, etag: str = "") -> None:
        """Delete a subscription, and what waits for it; with an etag only if nobody has changed it since."""
        self._run(self._core.delete(subscription, etag))

    def test(self, subject: Filter | Named, document: AnyDocument) -> Tested:
        """Would a filter, or a subscription, want this document, and why? Nothing is stored or delivered."""
        return self._run(self._core.test(subject, document))

    def import_subscriptions(self, wishes: Iterable[Wish]) -> Iterator[Imported]:
        """Create many, fast, as one iterates: one result for each, in order. A refused one does not stop the others."""
        stream = self._run(self._core.open_import())
        try:
            for batch in batches_of(wishes):
                yield from self._run(stream.send(batch))
            self._run(stream.finish())
            while ready := self._run(stream.results()):
                yield from ready
        finally:
            self._run(stream.aclose())

    # -- documents ---------------------------------------------------------------------------------

    def publish(
        self,
        document: AnyDocument = b"",
        *,
        id: str = "",
        source: str = "",
        attributes: Mapping[str, AttributeValue] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Published:
        """Publish one document; when this returns, what it matched is durable."""
        return self._run(self._core.publish(document, id=id, source=source, attributes=attributes, headers=headers))

    def publish_many(self, documents: Iterable[AnyDocument]) -> Iterator[Published]:
        """Publish many, fast, as one iterates: one result for each, in order.

        A refused document has an `error` and does not stop the others. Documents travel in batches, many at a time, as
        the server has room. After a broken connection those that were not answered are sent again, and none is
        delivered twice.
        """
        pipeline = self._run(self._core.open_pipeline())
        try:
            for document in documents:
                pipeline.put(self._core.message_of(document))
                if pipeline.is_full:
                    self._run(pipeline.room())
                yield from pipeline.take()
            pipeline.finish()
            while ready := self._run(pipeline.results()):
                yield from ready
        finally:
            self._run(pipeline.aclose())

    def stage(
        self,
        query: str,
        batch: int,
        documents: Iterable[AnyDocument],
        *,
        partition: int = 0,
        attempt: int = 0,
        timeout: float | None = None,
    ) -> Staged:
        """Hand in a part of a batch: what one attempt at one partition has to publish. `commit` publishes it.

        It is not repeated by itself: repeat it with another attempt, which goes to the next server.
        """
        given = list(documents)  # here, and not on the loop that other calls need
        staging = self._core.stage(query, batch, given, partition=partition, attempt=attempt, timeout=timeout)
        return self._run(staging)

    def commit(self, query: str, batch: int, parts: Iterable[StagedPart]) -> Committed:
        """Publish the staged parts of a batch, given as (partition, attempt), once: again, it has no effect.

        With (partition, attempt, documents) nothing is published unless so many documents are staged there.
        """
        return self._run(self._core.commit(query, batch, parts))

    def abort(self, query: str, batch: int) -> None:
        """Forget what was staged of a batch that is not committed."""
        self._run(self._core.abort(query, batch))

    # -- notifications -----------------------------------------------------------------------------

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
    ) -> Attachment:
        """Messages of one subscription, of several, of all (`"-"`), or of filters that live as long as this does.

        When this returns, one is attached. With `auto_ack` a message is acknowledged when the next one is asked for.
        """

        async def attached() -> AsyncAttachment:
            attachment = self._core.attach(
                subscriptions,
                ephemeral=ephemeral,
                mode=mode,
                consumer=consumer,
                auto_ack=auto_ack,
                credit=credit,
                credit_bytes=credit_bytes,
            )
            return await attachment.ready()

        return Attachment(self._run(attached()), self._run)

    def pull(self, subscription: Named, max_messages: int = 100, wait: float = 0.0) -> Sequence[Pulled]:
        """Some messages now; `wait` so many seconds for the first. `acknowledge` them before their deadline."""
        return self._run(self._core.pull(subscription, max_messages, wait))

    def acknowledge(self, subscription: Named, messages: Iterable[Pulled | int]) -> None:
        """These messages, or sequence numbers, are dealt with. When this returns, that is durable."""
        self._run(self._core.acknowledge(subscription, messages))

    def modify_ack_deadline(self, subscription: Named, messages: Iterable[Pulled | int], seconds: float) -> None:
        """These take longer: so many seconds from now. 0 returns them for redelivery."""
        self._run(self._core.modify_ack_deadline(subscription, messages, seconds))

    def seek(self, subscription: Named, *, time: datetime | None = None, sequence: int | None = None) -> int:
        """Deliver again from an earlier point, or go on at a later one; the sequence that comes next."""
        return self._run(self._core.seek(subscription, time=time, sequence=sequence))

    def dead_letters(self, subscription: Named) -> Iterator[DeadLetter]:
        """The messages of a subscription that were given up."""
        letters = self._core.dead_letters(subscription)
        while (letter := self._run(anext(letters, None))) is not None:
            yield letter

    def ranges(self, subscriptions: Sequence[Named]) -> Sequence[Range]:
        """What there is to read of some subscriptions, in their order: sequences."""
        return self._run(self._core.ranges(subscriptions))

    def tenant_range(self, after: int = 0, max_documents: int = 0) -> Range:
        """What there is to read of all subscriptions together: positions. `through` is where the next `max_documents`
        documents after a position end; `after`, if there is none."""
        return self._run(self._core.tenant_range(after, max_documents))

    def read(self, subscription: Named, after: int = 0, through: int | None = None) -> Iterator[Notification]:
        """What is in the log of one subscription, or of all (`"-"`), in a range; None: up to the newest that there is
        now. Takes nothing, and nobody who is attached notices."""
        notifications = self._core.read(subscription, after, through)
        while (notification := self._run(anext(notifications, None))) is not None:
            yield notification

    def read_page(
        self, subscription: Named, after: int, through: int, max_messages: int = 0, max_bytes: int = 0
    ) -> Page:
        """The first part of a range, as much as the server likes to send at once."""
        return self._run(self._core.read_page(subscription, after, through, max_messages, max_bytes))

    def acknowledge_through(self, marks: Mapping[str, int], *, after: int = 0) -> None:
        """All up to these sequences is dealt with, durably when this returns; `{"-": position}` is of all that have a
        document after position `after`, up to their last one there."""
        self._run(self._core.acknowledge_through(marks, after=after))

    # -- the cluster -------------------------------------------------------------------------------

    def cluster(self) -> Cluster:
        """The cluster as the server that is asked sees it; `NotInCluster` if that stands alone."""
        return self._run(self._core.cluster())

    def watch_cluster(self) -> Iterator[Cluster]:
        """The cluster now, and again whenever it changes; after a break another replica is asked."""
        changes = self._core.watch_cluster()
        try:
            while (cluster := self._run(anext(changes, None))) is not None:
                yield cluster
        finally:
            self._run(changes.aclose())

    def drain(self, replica: str = "", *, undo: bool = False) -> None:
        """Have a replica hand over all that it owns, or take its share again; no name is the one that is asked."""
        self._run(self._core.drain(replica, undo=undo))
