"""Tokens on ZooKeeper: each replica looks at the map, takes what the rules give it, and is told what it has lost.

    /tokens/NNNN   lasting    {gen, owner}, never deleted; its version guards every change, gen fences writes
    /owners/NNNN   ephemeral  {replica, gen}: as long as it is there, the owner is alive

A token as one replica sees it:

                    rules say so          holder is ready, one transaction
    NOT OURS ─────────────────▶ PREPARING ─────────────────▶ OURS ── holder.taken
        ▲                           │                          │
        │  somebody was quicker     │                          │ stolen, or the session is lost
        └───────────────────────────┴──────────────────────────┘     holder.lost
              holder.not_taken

One transaction takes many tokens: for each, new data of the lasting node if it still has the version that was read, the
old ephemeral node goes, a new one comes. While the session is SUSPENDED nothing is done and nothing is given up: if it
comes back nothing has moved, and what this replica writes meanwhile is checked by the store. A token that is ours by
name but was taken by an earlier start, or in a transaction whose answer got lost, is taken again.
"""

import asyncio
import json
import logging
from collections.abc import Callable, Collection, Sequence
from functools import partial

from server.cluster.membership import Membership
from server.cluster.observation import MoveReason, TokenKind
from server.cluster.rules import Party, plan
from server.cluster.sharing import Holder, Ownership
from server.cluster.zookeeper import Create, Delete, Session, SetData, ZooKeeperUnavailable
from server.errors import ServerError
from server.subscriptions import N_TOKENS

__all__ = ["Distributor", "OnMove"]

logger = logging.getLogger("pathsieve.cluster")

DEBOUNCE = 0.03
PAUSE = 0.3
LOOK_EVERY = 30.0
AT_ONCE = 64
"""Tokens of one transaction: ZooKeeper takes a megabyte, and others want their turn."""

FOLDERS: dict[TokenKind, str] = {"matching": "", "notifying": "/notifier"}

OnMove = Callable[[TokenKind, MoveReason, int], None]


class Distributor:
    """One set of tokens. Belongs to the event loop; calls its holder one at a time."""

    def __init__(
        self,
        membership: Membership,
        kind: TokenKind,
        holder: Holder,
        on_move: OnMove = lambda kind, reason, n_tokens: None,
    ) -> None:
        self.kind = kind
        self.owners: list[Ownership] = [Ownership(token) for token in range(N_TOKENS)]
        self.mine: dict[int, int] = {}
        self.on_change: list[Callable[[], None]] = []
        self._membership = membership
        self._zookeeper = membership.zookeeper
        self._me = membership.me.replica
        self._folder = membership.root + FOLDERS[kind]
        self._holder = holder
        self._on_move = on_move
        self._versions = [0] * N_TOKENS
        self._last_owner = [""] * N_TOKENS
        self._alive: set[int] = set()
        self._stale: set[int] = set(range(N_TOKENS))
        self._prepared: set[int] = set()
        self._has_lost_session = False
        self._changed = [partial(self._token_changed, token) for token in range(N_TOKENS)]
        self._woken = asyncio.Event()
        self._settled = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Make the nodes, if this is the first replica, and begin to take part."""
        await self._zookeeper.ensure(f"{self._folder}/owners")
        there = set()
        if await self._zookeeper.get(f"{self._folder}/tokens"):
            there = set(await self._zookeeper.children(f"{self._folder}/tokens"))
        missing = [token for token in range(N_TOKENS) if _name(token) not in there]
        first = json.dumps({"gen": 0, "owner": ""}).encode()
        await asyncio.gather(
            *(self._zookeeper.ensure(f"{self._folder}/tokens/{_name(token)}", first) for token in missing)
        )
        self._zookeeper.on_state.append(self._session)
        self._membership.on_change.append(self._woken.set)
        self._woken.set()
        self._task = asyncio.create_task(self._run())

    @property
    def is_settled(self) -> bool:
        """Whether this replica has had its share since its session began."""
        return self._settled.is_set()

    async def settled(self) -> None:
        """Return when there is nothing more to take."""
        await self._settled.wait()

    async def hand_over(self, timeout: float) -> None:
        """Return when others have taken all, or nobody else is there who could, or the time is up."""
        try:
            async with asyncio.timeout(timeout):
                while self.mine and self._others():
                    await asyncio.sleep(DEBOUNCE)
        except TimeoutError:
            logger.warning("%d %s tokens were not taken by others in time", len(self.mine), self.kind)

    async def stop(self) -> None:
        """Take no more part. What is ours goes with the session."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._lose(list(self.mine), "released")

    def _others(self) -> list[str]:
        return [name for name, member in self._membership.members.items() if name != self._me and member.wants_tokens]

    def _session(self, state: Session) -> None:
        if state is Session.LOST:
            self._has_lost_session = True
            self._settled.clear()
        if state is Session.CONNECTED:
            self._stale = set(range(N_TOKENS))
        self._woken.set()

    async def _run(self) -> None:
        while True:
            try:
                async with asyncio.timeout(LOOK_EVERY):
                    await self._woken.wait()
                await asyncio.sleep(DEBOUNCE)
            except TimeoutError:
                self._stale = set(range(N_TOKENS))
            self._woken.clear()
            try:
                await self._turn()
            except (ZooKeeperUnavailable, ServerError) as error:
                logger.info("%s tokens: %s", self.kind, error)
                await self._try_again()
            except Exception:
                logger.exception("%s tokens: this should not have happened; trying again", self.kind)
                await self._try_again()

    async def _try_again(self) -> None:
        await asyncio.sleep(PAUSE)
        self._woken.set()

    async def _turn(self) -> None:
        """See what is there, let go of what is lost, take what is ours to take."""
        if self._has_lost_session:
            self._has_lost_session = False
            await self._lose(list(self.mine), "lost")
        if self._zookeeper.state is not Session.CONNECTED:
            return
        await self._read()
        await self._lose([token for token in self.mine if not self._is_mine(token)], "lost")
        for listener in self.on_change:
            listener()
        steps = self._steps()
        await self._give_up(self._prepared - {token for token, _ in steps})
        if steps:
            await self._take(steps)
            self._woken.set()
        elif self._membership.is_member:
            self._settled.set()

    def _is_mine(self, token: int) -> bool:
        owned = self.owners[token]
        return owned.owner == self._me and owned.generation == self.mine[token]

    def _steps(self) -> list[tuple[int, MoveReason]]:
        """(token, how) of some that this replica should take now."""
        if not self._membership.is_member:
            return []
        again = [token for token in range(N_TOKENS) if self.owners[token].owner == self._me and token not in self.mine]
        if again:
            return [(token, "acquired") for token in again[:AT_ONCE]]
        members = self._membership.members.items()
        parties = [Party(name, member.weight, not member.wants_tokens) for name, member in members]
        planned = plan([owned.owner for owned in self.owners], parties, self._me)
        return [(step.token, "stolen" if step.owner else "acquired") for step in planned[:AT_ONCE]]

    async def _take(self, steps: Sequence[tuple[int, MoveReason]]) -> None:
        tokens = [token for token, _ in steps]
        self._prepared.update(tokens)
        await self._holder.prepare(tokens, is_urgent=any(not self.owners[token].owner for token in tokens))
        generations = {token: self.owners[token].generation + 1 for token in tokens}
        changes: list[Create | SetData | Delete] = []
        for token in tokens:
            changes += self._changes(token, generations[token])
        self._stale.update(tokens)
        if not await self._zookeeper.multi(changes):
            return
        for token in tokens:
            self.owners[token] = Ownership(token, self._me, generations[token])
            self._last_owner[token] = self._me
            self._alive.add(token)
        self.mine.update(generations)
        taken: tuple[MoveReason, ...] = ("acquired", "stolen")
        for how in taken:
            if n_tokens := sum(one == how for _, one in steps):
                self._on_move(self.kind, how, n_tokens)
        logger.info("took %d %s tokens, has %d", len(tokens), self.kind, len(self.mine))
        try:
            await self._holder.taken(generations)
        except BaseException:
            for token in tokens:  # ours by name, but of no use: they are taken again
                del self.mine[token]
            raise
        self._prepared.difference_update(tokens)

    def _changes(self, token: int, generation: int) -> list[Create | SetData | Delete]:
        name = _name(token)
        lasting = json.dumps({"gen": generation, "owner": self._me}).encode()
        alive = json.dumps({"replica": self._me, "gen": generation}).encode()
        changes: list[Create | SetData | Delete] = [
            SetData(f"{self._folder}/tokens/{name}", lasting, self._versions[token])
        ]
        if token in self._alive:
            changes.append(Delete(f"{self._folder}/owners/{name}"))
        return [*changes, Create(f"{self._folder}/owners/{name}", alive)]

    async def _give_up(self, tokens: Collection[int]) -> None:
        """What was prepared and is not to be taken any more: somebody was quicker, or the shares have changed."""
        if tokens:
            self._prepared.difference_update(tokens)
            await self._holder.not_taken(sorted(tokens))

    async def _lose(self, tokens: Sequence[int], reason: MoveReason) -> None:
        if not tokens:
            return
        for token in tokens:
            del self.mine[token]
        self._on_move(self.kind, reason, len(tokens))
        logger.info("%s %d %s tokens, has %d", reason, len(tokens), self.kind, len(self.mine))
        await self._holder.lost(tokens)

    async def _read(self) -> None:
        """Bring the map up to date: who is alive, and the data of those tokens that have changed."""
        names = await self._zookeeper.children(f"{self._folder}/owners", self._woken.set)
        self._alive = {int(name) for name in names}
        stale, self._stale = self._stale, set()
        try:
            found = await asyncio.gather(*(self._read_token(token) for token in stale))
        except BaseException:
            self._stale |= stale
            raise
        read = {owned.token: owned for owned in found}
        self.owners = [self._seen(read.get(owned.token, owned)) for owned in self.owners]

    def _seen(self, owned: Ownership) -> Ownership:
        """As it is, with an owner only if that is alive. The lasting node keeps the name of the last one."""
        owner = self._last_owner[owned.token] if owned.token in self._alive else ""
        return Ownership(owned.token, owner, owned.generation, owned.since)

    async def _read_token(self, token: int) -> Ownership:
        found = await self._zookeeper.get(f"{self._folder}/tokens/{_name(token)}", self._changed[token])
        if found is None:
            raise ZooKeeperUnavailable(f"the node of {self.kind} token {token} is gone, though it should never be")
        data, stat = found
        facts = json.loads(data)
        self._versions[token] = stat.version
        self._last_owner[token] = facts["owner"]
        return Ownership(token, facts["owner"], facts["gen"], stat.mtime / 1000)

    def _token_changed(self, token: int) -> None:
        self._stale.add(token)
        self._woken.set()


def _name(token: int) -> str:
    """
    >>> _name(7)
    '0007'
    """
    return f"{token:04}"
