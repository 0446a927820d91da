"""What a replica says of itself as one of several, gathered when somebody asks; a server that stands alone has none.

    session, tokens, peers, shared log ──▶ ClusterObservation ──▶ Observation.cluster ──▶ /metrics, /varz

How tokens came and went is counted as it happens, in `Metrics.token_moves`, by kind and reason:

    nobody had it ──acquired──▶ ┌──────┐ ──released──▶ handed over: another is poorer, or this one drains
    a richer one  ──stolen────▶ │ ours │
                                └──────┘ ──lost──────▶ the session ended, or another has a higher generation
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Literal, get_args

__all__ = ["MOVES", "SESSION_STATES", "ClusterObservation", "MoveReason", "SessionState", "TokenKind"]

TokenKind = Literal["matching", "notifying"]
MoveReason = Literal["acquired", "stolen", "lost", "released"]
SessionState = Literal["connected", "suspended", "lost"]

SESSION_STATES: tuple[SessionState, ...] = get_args(SessionState)
MOVES: tuple[tuple[TokenKind, MoveReason], ...] = tuple(product(get_args(TokenKind), get_args(MoveReason)))
"""All that are counted, so that each is told as 0 before its first time: a rate needs a point to start from."""


@dataclass(frozen=True, slots=True)
class ClusterObservation:
    """A replica at one moment.

    `peer_lags` has the age of the oldest batch that each peer has not answered, in seconds, 0 if it owes nothing;
    `log_lag_records` is how many records of the shared log this replica has not read.
    """

    session: SessionState = "lost"
    tokens_owned: Mapping[TokenKind, int] = field(default_factory=lambda: dict.fromkeys(get_args(TokenKind), 0))
    peers: int = 0
    peer_lags: Mapping[str, float] = field(default_factory=dict)
    log_lag_records: int = 0
