"""Tokens shared through ZooKeeper: a session, a membership, a distributor for each set."""

import uuid
from collections.abc import Mapping

from server.cluster.distributor import Distributor, OnMove
from server.cluster.membership import Membership
from server.cluster.notifying import NOTIFYING
from server.cluster.observation import SessionState
from server.cluster.replica import MATCHING
from server.cluster.settings import ReplicaSettings
from server.cluster.sharing import Holder, Member
from server.cluster.zookeeper import Session, ZooKeeper

__all__ = ["ZooKeeperSharing"]

NAMES: dict[Session, SessionState] = {
    Session.CONNECTED: "connected",
    Session.SUSPENDED: "suspended",
    Session.LOST: "lost",
}


class ZooKeeperSharing:
    """What `server.cluster.sharing.Sharing` asks for."""

    def __init__(
        self,
        settings: ReplicaSettings,
        matching: Holder,
        notifying: Holder,
        on_move: OnMove = lambda kind, reason, n_tokens: None,
    ) -> None:
        me = Member(settings.name, settings.address, settings.weight, incarnation=uuid.uuid4().hex)
        self._zookeeper = ZooKeeper(settings.zookeeper, settings.session_timeout)
        self._membership = Membership(self._zookeeper, settings.root, me)
        self.matching = Distributor(self._membership, MATCHING, matching, on_move)
        self.notifying = Distributor(self._membership, NOTIFYING, notifying, on_move)
        self.set_draining = self._membership.set_draining
        self.set_unwell = self._membership.set_unwell

    @property
    def members(self) -> Mapping[str, Member]:
        return self._membership.members

    @property
    def session(self) -> SessionState:
        return NAMES[self._zookeeper.state]

    @property
    def takes_part(self) -> bool:
        is_settled = self.matching.is_settled and self.notifying.is_settled
        return self._zookeeper.state is not Session.LOST and self._membership.is_member and is_settled

    async def start(self) -> None:
        await self._zookeeper.start()
        await self._membership.start()
        await self.matching.start()
        await self.notifying.start()

    async def stop(self) -> None:
        """Leave: what is still ours is free at once."""
        await self.notifying.stop()
        await self.matching.stop()
        await self._membership.stop()
        await self._zookeeper.stop()
