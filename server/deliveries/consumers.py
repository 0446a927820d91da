"""Who has which subscriptions, and who may attach to what.

    there is                            exclusive attach    shared attach      pull
    ----------------------------------  ------------------  -----------------  -----------------------------------------
    nobody                              has it              has it             has it
    an exclusive stream                 refused             refused            refused
    shared streams, the same list       refused             one more stream    takes part, if the list is it alone
    shared streams, another list        refused             refused            refused
    pulls                               takes over          takes over         takes part
    a stream of the same consumer name  replaces it         replaces it        refused

A stream that takes over from pulls gets what they had out, too; a pull that waits comes back empty.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from weakref import WeakValueDictionary

import numpy as np

from server.deliveries.attachment import Attachment
from server.deliveries.consumer import Consumer
from server.deliveries.environment import Environment
from server.deliveries.events import AttachMode, Credit, GoodbyeReason
from server.deliveries.feeds import Feed
from server.errors import AlreadyAttached
from server.subscriptions import Schedule, Subscription

__all__ = ["Consumers"]


class Consumers:
    """All consumers that have a stream, or messages out that were pulled."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._consumers: dict[Consumer, None] = {}
        self._followers: dict[str, Consumer] = {}
        self._named: WeakValueDictionary[tuple[str, str], Attachment] = WeakValueDictionary()

    def __len__(self) -> int:
        return len(self._consumers)

    def streams(self) -> list[Attachment]:
        """All streams there are."""
        return [stream for consumer in self._consumers for stream in consumer.streams]

    def of(self, number: int) -> Consumer | None:
        """Who has the subscription."""
        listener = self._environment.routes.listener(number)
        return listener.consumer if isinstance(listener, Feed) else None

    def passed(self, numbers: np.ndarray) -> None:
        """Cursors of some numbers were moved forward: whoever has one of them lets go of what is done by now."""
        self._environment.routes.ensure(int(numbers.max(initial=0)))
        for consumer in {one.consumer for one in self._environment.routes.listeners(numbers) if isinstance(one, Feed)}:
            consumer.passed()

    def follower(self, tenant: str) -> Consumer | None:
        """Who has all subscriptions of the tenant."""
        return self._followers.get(tenant)

    def attach(
        self,
        tenant: str,
        subscriptions: Sequence[Subscription],
        mode: AttachMode,
        name: str,
        credit: Credit,
        follows: bool,
        heartbeat: float,
    ) -> Attachment:
        """A stream for these subscriptions, by the rules of the table; `AlreadyAttached` if they forbid it."""
        older = self._older(tenant, name)
        consumer = self._admit(tenant, subscriptions, mode, follows, older)
        if older is not None:
            older.goodbye(GoodbyeReason.REPLACED)
            older.consumer.left(older)
        if consumer is None or consumer not in self._consumers:
            consumer = self._start(tenant, subscriptions, mode, follows)
        stream = Attachment(consumer, self._environment, name, credit, heartbeat)
        if name:
            self._named[tenant, name] = stream
        consumer.enter(stream)
        return stream

    def pull(self, subscription: Subscription, credit: Credit, wait: float) -> Attachment:
        """A short-lived stream of one subscription, whatever its schedule: who pulls says when."""
        consumer = self.of(subscription.number)
        if consumer is None:
            consumer = self._add(subscription.tenant, AttachMode.SHARED, follows=False, pulls=True)
            consumer.join([replace(subscription, schedule=Schedule())])
        elif consumer.mode is AttachMode.EXCLUSIVE or not consumer.members.are([subscription.number]):
            raise AlreadyAttached(subscription.name, "a stream has it; detach it, or read from the stream")
        stream = Attachment(consumer, self._environment, "", credit, wait)
        consumer.streams.append(stream)
        consumer.wake()
        return stream

    def hand_over(self, goes: Callable[[np.ndarray], np.ndarray]) -> None:
        """Other replicas have some subscriptions from now on, a mask of numbers tells which: whoever has one of them,
        or follows a tenant, is told to ask again."""
        for consumer in list(self._consumers):
            if consumer.follows or goes(consumer.members.numbers).any():
                self._dismiss(consumer, GoodbyeReason.MOVED)

    def _older(self, tenant: str, name: str) -> Attachment | None:
        """The stream of the same consumer name, if it is still there."""
        older = self._named.get((tenant, name)) if name else None
        return older if older is not None and older in older.consumer.streams else None

    def _admit(
        self,
        tenant: str,
        subscriptions: Sequence[Subscription],
        mode: AttachMode,
        follows: bool,
        older: Attachment | None,
    ) -> Consumer | None:
        """The consumer to take part in, if there is one; pulls that are in the way end."""
        owners = self._owners(tenant, subscriptions, follows)
        numbers = [subscription.number for subscription in subscriptions]
        joined = None
        for owner in owners:
            if _may_take_part(owner, mode, follows, numbers):
                joined = owner
            elif owner.streams != [older] and not owner.pulls:
                raise AlreadyAttached(self._name_of(owner, subscriptions), _why(owner, mode))
        for owner in owners:
            if owner.pulls:
                self._dismiss(owner, GoodbyeReason.REPLACED)
        return joined

    def _owners(self, tenant: str, subscriptions: Sequence[Subscription], follows: bool) -> set[Consumer]:
        self._environment.routes.ensure(max((subscription.number for subscription in subscriptions), default=0))
        numbers = np.array([subscription.number for subscription in subscriptions], np.int64)
        listeners = self._environment.routes.listeners(numbers)
        owners = {listener.consumer for listener in listeners if isinstance(listener, Feed)}
        if follows and tenant in self._followers:
            owners.add(self._followers[tenant])
        return owners

    def _name_of(self, owner: Consumer, subscriptions: Sequence[Subscription]) -> str:
        """A subscription that `owner` has."""
        names = (subscription.name for subscription in subscriptions if self.of(subscription.number) is owner)
        return next(names, "subscriptions/-")

    def _dismiss(self, consumer: Consumer, reason: GoodbyeReason) -> None:
        for stream in list(consumer.streams):
            stream.goodbye(reason)
        consumer.streams.clear()
        consumer.end()

    def _start(self, tenant: str, subscriptions: Sequence[Subscription], mode: AttachMode, follows: bool) -> Consumer:
        consumer = self._add(tenant, mode, follows, pulls=False)
        if follows:
            self._followers[tenant] = consumer
        if subscriptions:
            consumer.join(subscriptions)
        return consumer

    def _add(self, tenant: str, mode: AttachMode, follows: bool, pulls: bool) -> Consumer:
        consumer = Consumer(self._environment, tenant, mode, follows, pulls, self._ended)
        self._consumers[consumer] = None
        return consumer

    def _ended(self, consumer: Consumer) -> None:
        self._consumers.pop(consumer, None)
        if self._followers.get(consumer.tenant) is consumer:
            del self._followers[consumer.tenant]


def _may_take_part(owner: Consumer, mode: AttachMode, follows: bool, numbers: list[int]) -> bool:
    """May one more stream share what `owner` has?"""
    if owner.pulls or owner.mode is not AttachMode.SHARED or mode is not AttachMode.SHARED:
        return False
    return owner.follows == follows and (follows or owner.members.are(numbers))


def _why(owner: Consumer, mode: AttachMode) -> str:
    if owner.mode is AttachMode.EXCLUSIVE:
        return "another stream has it exclusively; wait for that one to end, or attach with its consumer name"
    if mode is AttachMode.EXCLUSIVE:
        return "other streams share it; attach in shared mode with the same list of subscriptions"
    return "other streams share it with another list of subscriptions; give the same list"
