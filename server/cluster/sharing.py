"""What a replica needs of whoever distributes tokens: who is there, who owns what, and to be told.

    Sharing ─┬─ matching: TokenSet ──▶ Holder     prepare ─┬─▶ taken ─▶ lost
             └─ notifying: TokenSet ─▶ Holder              └─▶ not_taken

`server.cluster.zookeeper_sharing` has them on ZooKeeper; tests move tokens by hand.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from server.cluster.observation import SessionState

__all__ = ["Holder", "Member", "Ownership", "Sharing", "TokenSet"]


@dataclass(frozen=True, slots=True)
class Member:
    """A replica that is there. `incarnation` differs from start to start; one that is `unwell` has lost the store."""

    replica: str
    address: str
    weight: float = 1.0
    draining: bool = False
    incarnation: str = ""
    unwell: bool = False

    @property
    def wants_tokens(self) -> bool:
        return not (self.draining or self.unwell)


@dataclass(frozen=True, slots=True)
class Ownership:
    """Who has a token; nobody, if `owner` is empty. The generation grows with every change of hands."""

    token: int
    owner: str = ""
    generation: int = 0
    since: float = 0.0


class Holder(Protocol):
    """Whoever does something with tokens."""

    async def prepare(self, tokens: Sequence[int], is_urgent: bool = True) -> None:
        """They are about to be taken; urgent if some have no owner now. What is raised here puts it off."""

    async def not_taken(self, tokens: Sequence[int]) -> None:
        """They were prepared, and somebody else has them now."""

    async def taken(self, generations: Mapping[int, int]) -> None:
        """They are ours from now on, with these generations."""

    async def lost(self, tokens: Sequence[int]) -> None:
        """They are not ours any more: stolen, handed over, or the session has ended."""


class TokenSet(Protocol):
    """One set of tokens and its owners, as this replica sees them."""

    @property
    def on_change(self) -> list[Callable[[], None]]:
        """Called on the loop when members or owners have changed."""

    @property
    def owners(self) -> Sequence[Ownership]: ...
    @property
    def mine(self) -> Mapping[int, int]: ...
    async def settled(self) -> None:
        """Return when there is nothing more to take."""

    async def hand_over(self, timeout: float) -> None:
        """Return when others have taken all, or nobody else is there, or the time is up."""


class Sharing(Protocol):
    """Membership, and both sets of tokens."""

    @property
    def matching(self) -> TokenSet: ...
    @property
    def notifying(self) -> TokenSet: ...
    @property
    def members(self) -> Mapping[str, Member]: ...
    @property
    def session(self) -> SessionState:
        """connected, suspended or lost"""

    @property
    def takes_part(self) -> bool:
        """Whether this replica is a member that has its share; while the session is suspended, whether it was."""

    async def start(self) -> None: ...
    async def set_draining(self, replica: str, draining: bool) -> None: ...
    async def set_unwell(self, unwell: bool) -> None:
        """Have others take what is ours until this replica is well again."""

    async def stop(self) -> None: ...
