"""What a replica can be told beside what a server that stands alone can be."""

import socket
from dataclasses import dataclass
from pathlib import Path

import grpc

from pathsieve.endpoints import channel_credentials
from server.settings import Security, Settings

__all__ = ["ReplicaSettings", "peer_credentials", "replica_settings"]


@dataclass(frozen=True, slots=True)
class ReplicaSettings:
    """Its name, where it is reached, and how it takes part."""

    name: str
    address: str
    zookeeper: str
    root: str = "/pathsieve"
    weight: float = 1.0
    session_timeout: float = 6.0
    publish_deadline: float = 20.0
    secret: str = ""
    credentials: grpc.ChannelCredentials | None = None


def replica_settings(settings: Settings, address: str) -> ReplicaSettings:
    """The replica's share of the settings; `address` is what the server listens on."""
    cluster = settings.cluster
    return ReplicaSettings(
        name=cluster.replica or socket.gethostname(),
        address=cluster.advertise or address,
        zookeeper=cluster.zookeeper,
        root=cluster.root,
        weight=cluster.weight,
        session_timeout=cluster.session_timeout,
        publish_deadline=cluster.publish_deadline,
        secret=cluster.secret.get_secret_value(),
        credentials=peer_credentials(settings.security),
    )


def peer_credentials(security: Security) -> grpc.ChannelCredentials | None:
    """Peers speak TLS if the server does, and know each other by the authority of client certificates if it has one.

    Without one they trust what is in the file of their own certificate: the same certificate for all of them, or the
    authority's below each one's own.
    """
    if security.certificate is None:
        return None
    authority: Path | None = security.client_ca
    if authority is None:
        return channel_credentials(security.certificate)
    return channel_credentials((authority, security.certificate, security.key))
