"""The streams of one attachment: one to each replica that delivers a part of it.

    ASKING ──▶ SERVED       who was asked delivers all of it: that stream is the only branch
      ▲   └──▶ ELSEWHERE    who was asked names others: a branch to each, with its part of the names
      │            │
      └─ PAUSED ◀──┴── a branch has ended, or nobody delivers some of it just now

Whatever ends, all of it is asked for again, of the next address that is known. Branches that the answer leaves as they
are go on; the others are left, so that what was said about their messages arrives, and opened with their new part. A
replica has one branch of ours at most: a second stream of the same consumer would replace the first. And consumers
that share messages have the same lists on each replica, however often subscriptions have changed hands.

The credit is shared out among the branches evenly; each has at least one message.
"""

import asyncio
import logging
from collections.abc import Collection, Sequence
from uuid import uuid4

from pathsieve.attach_stream import HEARTBEAT
from pathsieve.branch import Branch
from pathsieve.calls import Caller, Pauses
from pathsieve.errors import AlreadyAttached, Detached, NotFound, PathSieveError, ServerFault, WrongReplica
from pathsieve.inbox import Inbox
from pathsieve.messages import Message, Origin
from pathsieve.statuses import is_passing
from pathsieve.v1.delivery_service_pb2 import Credit, Placement, Start
from pathsieve.wishes import to_duration

__all__ = ["Branches"]

LOG = logging.getLogger("pathsieve.attach")
ALL = "subscriptions/-"


class Branches:
    """Keeps them up. `news` is set when there is something to look at: messages, or that one `is_ready`."""

    def __init__(self, caller: Caller, start: Start, labels: Sequence[str], inbox: Inbox, news: asyncio.Event) -> None:
        start.consumer = start.consumer or uuid4().hex
        start.heartbeat.CopyFrom(to_duration(HEARTBEAT))
        self.is_ready = self.is_leaving = False
        self.n_breaks = self.n_late = 0
        self._caller = caller
        self._start = start
        self._labels = labels
        self._inbox = inbox
        self._news = news
        self._branches: list[Branch] = []
        self._changes = asyncio.Event()
        self._pauses = Pauses(caller.patience)
        self._placed: list[str] = []
        self._asked = caller.endpoints.current.address

    @property
    def backlog(self) -> int:
        return sum(branch.stream.heartbeat.backlog for branch in list(self._branches))

    @property
    def oldest_age(self) -> float:
        ages = [branch.stream.heartbeat.oldest_age.ToTimedelta() for branch in list(self._branches)]
        return max((age.total_seconds() for age in ages), default=0.0)

    async def run(self) -> None:
        """Attach, and come back, until one leaves or the server ends it for good."""
        try:
            while not self.is_leaving:
                error = await self._trouble(await self._ask())
                if error:
                    await self._come_back(error)
        finally:
            await self._keep([])

    async def _come_back(self, error: PathSieveError) -> None:
        """Pause; whoever shares with others makes room for a new list, else each would wait for the other."""
        LOG.info("attaching again: %s", error)
        if isinstance(error, AlreadyAttached):
            await self._keep([])
        self._asked = self._next_address()
        await self._pauses.pause(error)

    async def leave(self) -> None:
        """Send what has been said, and end all streams."""
        self.is_leaving = True
        await asyncio.gather(*(branch.leave() for branch in self._branches))

    # -- for branches ------------------------------------------------------------------------------

    def arrived(self, messages: list[Message]) -> None:
        self._inbox.put(messages)
        self._news.set()

    def late(self) -> None:
        self.n_late += 1

    def gone(self, origin: Origin) -> None:
        self._inbox.drop(origin)

    def changed(self) -> None:
        self._changes.set()

    # -- asking ------------------------------------------------------------------------------------

    async def _ask(self) -> PathSieveError | None:
        """Ask one replica for all of it, and do as it says; why some of it is with nobody, if that is so."""
        asked = self._open(self._asked, self._start)
        while asked.is_opening:
            await self._change()
        if asked.error is None:
            await self._keep([asked])
        if asked.placements is None or self.is_leaving:
            return None
        self._branches.remove(asked)
        return await self._follow(asked.placements)

    async def _follow(self, placements: list[Placement]) -> PathSieveError | None:
        """Have one branch to each replica that is named, with its part."""
        parts = _parts_of(placements)
        nobody = parts.pop("", []) if parts else list(self._start.subscriptions)
        self._placed = list(parts)
        self._ended()  # it is asked for again anyway
        await self._keep([one for one in self._branches if one.names == frozenset(parts.get(one.address, ()))])
        kept = {branch.address for branch in self._branches}
        for address in parts.keys() - kept:
            self._open(address, _part_of(self._start, parts[address], len(parts)))
        return WrongReplica(f"no replica delivers {_shown(nobody)} just now", {"address": ""}) if nobody else None

    def _open(self, address: str, start: Start) -> Branch:
        branch = Branch(self._caller.endpoints.at(address), start, self._labels, self)
        self._branches.append(branch)
        return branch

    async def _keep(self, kept: list[Branch]) -> None:
        left = [branch for branch in self._branches if branch not in kept]
        self._branches = kept
        await asyncio.gather(*(branch.leave() for branch in left))

    def _next_address(self) -> str:
        """Of all that are known, given or named by a replica, the one after the last that was asked."""
        known = list(dict.fromkeys([*self._caller.endpoints.addresses, *self._placed]))
        place = known.index(self._asked) if self._asked in known else -1
        return known[(place + 1) % len(known)]

    # -- what has become of them -------------------------------------------------------------------

    async def _trouble(self, error: PathSieveError | None) -> PathSieveError | None:
        """Wait until there is a reason to ask again, and tell it; None if one leaves."""
        while not self.is_leaving:
            error = self._ended() or error
            is_opening = any(branch.is_opening for branch in self._branches)
            if self._branches and not is_opening:
                self._attached(to_all=error is None)
            if error and (self.is_ready or not is_opening):
                return error
            await self._change()
        return None

    async def _change(self) -> None:
        await self._changes.wait()
        self._changes.clear()

    def _attached(self, to_all: bool) -> None:
        """One does not give up any more, and pauses are short again once nothing is missing."""
        if to_all:
            self._pauses.reset()
        self._pauses.patience = None
        self.is_ready = True
        self._news.set()

    def _ended(self) -> PathSieveError | None:
        """Take out those that have ended; the error of one that is to be asked for again."""
        ended = [branch for branch in self._branches if branch.error]
        self._branches = [branch for branch in self._branches if not branch.error]
        found = None
        for branch in ended:
            if branch.stream.is_attached:
                self._attached(to_all=True)
            error = self._judged(branch)
            self.n_breaks += branch.stream.is_attached and error is not None
            found = error or found
        return found

    def _judged(self, branch: Branch) -> PathSieveError | None:
        """Why to come back, if so; raised, if it is for good. What was deleted is not asked for again."""
        error = branch.error
        if isinstance(error, Detached) and error.reason == "DELETED" and self._branches:
            self._forget(branch.names)
            return None
        if isinstance(error, NotFound) and self.is_ready and len(self._start.subscriptions) > 1:
            self._forget({error.name})
            return error
        if isinstance(error, PathSieveError) and self._comes_back(error):
            return error
        raise error or AssertionError("a branch that goes on is not judged")

    def _comes_back(self, error: PathSieveError) -> bool:
        """Once attached, also after a fault, and while a server has not noticed that our last stream is gone."""
        return is_passing(error) or (isinstance(error, ServerFault | AlreadyAttached) and self.is_ready)

    def _forget(self, names: Collection[str]) -> None:
        kept = [name for name in self._start.subscriptions if name not in names]
        del self._start.subscriptions[:]
        self._start.subscriptions.extend(kept)


def _parts_of(placements: list[Placement]) -> dict[str, list[str]]:
    """Names by address; "" has those that nobody delivers."""
    parts: dict[str, list[str]] = {}
    for placement in placements:
        parts.setdefault(placement.address, []).extend(placement.subscriptions)
    return parts


def _part_of(start: Start, names: list[str], n_parts: int) -> Start:
    """What to ask one of several replicas for."""
    part = Start()
    part.CopyFrom(start)
    del part.subscriptions[:]
    part.subscriptions.extend(names)
    part.here_only = ALL in names
    messages, n_bytes = start.credit.messages // n_parts, start.credit.bytes // n_parts
    part.credit.CopyFrom(Credit(messages=max(1, messages), bytes=max(1, n_bytes)))
    return part


def _shown(names: list[str]) -> str:
    """
    >>> _shown(["subscriptions/a", "subscriptions/b", "subscriptions/c"])
    'subscriptions/a and 2 more'
    """
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1:,} more"
