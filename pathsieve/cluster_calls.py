"""Calls about the cluster: who owns what, and who is to hand over."""

from collections.abc import AsyncGenerator

import grpc

from pathsieve.calls import Caller, Pauses
from pathsieve.cluster import Cluster, from_cluster
from pathsieve.errors import Unavailable
from pathsieve.statuses import error_of_call, is_passing
from pathsieve.v1 import cluster_service_pb2 as pb

__all__ = ["ClusterCalls"]


class ClusterCalls:
    """A part of `AsyncClient`. These calls need the role `admin`."""

    _caller: Caller

    async def cluster(self) -> Cluster:
        """The cluster as the server that is asked sees it; `NotInCluster` if that stands alone."""
        response = await self._caller.unary(lambda endpoint: endpoint.cluster.GetCluster, pb.GetClusterRequest())
        return from_cluster(response.cluster)

    async def watch_cluster(self) -> AsyncGenerator[Cluster]:
        """The cluster now, and again whenever it changes; after a break another replica is asked."""
        pauses = Pauses(self._caller.patience)
        while True:
            endpoint = self._caller.endpoints.current
            try:
                async for response in endpoint.cluster.WatchCluster(
                    pb.WatchClusterRequest(), metadata=endpoint.metadata
                ):
                    pauses.reset()
                    yield from_cluster(response.cluster)
                error = Unavailable(f"{endpoint.address} has stopped")
            except grpc.aio.AioRpcError as failed:
                found = error_of_call(failed, endpoint.address)
                if not is_passing(found):
                    raise found from None
                error = found  # type: ignore[assignment]
            self._caller.endpoints.move_on()
            await pauses.pause(error)

    async def drain(self, replica: str = "", *, undo: bool = False) -> None:
        """Have a replica hand over all that it owns, or take its share again; no name is the one that is asked."""
        request = pb.DrainReplicaRequest(replica=replica, undo=undo)
        await self._caller.unary(lambda endpoint: endpoint.cluster.DrainReplica, request)
