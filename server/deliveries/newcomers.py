"""All subscriptions of a tenant, as of one moment, though listing them takes a while.

list ────── page 1 ────── page 2 ──────▶ found
meanwhile         + created  − deleted ──▶ found, with what has changed since
"""

from collections.abc import Awaitable, Callable, Sequence

from server.subscriptions import Subscription

__all__ = ["Newcomers"]


class Newcomers:
    """Remembers what changes while somebody lists."""

    def __init__(self) -> None:
        self._watching: list[tuple[str, dict[int, Subscription | None]]] = []

    def changed(self, subscription: Subscription) -> None:
        """It was created or updated."""
        self._note(subscription.tenant, subscription.number, subscription)

    def deleted(self, subscription: Subscription) -> None:
        """It is gone."""
        self._note(subscription.tenant, subscription.number, None)

    async def all_of(
        self, tenant: str, list_all: Callable[[], Awaitable[Sequence[Subscription]]]
    ) -> list[Subscription]:
        """What `list_all` finds, brought to the moment at which this returns."""
        watch: tuple[str, dict[int, Subscription | None]] = (tenant, {})
        self._watching.append(watch)
        try:
            found = await list_all()
        finally:
            self._watching = [other for other in self._watching if other is not watch]
        latest = {subscription.number: subscription for subscription in found} | watch[1]
        return [subscription for subscription in latest.values() if subscription is not None]

    def _note(self, tenant: str, number: int, subscription: Subscription | None) -> None:
        for watched, changes in self._watching:
            if watched == tenant:
                changes[number] = subscription
