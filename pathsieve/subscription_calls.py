"""What one may ask about subscriptions."""

import contextlib
from collections.abc import AsyncIterator, Iterable
from typing import Unpack

from google.protobuf.field_mask_pb2 import FieldMask

from pathsieve.calls import Caller
from pathsieve.documents import Document, to_document
from pathsieve.importing import ImportStream, batches_of
from pathsieve.results import Imported, Tested
from pathsieve.subscriptions import Filter, Named, Subscription, name_of
from pathsieve.v1 import subscription_service_pb2 as pb
from pathsieve.values import from_value
from pathsieve.wishes import Wish, from_subscription, id_of, mask_of, to_filter, wish_message

__all__ = ["SubscriptionCalls"]

PAGE = 1000


class SubscriptionCalls:
    """Create, read, change, delete and try out subscriptions."""

    _caller: Caller

    async def subscribe(self, **wish: Unpack[Wish]) -> Subscription:
        """Create a subscription; every document that is accepted from now on meets it."""
        request = pb.CreateSubscriptionRequest(subscription=wish_message(wish), subscription_id=id_of(wish))
        created = await self._caller.unary(
            lambda endpoint: endpoint.subscriptions.CreateSubscription, request, repeatable=False
        )
        return from_subscription(created)

    async def get(self, subscription: Named) -> Subscription:
        """A subscription as it is now, and how far its delivery has come."""
        request = pb.GetSubscriptionRequest(name=name_of(subscription))
        found = await self._caller.unary(lambda endpoint: endpoint.subscriptions.GetSubscription, request)
        return from_subscription(found)

    async def page(self, token: str = "", size: int = PAGE) -> tuple[tuple[Subscription, ...], str, int]:
        """Some subscriptions in the order of names, the token of the next page ("": none), and how many there are."""
        request = pb.ListSubscriptionsRequest(page_size=size, page_token=token)
        page = await self._caller.unary(lambda endpoint: endpoint.subscriptions.ListSubscriptions, request)
        return tuple(map(from_subscription, page.subscriptions)), page.next_page_token, page.total_size

    async def list(self, page_size: int = PAGE) -> AsyncIterator[Subscription]:
        """All subscriptions, in the order of their names."""
        token = ""
        while True:
            found, token, _ = await self.page(token, page_size)
            for subscription in found:
                yield subscription
            if not token:
                break

    async def update(self, subscription: Named, etag: str = "", **wish: Unpack[Wish]) -> Subscription:
        """Change what is given, and nothing else.

        With an etag, or a subscription as it was read, a change that somebody else has made since is an `EtagMismatch`.
        """
        message = wish_message(wish, name_of(subscription))
        message.etag = etag or _etag_of(subscription)
        request = pb.UpdateSubscriptionRequest(subscription=message, update_mask=FieldMask(paths=mask_of(wish)))
        updated = await self._caller.unary(
            lambda endpoint: endpoint.subscriptions.UpdateSubscription, request, repeatable=False
        )
        return from_subscription(updated)

    async def delete(self, subscription: Named, etag: str = "") -> None:
        """Delete a subscription, and what waits for it; with an etag only if nobody has changed it since."""
        request = pb.DeleteSubscriptionRequest(name=name_of(subscription), etag=etag or _etag_of(subscription))
        await self._caller.unary(lambda endpoint: endpoint.subscriptions.DeleteSubscription, request, repeatable=False)

    async def test(self, subject: Filter | Named, document: Document | bytes | str) -> Tested:
        """Would a filter, or a subscription, want this document, and why? Nothing is stored or delivered."""
        given = document if isinstance(document, Document) else Document(document)
        request = pb.TestFilterRequest(document=to_document(given))
        if isinstance(subject, Filter):
            request.filter.CopyFrom(to_filter(subject))
        else:
            request.name = name_of(subject)
        tested = await self._caller.unary(lambda endpoint: endpoint.subscriptions.TestFilter, request)
        attributes = {name: from_value(value) for name, value in tested.attributes.items()}
        return Tested(tested.matches, tested.explanation, attributes)

    async def import_subscriptions(self, wishes: Iterable[Wish]) -> AsyncIterator[Imported]:
        """Create many, fast: one result for each, in order. A refused one does not stop the others."""
        async with contextlib.aclosing(await self.open_import()) as stream:
            for batch in batches_of(wishes):
                for result in await stream.send(batch):
                    yield result
            await stream.finish()
            while ready := await stream.results():
                for result in ready:
                    yield result

    async def open_import(self) -> ImportStream:
        return ImportStream(self._caller.endpoints.current, lambda: self.page(size=1))


def _etag_of(subscription: Named) -> str:
    return subscription.etag if isinstance(subscription, Subscription) else ""
