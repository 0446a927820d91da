"""Filters that live as long as the stream that brought them, and touch no disk.

attach ─▶ check, prepare all ─▶ reveal as numbers from EPHEMERAL upward ─▶ stream
close  ─▶ discard
"""

import asyncio
from collections.abc import Sequence

import numpy as np

from server.catalog import Catalog
from server.checks import check_filter
from server.deliveries import EPHEMERAL, Credit, Deliveries, EphemeralAttachment
from server.errors import InvalidRequest, LimitExceeded
from server.subscriptions import Filter
from sievefilters import Handle, StandingFilters

__all__ = ["EphemeralFilters"]


class EphemeralFilters:
    """All filters of all ephemeral streams."""

    def __init__(self, catalog: Catalog, deliveries: Deliveries, max_filters_per_stream: int = 1_000_000) -> None:
        self._catalog = catalog
        self._deliveries = deliveries
        self._most = max_filters_per_stream
        self._next = EPHEMERAL
        self._handles: dict[EphemeralAttachment, tuple[StandingFilters, list[Handle]]] = {}

    async def attach(
        self, tenant: str, filters: Sequence[Filter], credit: Credit, heartbeat: float
    ) -> EphemeralAttachment:
        """A stream for some filters; the first that is refused refuses it."""
        self._check(filters)
        engines = self._catalog.filters_of(tenant)
        prepared = await asyncio.to_thread(engines.prepare_many, filters)
        handles = [handle for handle in prepared if isinstance(handle, Handle)]
        refused = [outcome for outcome in prepared if not isinstance(outcome, Handle)]
        if refused:
            await asyncio.to_thread(engines.discard_many, handles)
            raise refused[0]
        numbers = np.arange(self._next, self._next + len(handles))
        self._next += len(handles)
        attachment = self._deliveries.attach_ephemeral(tenant, numbers, credit, heartbeat)
        self._handles[attachment] = engines, handles
        engines.reveal_many(handles, numbers.tolist())
        return attachment

    async def detach(self, attachment: EphemeralAttachment) -> None:
        """The stream is closed: its filters go."""
        engines, handles = self._handles.pop(attachment)
        await attachment.close()
        await asyncio.to_thread(engines.discard_many, handles)

    def _check(self, filters: Sequence[Filter]) -> None:
        if not filters:
            raise InvalidRequest("start", "expected subscriptions, or filters in `ephemeral`")
        if len(filters) > self._most:
            raise LimitExceeded("max_filters_per_stream", self._most, len(filters), "open several streams")
        for filter in filters:
            check_filter(filter, self._catalog.limits)
