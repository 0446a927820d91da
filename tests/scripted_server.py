"""A small real gRPC server that keeps everything in a dict, and that fails when it is told to.

    server = ScriptedServer();  address = await server.start()
    server.unavailable = 2                  the next two calls are answered UNAVAILABLE
    server.storeless = 2                    the next two documents are answered UNAVAILABLE, each by itself
    server.publish_breaks = [5]             the next stream takes five documents, answers none of them, and breaks
    server.attach_breaks = [3]              the next stream breaks after three messages
    server.goodbyes = [REASON]              the next stream ends with a goodbye, after what it had to say

It speaks the contract of `proto/` as the real one does. What it was told is there to look at: `starts`, `credits`,
`acked`, `accepted`.
"""

import asyncio
import functools
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import grpc
from google.protobuf.any_pb2 import Any as AnyMessage
from google.rpc import error_details_pb2, status_pb2
from lxml import etree

from pathsieve.v1 import delivery_service_pb2 as delivery
from pathsieve.v1 import delivery_service_pb2_grpc, publish_service_pb2_grpc, subscription_service_pb2_grpc
from pathsieve.v1 import publish_service_pb2 as publishing
from pathsieve.v1 import subscription_service_pb2 as subscribing
from pathsieve.v1.document_pb2 import Document
from pathsieve.v1.problem_pb2 import Problem
from pathsieve.v1.subscription_pb2 import Progress, Subscription

Code = grpc.StatusCode
ALL = "subscriptions/-"


@dataclass
class Notification:
    """A document, the sequence it has in each subscription that wants it, and whether it is dealt with."""

    document: Document
    sequences: dict[str, int]
    is_acked: bool = False
    attempt: int = 0


@dataclass
class ScriptedServer(
    subscription_service_pb2_grpc.SubscriptionServiceServicer,
    publish_service_pb2_grpc.PublishServiceServicer,
    delivery_service_pb2_grpc.DeliveryServiceServicer,
):
    token: str = ""
    unavailable: int = 0
    storeless: int = 0
    publish_breaks: list[int] = field(default_factory=list)
    attach_breaks: list[int] = field(default_factory=list)
    goodbyes: list[Any] = field(default_factory=list)
    credit: tuple[int, int] = (1000, 1 << 24)
    heartbeat: delivery.Heartbeat = field(default_factory=delivery.Heartbeat)

    subscriptions: dict[str, Subscription] = field(default_factory=dict)
    accepted: list[Document] = field(default_factory=list)
    seen: set[tuple[str, str]] = field(default_factory=set)
    notifications: list[Notification] = field(default_factory=list)
    dropped: int = 0
    page_size: int = 3
    staged: dict[tuple[str, int, int, int], list[Document]] = field(default_factory=dict)
    committed: dict[tuple[str, int], publishing.CommitBatchResponse] = field(default_factory=dict)
    starts: list[delivery.Start] = field(default_factory=list)
    credits: list[delivery.Credit] = field(default_factory=list)
    said: list[delivery.AttachRequest] = field(default_factory=list)
    batches: list[int] = field(default_factory=list)
    n_published: int = 0
    is_cut: bool = False

    async def start(self, port: int = 0, **options: Any) -> str:
        """Serve; the address. Port 0 takes any that is free."""
        self.server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
        for service in (subscription_service_pb2_grpc, publish_service_pb2_grpc, delivery_service_pb2_grpc):
            for name in [name for name in dir(service) if name.startswith("add_")]:
                getattr(service, name)(self, self.server)
        self.news = asyncio.Event()
        self.add_more()
        credentials = options.get("credentials")
        address = f"localhost:{port}"
        if credentials:
            port = self.server.add_secure_port(address, credentials)
        else:
            port = self.server.add_insecure_port(address)
        await self.server.start()
        return f"localhost:{port}"

    def add_more(self) -> None:
        """For those who have more services."""

    async def stop(self) -> None:
        await self.server.stop(grace=None)

    async def cut(self) -> None:
        """Break the stream that is attached."""
        self.is_cut = True
        self.news.set()

    async def check(self, context: Any) -> None:
        """Whatever is wrong with any call."""
        if self.token and ("authorization", f"Bearer {self.token}") not in tuple(context.invocation_metadata()):
            await abort(context, Code.UNAUTHENTICATED, "UNAUTHENTICATED", "expected a token")
        if self.unavailable:
            self.unavailable -= 1
            await abort(context, Code.UNAVAILABLE, "STORE_UNAVAILABLE", "not now", retry_after="0.01")

    # -- subscriptions -----------------------------------------------------------------------------

    async def CreateSubscription(self, request: Any, context: Any) -> Subscription:  # noqa: N802
        await self.check(context)
        problem = self.problem_of(request)
        if problem:
            facts = dict(problem.details)
            await abort(context, BY_NUMBER[problem.code], facts.pop("reason"), problem.message, **facts)
        return self.create(request)

    def problem_of(self, item: Any) -> Problem | None:
        name = f"subscriptions/{item.subscription_id}"
        if name in self.subscriptions:
            facts = {"reason": "ALREADY_EXISTS", "name": name}
            return Problem(code=Code.ALREADY_EXISTS.value[0], message=f"{name} exists already", details=facts)
        try:
            etree.XPath(item.subscription.filter.xpath or "1")
        except etree.XPathSyntaxError:
            facts = {"reason": "XPATH_SYNTAX_ERROR", "column": "8", "expected": "a node test"}
            message = f"expected a node test at column 8\n  {item.subscription.filter.xpath}\n         ^"
            return Problem(code=Code.INVALID_ARGUMENT.value[0], message=message, details=facts)
        return None

    def create(self, item: Any) -> Subscription:
        made = Subscription()
        made.CopyFrom(item.subscription)
        made.name = f"subscriptions/{item.subscription_id or f'made-{len(self.subscriptions)}'}"
        made.etag = "1"
        made.create_time.GetCurrentTime()
        self.subscriptions[made.name] = made
        return made

    async def ImportSubscriptions(self, requests: Any, context: Any) -> AsyncIterator[Any]:  # noqa: N802
        await self.check(context)
        index = 0
        async for request in requests:
            results = []
            for item in request.items:
                problem = self.problem_of(item)
                name = "" if problem else self.create(item).name
                results.append(subscribing.ImportResult(index=index, name=name, problem=problem))
                index += 1
            yield subscribing.ImportSubscriptionsResponse(results=results)

    async def GetSubscription(self, request: Any, context: Any) -> Subscription:  # noqa: N802
        await self.check(context)
        found = await self.find(request.name, context)
        mine = [note for note in self.notifications if found.name in note.sequences]
        n_done = sum(note.is_acked for note in mine)
        found.progress.CopyFrom(Progress(head_sequence=len(mine), floor_sequence=n_done, backlog=len(mine) - n_done))
        return found

    async def find(self, name: str, context: Any) -> Subscription:
        if name not in self.subscriptions:
            await abort(context, Code.NOT_FOUND, "NOT_FOUND", f"there is no {name}", name=name)
        return self.subscriptions[name]

    async def ListSubscriptions(self, request: Any, context: Any) -> Any:  # noqa: N802
        await self.check(context)
        names = sorted(self.subscriptions)
        start = int(request.page_token or 0)
        stop = start + (request.page_size or 100)
        return subscribing.ListSubscriptionsResponse(
            subscriptions=[self.subscriptions[name] for name in names[start:stop]],
            next_page_token=str(stop) if stop < len(names) else "",
            total_size=len(names),
        )

    async def UpdateSubscription(self, request: Any, context: Any) -> Subscription:  # noqa: N802
        await self.check(context)
        found = await self.find(request.subscription.name, context)
        await self.check_etag(found, request.subscription.etag, context)
        for path in request.update_mask.paths:
            found.ClearField(path)
        changed = Subscription()
        request.update_mask.MergeMessage(request.subscription, changed)
        found.MergeFrom(changed)
        found.etag = str(int(found.etag) + 1)
        return found

    async def check_etag(self, found: Subscription, etag: str, context: Any) -> None:
        if etag and etag != found.etag:
            await abort(context, Code.ABORTED, "ETAG_MISMATCH", "it has changed", name=found.name, etag=found.etag)

    async def DeleteSubscription(self, request: Any, context: Any) -> Any:  # noqa: N802
        await self.check(context)
        await self.check_etag(await self.find(request.name, context), request.etag, context)
        del self.subscriptions[request.name]
        return subscribing.DeleteSubscriptionResponse()

    async def TestFilter(self, request: Any, context: Any) -> Any:  # noqa: N802
        await self.check(context)
        wish = (await self.find(request.name, context)).filter if request.name else request.filter
        wanted = wants(wish, request.document)
        explanation = f"{'matches' if wanted else 'does not match'}: {wish.xpath}"
        return subscribing.TestFilterResponse(
            matches=wanted, explanation=explanation, attributes=request.document.attributes
        )

    # -- documents ---------------------------------------------------------------------------------

    async def Publish(self, request: Any, context: Any) -> Any:  # noqa: N802
        await self.check(context)
        self.n_published += 1
        return publishing.PublishResponse(results=self.accept(0, request.documents))

    def accept(self, index: int, documents: Any) -> list[Any]:
        return [self.accept_one(place, document) for place, document in enumerate(documents, index)]

    def accept_one(self, index: int, document: Document) -> Any:
        if document.xml and not is_xml(document.xml):
            facts = {"reason": "DOCUMENT_ERROR", "line": "1", "column": "6"}
            problem = Problem(code=Code.INVALID_ARGUMENT.value[0], message="no XML at line 1, column 6", details=facts)
            return publishing.PublishResult(index=index, problem=problem)
        if self.storeless:
            self.storeless -= 1
            facts = {"reason": "STORE_UNAVAILABLE", "retry_after": "0.01"}
            problem = Problem(code=Code.UNAVAILABLE.value[0], message="the store is away", details=facts)
            return publishing.PublishResult(index=index, problem=problem)
        if (document.source, document.id) in self.seen:
            return publishing.PublishResult(index=index, document_id=document.id, duplicate=True)
        kept = Document()
        kept.CopyFrom(document)
        kept.publish_time.GetCurrentTime()
        self.accepted.append(kept)
        self.seen.add((document.source, document.id))
        return publishing.PublishResult(index=index, document_id=document.id, matches=self.notify(kept))

    def notify(self, document: Document) -> int:
        sequences = {
            name: sum(name in note.sequences for note in self.notifications) + 1
            for name, subscription in self.subscriptions.items()
            if wants(subscription.filter, document)
        }
        self.notifications.append(Notification(document, sequences))
        self.news.set()
        return len(sequences)

    async def PublishStream(self, requests: Any, context: Any) -> AsyncIterator[Any]:  # noqa: N802
        await self.check(context)
        breaks_after = self.publish_breaks.pop(0) if self.publish_breaks else None
        documents_left, bytes_left = self.credit
        yield publishing.PublishStreamResponse(credit_documents=documents_left, credit_bytes=bytes_left)
        index = 0
        async for request in requests:
            n_bytes = sum(document.ByteSize() for document in request.documents)
            assert len(request.documents) <= documents_left
            assert n_bytes <= bytes_left
            self.batches.append(len(request.documents))
            if breaks_after is not None and index + len(request.documents) >= breaks_after:
                self.accept(index, request.documents[: breaks_after - index])
                await context.abort(Code.UNAVAILABLE, "the connection broke")
            results = self.accept(index, request.documents)
            index += len(results)
            yield publishing.PublishStreamResponse(
                results=reversed(results), credit_documents=len(results), credit_bytes=n_bytes
            )

    async def StageDocuments(self, requests: Any, context: Any) -> Any:  # noqa: N802
        await self.check(context)
        head = await anext(requests)
        documents = [document async for request in requests for document in request.documents]
        results = [
            publishing.PublishResult(index=place, problem=Problem(code=3, message="no XML"))
            for place, document in enumerate(documents)
            if not is_xml(document.xml)
        ]
        good = [document for document in documents if is_xml(document.xml)]
        self.staged[head.query, head.batch, head.part.partition, head.part.attempt] = good
        return publishing.StageDocumentsResponse(staged=len(good), refused=results)

    async def CommitBatch(self, request: Any, context: Any) -> Any:  # noqa: N802
        await self.check(context)
        key = request.query, request.batch
        if key in self.committed:
            again = publishing.CommitBatchResponse(repeated_commit=True)
            again.MergeFrom(self.committed[key])
            return again
        parts = [self.staged[*key, part.partition, part.attempt] for part in request.parts]
        results = [result for part in parts for result in self.accept(0, part)]
        self.committed[key] = publishing.CommitBatchResponse(
            documents=len(results), matches=sum(result.matches for result in results)
        )
        return self.committed[key]

    async def AbortBatch(self, request: Any, context: Any) -> Any:  # noqa: N802
        await self.check(context)
        self.staged = {key: part for key, part in self.staged.items() if key[:2] != (request.query, request.batch)}
        return publishing.AbortBatchResponse()

    # -- notifications -----------------------------------------------------------------------------

    async def Attach(self, requests: Any, context: Any) -> AsyncIterator[Any]:  # noqa: N802
        await self.check(context)
        start = (await anext(requests)).start
        self.starts.append(start)
        for name in start.subscriptions:
            if name != "subscriptions/-":
                await self.find(name, context)
        session = Session(self, start)
        reading = asyncio.create_task(session.read(requests))
        try:
            async for response in session.responses(context):
                yield response
        finally:
            reading.cancel()

    async def Pull(self, request: Any, context: Any) -> Any:  # noqa: N802
        await self.check(context)
        name = request.subscription
        waiting = [note for note in self.notifications if name in note.sequences and not note.is_acked]
        messages = [
            delivery.PulledMessage(sequence=note.sequences[name], document=note.document, attempt=1)
            for note in waiting[: request.max_messages or 100]
        ]
        return delivery.PullResponse(messages=messages)

    async def Acknowledge(self, request: Any, context: Any) -> Any:  # noqa: N802
        await self.check(context)
        for note in self.notifications:
            note.is_acked |= note.sequences.get(request.subscription) in request.sequences
        return delivery.AcknowledgeResponse()

    def _places(self, name: str) -> list[tuple[int, Notification]]:
        """All of a subscription by sequence, or of all by position; retention has dropped those up to `dropped`."""
        if name == "subscriptions/-":
            return list(enumerate(self.notifications, 1))
        return [(note.sequences[name], note) for note in self.notifications if name in note.sequences]

    async def GetRanges(self, request: Any, context: Any) -> Any:  # noqa: N802
        await self.check(context)
        for name in request.subscriptions:
            if not name.endswith("/-"):
                await self.find(name, context)
        ranges = [
            delivery.Range(subscription=name, dropped=self.dropped, head=len(self._places(name)))
            for name in request.subscriptions
        ]
        for found in ranges:
            found.through = min(found.head, request.after + (request.max_documents or found.head))
        return delivery.GetRangesResponse(ranges=ranges)

    async def ReadNotifications(self, request: Any, context: Any) -> Any:  # noqa: N802
        await self.check(context)
        self.said.append(request)
        response = delivery.ReadNotificationsResponse(subscriptions=sorted(self.subscriptions))
        slots = {name: slot for slot, name in enumerate(response.subscriptions)}
        response.through = min(request.after + self.page_size, request.through)
        response.dropped = min(self.dropped, response.through) if self.dropped > request.after else 0
        for place, note in self._places(request.subscription):
            if max(request.after, self.dropped) < place <= response.through:
                wanted = {name: one for name, one in note.sequences.items() if request.subscription in (name, ALL)}
                position = self.notifications.index(note) + 1
                response.notifications.add(
                    document=note.document,
                    position=position,
                    slots=[slots[name] for name in wanted],
                    sequences=wanted.values(),
                )
        return response

    async def AcknowledgeThrough(self, request: Any, context: Any) -> Any:  # noqa: N802
        await self.check(context)
        self.said.append(request)
        for mark in request.marks:
            for place, note in self._places(mark.subscription):
                note.is_acked |= mark.after < place <= mark.through
        return delivery.AcknowledgeThroughResponse()

    async def ModifyAckDeadline(self, request: Any, context: Any) -> Any:  # noqa: N802
        await self.check(context)
        self.said.append(request)
        return delivery.ModifyAckDeadlineResponse()

    async def Seek(self, request: Any, context: Any) -> Any:  # noqa: N802
        await self.check(context)
        self.said.append(request)
        return delivery.SeekResponse(next_sequence=request.sequence or 1)

    async def ListDeadLetters(self, request: Any, context: Any) -> Any:  # noqa: N802
        await self.check(context)
        first = int(request.page_token or 1)
        letters = [
            delivery.DeadLetter(sequence=number, document=Document(id=f"d{number}"), attempts=5, reason="no")
            for number in (first, first + 1)
        ]
        return delivery.ListDeadLettersResponse(dead_letters=letters, next_page_token="3" if first == 1 else "")


class Session:
    """One attached stream: what it may send, what it has sent."""

    def __init__(self, server: ScriptedServer, start: delivery.Start) -> None:
        self.server = server
        self.start = start
        self.messages, self.bytes = start.credit.messages, start.credit.bytes
        names = start.subscriptions
        self.names = sorted(server.subscriptions) if "subscriptions/-" in names else list(names)
        self.names = self.names or [""] * len(start.ephemeral)
        self.breaks_after = server.attach_breaks.pop(0) if server.attach_breaks else None
        self.goodbye = server.goodbyes.pop(0) if server.goodbyes else None
        self.sent: dict[int, Notification] = {}
        self.returned: list[Notification] = []
        self.place = len(server.notifications) if start.ephemeral else 0
        self.is_over = False

    async def read(self, requests: Any) -> None:
        async for request in requests:
            self.server.said.append(request)
            for message_id in request.ack.message_ids:
                self.sent[message_id].is_acked = True
            self.returned += [self.sent[message_id] for message_id in request.nack.message_ids]
            if request.HasField("credit"):
                self.server.credits.append(request.credit)
                self.messages += request.credit.messages
                self.bytes += request.credit.bytes
            self.server.news.set()
        self.is_over = True
        self.server.news.set()

    async def responses(self, context: Any) -> AsyncIterator[Any]:
        yield delivery.AttachResponse(slots=delivery.Slots(slots=range(len(self.names)), names=self.names))
        yield delivery.AttachResponse(heartbeat=self.server.heartbeat)
        while not self.is_over:
            self.server.news.clear()
            while self.messages > 0 and self.bytes > 0 and (message := self.next_message()):
                self.messages -= 1
                self.bytes -= len(message.document.xml) + len(message.document.id)
                yield delivery.AttachResponse(messages=delivery.Messages(messages=[message]))
                if len(self.sent) == self.breaks_after:
                    await context.abort(Code.UNAVAILABLE, "the connection broke")
            if self.goodbye is not None:
                yield delivery.AttachResponse(goodbye=delivery.Goodbye(reason=self.goodbye))
                return
            await self.server.news.wait()
            if self.server.is_cut:
                self.server.is_cut = False
                await context.abort(Code.UNAVAILABLE, "the connection broke")

    def next_message(self) -> delivery.Message | None:
        if self.start.ephemeral:
            return self.next_ephemeral()
        waiting = [note for note in self.server.notifications[self.place :] if self.is_mine(note)]
        note = self.returned.pop(0) if self.returned else waiting[0] if waiting else None
        if note is None:
            return None
        self.place = max(self.place, self.server.notifications.index(note) + 1)
        note.attempt += 1
        message_id = len(self.sent) + 1
        self.sent[message_id] = note
        slots = [slot for slot, name in enumerate(self.names) if name in note.sequences]
        sequences = [note.sequences[self.names[slot]] for slot in slots]
        return delivery.Message(
            message_id=message_id, document=note.document, slots=slots, sequences=sequences, attempt=note.attempt
        )

    def is_mine(self, note: Notification) -> bool:
        return not note.is_acked and any(name in note.sequences for name in self.names)

    def next_ephemeral(self) -> delivery.Message | None:
        while self.place < len(self.server.notifications):
            document = self.server.notifications[self.place].document
            self.place += 1
            slots = [slot for slot, wish in enumerate(self.start.ephemeral) if wants(wish, document)]
            if slots:
                return delivery.Message(document=document, slots=slots, attempt=1)
        return None


BY_NUMBER = {code.value[0]: code for code in Code}


def wants(wish: Any, document: Document) -> bool:
    return bool(document.xml) and bool(compiled(wish.xpath or "1")(etree.fromstring(document.xml)))


compiled = functools.cache(etree.XPath)


def is_xml(xml: bytes) -> bool:
    try:
        etree.fromstring(xml)
    except etree.XMLSyntaxError:
        return False
    return True


async def abort(context: Any, code: grpc.StatusCode, reason: str, message: str, **facts: str) -> None:
    """End a call as the server does: status, ErrorInfo with the facts."""
    detail = AnyMessage()
    detail.Pack(error_details_pb2.ErrorInfo(reason=reason, domain="pathsieve", metadata=facts))
    status = status_pb2.Status(code=code.value[0], message=message, details=[detail])
    await context.abort(code, message, (("grpc-status-details-bin", status.SerializeToString()),))
