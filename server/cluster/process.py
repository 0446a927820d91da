"""A server process as one replica: settings in, broker and replica out."""

from server.assembly import Observers
from server.broker import Broker
from server.broker_settings import broker_settings
from server.cluster.assembly import open_replica
from server.cluster.observation import MoveReason, TokenKind
from server.cluster.replica import Replica
from server.cluster.settings import replica_settings
from server.cluster.sharing import Holder
from server.errors import CannotStart
from server.metrics import Metrics
from server.settings import Settings

try:
    from server.cluster.zookeeper_sharing import ZooKeeperSharing
except ImportError as missing:
    raise CannotStart(f"{missing}; install it with: pip install 'pathsieve[cluster,postgres]'") from missing

__all__ = ["open_process"]


async def open_process(
    settings: Settings, address: str, observers: Observers, metrics: Metrics
) -> tuple[Broker, Replica]:
    """What a replica at this address needs, open; it owns nothing yet."""
    replica = replica_settings(settings, address)

    def moved(kind: TokenKind, reason: MoveReason, n_tokens: int) -> None:
        metrics.token_moves[kind, reason] += n_tokens

    def share(matching: Holder, notifying: Holder) -> ZooKeeperSharing:
        return ZooKeeperSharing(replica, matching, notifying, moved)

    return await open_replica(broker_settings(settings), replica, share, observers, metrics.token_load_seconds.observe)
