"""SubscriptionService: subscriptions of the caller's tenant.

What is shown of one subscription has its progress; a list, which may be long, has not.
"""

from collections.abc import AsyncIterator, Callable
from typing import Any

from pathsieve.v1 import subscription_service_pb2 as wire
from pathsieve.v1.subscription_pb2 import Progress
from pathsieve.v1.subscription_pb2 import Subscription as SubscriptionMessage
from pathsieve.v1.subscription_service_pb2_grpc import SubscriptionServiceServicer
from server.broker import Broker
from server.errors import InvalidRequest
from server.rpc.gate import caller
from server.rpc.import_stream import ImportStream
from server.rpc.paging import page_size_from, page_token_from, page_token_to
from server.rpc.translate import document_from, values_to
from server.rpc.translate_subscriptions import changes_from, filter_from, id_from, subscription_from, subscription_to
from server.subscriptions import Filter, Subscription

__all__ = ["SubscriptionServicer"]


class SubscriptionServicer(SubscriptionServiceServicer):
    """Translates for the broker, which is there once the server is ready."""

    def __init__(self, broker: Callable[[], Broker]) -> None:
        self._broker = broker

    async def CreateSubscription(self, request: wire.CreateSubscriptionRequest, context: Any) -> SubscriptionMessage:
        wanted = subscription_from(request.subscription, caller().tenant, request.subscription_id)
        return await self._shown(await self._broker().create(wanted))

    async def ImportSubscriptions(  # type: ignore[override]  # writes to the context
        self, request_iterator: AsyncIterator[wire.ImportSubscriptionsRequest], context: Any
    ) -> None:
        await ImportStream(self._broker(), caller().tenant, request_iterator, context).run()

    async def GetSubscription(self, request: wire.GetSubscriptionRequest, context: Any) -> SubscriptionMessage:
        subscription_id = id_from(request.name, "name")
        return await self._shown(await self._broker().get(caller().tenant, subscription_id))

    async def ListSubscriptions(
        self, request: wire.ListSubscriptionsRequest, context: Any
    ) -> wire.ListSubscriptionsResponse:
        size = page_size_from(request.page_size)
        page = await self._broker().list(caller().tenant, page_token_from(request.page_token), size)
        is_last = len(page.subscriptions) < size
        return wire.ListSubscriptionsResponse(
            subscriptions=[subscription_to(subscription) for subscription in page.subscriptions],
            next_page_token="" if is_last else page_token_to(page.subscriptions[-1].id),
            total_size=page.total,
        )

    async def UpdateSubscription(self, request: wire.UpdateSubscriptionRequest, context: Any) -> SubscriptionMessage:
        wanted = request.subscription
        subscription_id = id_from(wanted.name, "subscription.name")
        changes = changes_from(wanted, request.update_mask.paths)
        return await self._shown(await self._broker().update(caller().tenant, subscription_id, wanted.etag, changes))

    async def DeleteSubscription(
        self, request: wire.DeleteSubscriptionRequest, context: Any
    ) -> wire.DeleteSubscriptionResponse:
        await self._broker().delete(caller().tenant, id_from(request.name, "name"), request.etag)
        return wire.DeleteSubscriptionResponse()

    async def TestFilter(self, request: wire.TestFilterRequest, context: Any) -> wire.TestFilterResponse:
        document = document_from(request.document)
        tested = await self._broker().test_filter(caller().tenant, _subject(request), document)
        response = wire.TestFilterResponse(matches=tested.matches, explanation=tested.explanation)
        values_to(tested.attributes, response.attributes)
        return response

    async def _shown(self, subscription: Subscription) -> SubscriptionMessage:
        standing = await self._broker().standing(subscription)
        progress = Progress(
            head_sequence=standing.head,
            floor_sequence=standing.floor,
            backlog=standing.backlog,
            dead_letters=await self._broker().count_dead_letters(subscription),
            attached=standing.is_attached,
        )
        return subscription_to(subscription, progress)


def _subject(request: wire.TestFilterRequest) -> Filter | str:
    """The filter to be tested, or the id of the subscription that has it."""
    kind = request.WhichOneof("subject")
    if kind is None:
        raise InvalidRequest("subject", "expected the name of a subscription, or a filter")
    return id_from(request.name, "name") if kind == "name" else filter_from(request.filter)
