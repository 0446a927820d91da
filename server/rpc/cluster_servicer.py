"""ClusterService: who owns what."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pathsieve.v1 import cluster_service_pb2 as wire
from pathsieve.v1.cluster_service_pb2_grpc import ClusterServiceServicer
from server.errors import NotInCluster
from server.rpc.translate import timestamp_to

if TYPE_CHECKING:
    from server.cluster.replica import Replica

__all__ = ["ClusterServicer"]

KINDS = {"matching": wire.TOKEN_KIND_MATCHING, "notifying": wire.TOKEN_KIND_NOTIFYING}
SESSIONS = {
    "connected": wire.SESSION_STATE_CONNECTED,
    "suspended": wire.SESSION_STATE_SUSPENDED,
    "lost": wire.SESSION_STATE_LOST,
}


class ClusterServicer(ClusterServiceServicer):
    """Translates for the replica; there is none in a server that stands alone."""

    def __init__(self, replica: "Callable[[], Replica | None]", draining: asyncio.Event) -> None:
        self._of_server = replica
        self._draining = draining

    def _replica(self) -> "Replica":
        replica = self._of_server()
        if replica is None:
            raise NotInCluster
        return replica

    async def GetCluster(self, request: wire.GetClusterRequest, context: Any) -> wire.GetClusterResponse:
        return wire.GetClusterResponse(cluster=cluster_of(self._replica()))

    async def WatchCluster(  # type: ignore[override]  # writes to the context
        self, request: wire.WatchClusterRequest, context: Any
    ) -> None:
        replica = self._replica()
        changed = asyncio.Event()
        stopping = asyncio.create_task(self._draining.wait())
        stopping.add_done_callback(lambda task: changed.set())
        with replica.watching(changed.set):
            try:
                while not self._draining.is_set():
                    changed.clear()
                    await context.write(wire.WatchClusterResponse(cluster=cluster_of(replica)))
                    await changed.wait()
            finally:
                stopping.cancel()

    async def DrainReplica(self, request: wire.DrainReplicaRequest, context: Any) -> wire.DrainReplicaResponse:
        await self._replica().set_draining(request.replica, not request.undo)
        return wire.DrainReplicaResponse()


def cluster_of(replica: "Replica") -> wire.Cluster:
    """The cluster as a replica sees it."""
    replicas = [
        wire.Replica(
            name=member.replica,
            address=member.address,
            weight=member.weight,
            draining=member.draining,
            incarnation=member.incarnation,
        )
        for _, member in sorted(replica.members.items())
    ]
    tokens = [
        wire.Token(
            kind=KINDS[kind],
            token=owned.token,
            owner=owned.owner,
            generation=owned.generation,
            since=timestamp_to(owned.since) if owned.since else None,
            subscriptions=replica.loads()[kind][owned.token],
        )
        for kind, owners in replica.ownerships().items()
        for owned in owners
    ]
    return wire.Cluster(replica=replica.name, session=SESSIONS[replica.session], replicas=replicas, tokens=tokens)
