"""The subscriptions of one consumer, each in a slot: a small number that stands for it on the consumer's streams.

    slot      0       1       2
    number    12      40      41
    living    yes     no      yes      40 was deleted; its slot is not used again

Streams that share a consumer share its slots.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from server.deliveries.policies import PolicyTable, patience
from server.deliveries.routes import NOBODY, Routes
from server.deliveries.settings import DeliverySettings
from server.subscriptions import Subscription

__all__ = ["Members"]


class Members:
    """Who belongs to a consumer. Which feed each of them is fed by is written in the `Routes`."""

    __slots__ = ("_by_slot", "_numbers", "_routes", "_settings", "n_living", "policies")

    def __init__(self, routes: Routes, settings: DeliverySettings) -> None:
        self._routes = routes
        self._settings = settings
        self._by_slot: list[Subscription | None] = []
        self._numbers: np.ndarray | None = None
        self.policies = PolicyTable()
        self.n_living = 0

    def add(self, subscriptions: Sequence[Subscription]) -> list[tuple[int, str]]:
        """Give each a slot; returns the slots and names."""
        first = len(self._by_slot)
        self._by_slot.extend(subscriptions)
        self._routes.ensure(max(subscription.number for subscription in subscriptions))
        for slot, subscription in enumerate(subscriptions, first):
            self.policies.set(slot, patience(subscription.delivery, self._settings))
            self._routes.slot_of[subscription.number] = slot
        self.n_living += len(subscriptions)
        self._numbers = None
        return [(slot, subscription.name) for slot, subscription in enumerate(subscriptions, first)]

    def replace(self, subscription: Subscription) -> None:
        """The subscription has changed, but neither its schedule nor how it is delivered."""
        slot = int(self._routes.slot_of[subscription.number])
        self._by_slot[slot] = subscription
        self.policies.set(slot, patience(subscription.delivery, self._settings))

    def remove(self, number: int) -> None:
        """The number leads nowhere from now on."""
        self._by_slot[int(self._routes.slot_of[number])] = None
        self._routes.feed_of[number] = NOBODY
        self.n_living -= 1
        self._numbers = None

    def clear(self) -> None:
        """All numbers lead nowhere."""
        self._routes.feed_of[self.numbers] = NOBODY
        self._by_slot = []
        self._numbers = None
        self.n_living = 0

    @property
    def numbers(self) -> np.ndarray:
        """Of those that live, ascending."""
        if self._numbers is None:
            living = (subscription.number for subscription in self._by_slot if subscription is not None)
            self._numbers = np.sort(np.fromiter(living, np.int64, self.n_living))
        return self._numbers

    def fed_by(self, feed_id: int) -> np.ndarray:
        """The numbers of one feed, ascending."""
        return self.numbers[self._routes.feed_of[self.numbers] == feed_id]

    def living(self, slots: np.ndarray) -> np.ndarray:
        """A mask: which of these slots still stand for something."""
        if self.n_living == len(self._by_slot):
            return np.ones(len(slots), np.bool_)
        return np.array([self._by_slot[slot] is not None for slot in slots.tolist()], np.bool_)

    def slots(self) -> list[tuple[int, str]]:
        """Slots and names of those that live."""
        return [(slot, member.name) for slot, member in enumerate(self._by_slot) if member is not None]

    def at(self, number: int) -> Subscription | None:
        """The subscription with this number."""
        return self._by_slot[int(self._routes.slot_of[number])]

    def are(self, numbers: Iterable[int]) -> bool:
        """Are these, in any order, the ones that live?"""
        return set(numbers) == set(self.numbers.tolist())
