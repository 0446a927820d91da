"""The other replicas: a link to each that is asked, made when it is first needed and closed when it has left.

name ──▶ members: address ──▶ PeerLink
"""

import asyncio
from collections.abc import Mapping

import grpc

from server.cluster.peer_link import PeerLink
from server.cluster.sharing import Member

__all__ = ["Peers"]


class Peers:
    """Links by the address of a peer."""

    def __init__(self, credentials: grpc.ChannelCredentials | None, secret: str) -> None:
        self._credentials = credentials
        self._secret = secret
        self._links: dict[str, PeerLink] = {}
        self._closing: set[asyncio.Task[None]] = set()

    def link(self, address: str) -> PeerLink:
        if address not in self._links:
            self._links[address] = PeerLink(address, self._credentials, self._secret)
        return self._links[address]

    def lags(self, members: Mapping[str, Member]) -> dict[str, float]:
        """How long each peer has let its oldest batch wait."""
        return {
            name: self._links[member.address].lag for name, member in members.items() if member.address in self._links
        }

    def keep(self, members: Mapping[str, Member]) -> None:
        """Close the links to those who are no longer there."""
        addresses = {member.address for member in members.values()}
        for address in [address for address in self._links if address not in addresses]:
            task = asyncio.create_task(self._links.pop(address).close())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    async def close(self) -> None:
        self.keep({})
        await asyncio.gather(*self._closing, return_exceptions=True)
