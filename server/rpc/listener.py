"""The gRPC port: our services behind the gate, and beside them health and reflection, open to all.

    before it is ready, and while it stops     health NOT_SERVING, our services UNAVAILABLE
    put out of the cluster                     health NOT_SERVING, our services answer all the same
    ready                                      health SERVING, for each service and for all

The health of the service called `liveness` is SERVING in all of these: who restarts a server for its health asks that.

Connections live as long as they like. The server pings those that are silent for a minute, so that a consumer whose
machine has vanished is noticed; clients may ping every ten seconds.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import grpc
from grpc_health.v1 import health, health_pb2_grpc
from grpc_health.v1.health_pb2 import HealthCheckResponse
from grpc_reflection.v1alpha import reflection

from pathsieve.v1 import (
    cluster_service_pb2,
    delivery_service_pb2,
    peer_service_pb2,
    publish_service_pb2,
    subscription_service_pb2,
)
from server.addresses import address_of
from server.errors import CannotStart
from server.rpc.gate import Gate
from server.settings import Limits, Security

__all__ = ["LIVENESS", "Listener", "server_credentials"]

SERVICES = tuple(
    proto.DESCRIPTOR.services_by_name[name].full_name
    for proto, name in (
        (subscription_service_pb2, "SubscriptionService"),
        (publish_service_pb2, "PublishService"),
        (delivery_service_pb2, "DeliveryService"),
        (cluster_service_pb2, "ClusterService"),
        (peer_service_pb2, "PeerService"),
    )
)
FAREWELL = 1.0
"""Seconds for the last bytes of calls that are done, and for those who only watch."""

LIVENESS = "liveness"
MOST_PENDING = 50_000

Adding = Callable[[grpc.aio.Server], None]


class Listener:
    """A gRPC server on one port."""

    def __init__(self, gate: Gate, limits: Limits, add_services: Sequence[Adding]) -> None:
        self._gate = gate
        self._server = grpc.aio.server(interceptors=[gate], options=_options(limits))
        self._health = health.aio.HealthServicer()
        for add in add_services:
            add(self._server)
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        reflection.enable_server_reflection((*SERVICES, health.SERVICE_NAME, reflection.SERVICE_NAME), self._server)

    async def start(self, host: str, port: int, security: Security) -> str:
        """Take calls from now on; the address, with the port that was chosen if it was 0."""
        await self._health.set(LIVENESS, HealthCheckResponse.SERVING)
        await self.tell(False)
        credentials = server_credentials(security)
        address = address_of(host, port)
        try:
            if credentials is None:
                bound = self._server.add_insecure_port(address)
            else:
                bound = self._server.add_secure_port(address, credentials)
        except RuntimeError as error:
            raise CannotStart(f"cannot listen on {address}: is the port taken, or the certificate unusable?") from error
        await self._server.start()
        return address_of(host, bound)

    async def tell(self, is_serving: bool) -> None:
        """Have health checks answered so, for each service and for all."""
        status = HealthCheckResponse.SERVING if is_serving else HealthCheckResponse.NOT_SERVING
        for service in ("", *SERVICES):
            await self._health.set(service, status)

    async def stop(self) -> None:
        """End the calls that are left."""
        await self._server.stop(FAREWELL)


def _options(limits: Limits) -> list[tuple[str, Any]]:
    return [
        ("grpc.max_receive_message_length", limits.max_message_bytes),
        ("grpc.max_send_message_length", -1),
        ("grpc.so_reuseport", 0),  # a second server on the same port is refused, and does not take half of the calls
        # gRPC cancels calls at random when more than 1,000 wait to be taken up, as when all consumers come back.
        ("grpc.server.max_pending_requests", MOST_PENDING),
        ("grpc.server.max_pending_requests_hard_limit", 2 * MOST_PENDING),
        ("grpc.keepalive_time_ms", 60_000),
        ("grpc.keepalive_timeout_ms", 20_000),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.max_pings_without_data", 0),
        ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
    ]


def server_credentials(security: Security) -> grpc.ServerCredentials | None:
    """TLS if there is a certificate; None without."""
    if security.certificate is None and security.key is None and security.client_ca is None:
        return None
    if security.certificate is None or security.key is None:
        raise CannotStart("security.certificate and security.key go together: one of them is not set")
    pair = (_read(security.key, "security.key"), _read(security.certificate, "security.certificate"))
    if security.client_ca is None:
        return grpc.ssl_server_credentials([pair])
    authority = _read(security.client_ca, "security.client_ca")
    return grpc.ssl_server_credentials([pair], root_certificates=authority, require_client_auth=True)


def _read(path: Path, key: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise CannotStart(f"{key}: {path} cannot be read: {error.strerror}") from error
