"""A client for programs with an event loop.

    async with AsyncClient("localhost:7443", token="…") as client:
        await client.subscribe(id="ibm", xpath="//quote[@symbol='IBM']")
        await client.publish("<quote symbol='IBM'/>")
        async with client.attach("ibm", auto_ack=True) as messages:
            async for message in messages:
                print(message.xml)

`Client` is the same without `async`.
"""

from collections.abc import Sequence
from types import TracebackType
from typing import Self

from pathsieve.calls import Caller
from pathsieve.cluster_calls import ClusterCalls
from pathsieve.delivery_calls import DeliveryCalls
from pathsieve.endpoints import DEFAULT_ADDRESS, Endpoints, Tls
from pathsieve.publish_calls import PublishCalls
from pathsieve.reading_calls import ReadingCalls
from pathsieve.subscription_calls import SubscriptionCalls

__all__ = ["AsyncClient"]

TIMEOUT = PATIENCE = 30.0


class AsyncClient(SubscriptionCalls, PublishCalls, DeliveryCalls, ReadingCalls, ClusterCalls):
    """Talks to one server, or to one of several that are the same service.

    `address` is host:port, or several of them. `tls` is True for the certificates of the system, the path of an
    authority's certificate, or three paths: authority, own certificate, own key. `timeout` is how many seconds an
    answer may take; `patience`, for how many a call that does no harm when repeated goes on while nobody answers.
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
        super().__init__()
        self._caller = Caller(Endpoints(address, token, tls), timeout, patience)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Leave streams, then close the connection; other calls that are on their way are given up."""
        await self.detach_all()
        await self._caller.endpoints.close()
