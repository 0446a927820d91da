"""Where servers are, and how to speak to them: addresses, TLS, a token.

    Endpoints ──▶ the current Endpoint: one channel and the stubs on it
        move_on()    after a failure: the next address, round and round
        at(address)  a replica that another one has named; same token, same TLS

A channel is opened when it is first needed, on the event loop that needs it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import grpc

from pathsieve.errors import Cancelled
from pathsieve.v1.cluster_service_pb2_grpc import ClusterServiceStub
from pathsieve.v1.delivery_service_pb2_grpc import DeliveryServiceStub
from pathsieve.v1.publish_service_pb2_grpc import PublishServiceStub
from pathsieve.v1.subscription_service_pb2_grpc import SubscriptionServiceStub

if TYPE_CHECKING:
    from pathsieve.v1.cluster_service_pb2_grpc import ClusterServiceAsyncStub
    from pathsieve.v1.delivery_service_pb2_grpc import DeliveryServiceAsyncStub
    from pathsieve.v1.publish_service_pb2_grpc import PublishServiceAsyncStub
    from pathsieve.v1.subscription_service_pb2_grpc import SubscriptionServiceAsyncStub

__all__ = ["DEFAULT_ADDRESS", "Endpoint", "Endpoints", "Tls", "channel_credentials"]

DEFAULT_ADDRESS = "127.0.0.1:7443"
PathLike = str | Path

Tls = bool | PathLike | tuple[PathLike | None, PathLike | None, PathLike | None]
"""True: certificates of the system. A path: the certificate of the authority. Three: authority, own one, its key."""

OPTIONS = (
    ("grpc.max_send_message_length", -1),
    ("grpc.max_receive_message_length", -1),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 1000),
    ("grpc.max_reconnect_backoff_ms", 2000),
    ("grpc.use_local_subchannel_pool", 1),
)
"""The server limits messages. gRPC's own pauses are short, because ours come on top; they grow to two minutes else."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One server: its stubs, and what goes with every call."""

    address: str
    channel: grpc.aio.Channel
    metadata: tuple[tuple[str, str], ...]
    subscriptions: "SubscriptionServiceAsyncStub"
    publish: "PublishServiceAsyncStub"
    delivery: "DeliveryServiceAsyncStub"
    cluster: "ClusterServiceAsyncStub"


class Endpoints:
    """One or several addresses of the same service, and which of them is used now."""

    def __init__(self, addresses: str | Sequence[str], token: str = "", tls: Tls = False) -> None:
        listed = addresses.split(",") if isinstance(addresses, str) else addresses
        self.addresses = [address.strip() for address in listed]
        if not all(self.addresses) or not self.addresses:
            raise ValueError(f"expected an address such as {DEFAULT_ADDRESS}, or several, found {addresses!r}")
        self._credentials = channel_credentials(tls)
        self._metadata = (("authorization", f"Bearer {token}"),) if token else ()
        self._opened: dict[str, Endpoint] = {}
        self._is_closed = False
        self._place = 0

    @property
    def current(self) -> Endpoint:
        return self.at(self.addresses[self._place])

    def at(self, address: str) -> Endpoint:
        """The server at an address, be it among the given ones or not."""
        if self._is_closed:
            raise Cancelled("the client is closed")
        if address not in self._opened:
            self._opened[address] = self._open(address)
        return self._opened[address]

    def move_on(self) -> None:
        """Use the next address from now on."""
        self._place = (self._place + 1) % len(self.addresses)

    async def close(self) -> None:
        self._is_closed = True
        for endpoint in self._opened.values():
            await endpoint.channel.close()

    def _open(self, address: str) -> Endpoint:
        if self._credentials:
            channel = grpc.aio.secure_channel(address, self._credentials, options=OPTIONS)
        else:
            channel = grpc.aio.insecure_channel(address, options=OPTIONS)
        return Endpoint(
            address,
            channel,
            self._metadata,
            SubscriptionServiceStub(channel),
            PublishServiceStub(channel),
            DeliveryServiceStub(channel),
            ClusterServiceStub(channel),
        )


def channel_credentials(tls: Tls) -> grpc.ChannelCredentials | None:
    """What an encrypted channel needs; None for a plain one."""
    match tls:
        case False:
            return None
        case True:
            return grpc.ssl_channel_credentials()
        case (authority, certificate, key):
            return grpc.ssl_channel_credentials(_read(authority), _read(key), _read(certificate))
    return grpc.ssl_channel_credentials(_read(tls))


def _read(path: PathLike | None) -> bytes | None:
    return Path(path).read_bytes() if path else None
