"""A cluster, as one of its replicas sees it: who is there, and who owns which token."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from pathsieve.v1 import cluster_service_pb2 as pb

__all__ = ["Cluster", "Replica", "Token", "from_cluster"]

KINDS = {pb.TOKEN_KIND_MATCHING: "matching", pb.TOKEN_KIND_NOTIFYING: "notifying"}
SESSIONS = {
    pb.SESSION_STATE_CONNECTED: "connected",
    pb.SESSION_STATE_SUSPENDED: "suspended",
    pb.SESSION_STATE_LOST: "lost",
}


@dataclass(frozen=True, slots=True)
class Replica:
    """A server of the cluster. `incarnation` differs from start to start."""

    name: str
    address: str
    weight: float
    draining: bool
    incarnation: str


@dataclass(frozen=True, slots=True)
class Token:
    """A share of the subscriptions, to match or to notify, and who has it; nobody, if `owner` is empty.

    `subscriptions` is how many there are in it, as counted in the last half minute.
    """

    kind: str
    token: int
    owner: str
    generation: int
    since: datetime | None
    subscriptions: int


@dataclass(frozen=True, slots=True)
class Cluster:
    """`replica` says so; `session` is its own with ZooKeeper: connected, suspended or lost."""

    replica: str
    session: str
    replicas: tuple[Replica, ...]
    tokens: tuple[Token, ...]

    def owned(self, kind: str) -> Mapping[str, int]:
        """How many tokens of a kind each replica has; those of nobody under the empty name."""
        return Counter(token.owner for token in self.tokens if token.kind == kind)

    def loads(self, kind: str) -> Mapping[str, int]:
        """How many subscriptions each replica matches or notifies."""
        loads: Counter[str] = Counter()
        for token in self.tokens:
            loads[token.owner] += token.subscriptions if token.kind == kind else 0
        return loads


def from_cluster(message: pb.Cluster) -> Cluster:
    replicas = (Replica(one.name, one.address, one.weight, one.draining, one.incarnation) for one in message.replicas)
    return Cluster(
        message.replica, SESSIONS.get(message.session, ""), tuple(replicas), tuple(map(_token, message.tokens))
    )


def _token(message: pb.Token) -> Token:
    since = message.since.ToDatetime(UTC) if message.HasField("since") else None
    return Token(
        KINDS.get(message.kind, ""), message.token, message.owner, message.generation, since, message.subscriptions
    )
