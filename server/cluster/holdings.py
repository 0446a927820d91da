"""The subscriptions that this replica matches: those of its tokens, compiled.

    prepare ──▶ LOADING ── all of them compiled ──▶ LOADED ── lost, and a while later ──▶ absent
                                                     │  ▲
                                                     └──┘ changes, as `server.cluster.following` reads them

A token is LOADED before this replica takes it, and a while longer than it owns it: whoever still takes it for the owner
gets an answer, which is as good as the new owner's, because an answer counts by what its engines have seen, not by who
owns the token. While it is LOADED every change up to `Following.applied` is in the engines.

Loading and changing take turns. A match that has begun is waited for before filters go.
"""

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from server.cluster.token_bits import no_tokens
from server.documents import Document
from server.filter_places import FilterPlaces
from server.matching import EngineMatching, Match
from server.store import Store
from server.store.subscriptions import Changes, Columns
from server.subscriptions import Filter, Subscription
from sievecore.breathing import breathing
from sievefilters import Extractors, Handle, StandingFilters
from sievefilters.number_array import NumberArray
from xpathfilter import DocumentLimits

__all__ = ["Holdings"]

logger = logging.getLogger("pathsieve.cluster")

ROWS_AT_ONCE = 8192
"""Subscriptions that are compiled in one go, while changes wait: as many at a time cost a fifth of token by token."""
ROWS_UNHURRIED = 1024
REST = 3.0
"""While the tokens have an owner who serves them, nobody waits: smaller goes, and a rest of so many times each go."""
LINGER = 5.0
"""Seconds that a token stays loaded when it is lost: longer than a batch takes that was sent here before."""


class Holdings:
    """Engines for the tokens of one replica. Belongs to the event loop; compiling runs in threads."""

    def __init__(
        self,
        store: Store,
        extractors: Extractors | None = None,
        document_limits: DocumentLimits | None = None,
        threads: int = 2,
        on_match: Callable[[float, int], None] = lambda seconds, n_documents: None,
        on_load: Callable[[float], None] = lambda seconds: None,
        linger: float = LINGER,
    ) -> None:
        self.tenants: dict[str, StandingFilters] = {}
        self.engines = EngineMatching(self.filters_of, threads, on_match)
        self.changing = asyncio.Lock()
        self.loaded = no_tokens()
        self._store = store
        self._extractors = extractors
        self._document_limits = document_limits
        self._on_load = on_load
        self._linger = linger
        self._places = FilterPlaces()
        self._token_of = NumberArray()
        self._tenant_of = NumberArray()
        self._tenant_names: list[str] = [""]
        self._new_tenant = threading.Lock()
        self._matches: set[asyncio.Task[Match]] = set()
        self._wanted: set[int] = set()
        self._unloading: set[asyncio.Task[None]] = set()

    def filters_of(self, tenant: str) -> StandingFilters:
        """The engines of a tenant; a tenant that is new gets its own. May be called from any thread."""
        with self._new_tenant:
            if tenant not in self.tenants:
                self._tenant_names.append(tenant)
                self.tenants[tenant] = StandingFilters(self._extractors, self._document_limits)
            return self.tenants[tenant]

    async def match(self, tenant: str, documents: Sequence[Document]) -> tuple[np.ndarray, Match]:
        """The tokens that were asked, and what their subscriptions, and ephemeral filters here, want."""
        loaded = self.loaded.copy()
        task = asyncio.create_task(self.engines.match(tenant, documents))
        self._matches.add(task)
        task.add_done_callback(self._matches.discard)
        return loaded, await asyncio.shield(task)

    # What the distributor calls

    async def prepare(self, tokens: Sequence[int], is_urgent: bool = True) -> None:
        """Have these loaded."""
        started = time.perf_counter()
        self._wanted.update(tokens)
        waiting = deque(tokens)
        n_loaded = 0
        while waiting:
            began = time.perf_counter()
            async with self.changing:
                n_loaded += await self._load_some(waiting, ROWS_AT_ONCE if is_urgent else ROWS_UNHURRIED)
            if not is_urgent:
                await asyncio.sleep(REST * (time.perf_counter() - began))
        if n_loaded:
            self._on_load(time.perf_counter() - started)

    async def not_taken(self, tokens: Sequence[int]) -> None:
        """They are loaded for nothing."""
        await self.lost(tokens)

    async def taken(self, generations: Mapping[int, int]) -> None:
        """They are loaded, and that is all."""

    async def lost(self, tokens: Sequence[int]) -> None:
        """Unload them in a while, unless they are wanted again by then."""
        self._wanted.difference_update(tokens)
        task = asyncio.create_task(self._unload(tokens))
        self._unloading.add(task)
        task.add_done_callback(self._unloading.discard)

    async def _unload(self, tokens: Sequence[int]) -> None:
        await asyncio.sleep(self._linger)
        async with self.changing:
            await self._drop([token for token in tokens if token not in self._wanted and self.loaded[token]])

    async def _drop(self, tokens: Sequence[int]) -> None:
        """Have nothing of them in the engines. To be called with `changing` held."""
        self.loaded[list(tokens)] = False
        if self._matches:
            await asyncio.wait(set(self._matches))
        numbers = np.flatnonzero(np.isin(self._token_of.values, np.array(tokens, np.int64) + 1)).tolist()
        await asyncio.to_thread(self._forget, numbers)

    def close(self) -> None:
        for task in self._unloading:
            task.cancel()
        self.engines.close()

    # Loading

    async def _load_some(self, waiting: "deque[int]", most_rows: int) -> int:
        """Load the first few that wait; how many that were."""
        tokens: list[int] = []
        rows: dict[str, list[tuple[Filter, int, int]]] = {}
        n_rows = 0
        while waiting and n_rows < most_rows:
            token = waiting.popleft()
            if self.loaded[token]:
                continue
            tokens.append(token)
            async for columns in self._store.subscriptions.of_tokens([token]):  # one: rows in the order of their index
                n_rows += len(columns.numbers)
                await asyncio.to_thread(_add_rows, rows, columns, token)
        try:
            await asyncio.to_thread(self._put_rows, rows)
        except Exception:
            await self._drop(tokens)  # no change would reach them: they would match what they have wanted once
            raise
        self.loaded[tokens] = True
        return len(tokens)

    def _put_rows(self, rows: Mapping[str, Sequence[tuple[Filter, int, int]]]) -> None:
        for tenant, ours in rows.items():
            filters, numbers, tokens = zip(*ours, strict=True)
            self._put(tenant, filters, numbers, tokens)

    # Changing

    async def apply(self, changes: Changes) -> None:
        """Bring the loaded tokens to a later revision. To be called with `changing` held."""
        deleted = [tombstone.number for tombstone in changes.deleted]
        ours = [subscription for subscription in changes.changed if self.loaded[subscription.token]]
        await asyncio.to_thread(self._apply, ours, deleted)

    def _apply(self, changed: Sequence[Subscription], deleted: Sequence[int]) -> None:
        by_tenant: dict[str, list[Subscription]] = {}
        for subscription in changed:
            by_tenant.setdefault(subscription.tenant, []).append(subscription)
        for tenant, some in by_tenant.items():
            self._put(tenant, [one.filter for one in some], [one.number for one in some], [one.token for one in some])
        self._forget(deleted)

    def _put(self, tenant: str, filters: Sequence[Filter], numbers: Sequence[int], tokens: Sequence[int]) -> None:
        """Compile filters and reveal them, each in the place of an older one of its number."""
        engines = self.filters_of(tenant)
        tenant_place = self._tenant_names.index(tenant)
        loaded: list[tuple[Handle, int]] = []
        old = [handle for handle in map(self._places.get, numbers) if handle is not None]
        for handle, number, token in breathing(zip(engines.prepare_many(filters), numbers, tokens, strict=True)):
            self._token_of.put(number, token + 1)
            self._tenant_of.put(number, tenant_place)
            if isinstance(handle, Handle):
                loaded.append((handle, number))
                self._places.put(number, handle)
            else:
                self._places.take(number)
                logger.error("subscription number %d cannot be compiled any more: %s", number, handle)
        engines.reveal_many([handle for handle, _ in loaded], [number for _, number in loaded])
        engines.discard_many(old)

    def _forget(self, numbers: Sequence[int]) -> None:
        by_tenant: dict[int, list[Handle]] = {}
        for number in numbers:
            handle = self._places.take(number)
            if handle is not None:
                by_tenant.setdefault(self._tenant_of[number], []).append(handle)
            self._token_of.put(number, 0)
        for place, handles in by_tenant.items():
            self.tenants[self._tenant_names[place]].discard_many(handles)


def _add_rows(rows: dict[str, list[tuple[Filter, int, int]]], columns: Columns, token: int) -> None:
    """Filter, number and token of each subscription, by tenant."""
    written = zip(columns.kinds, columns.expressions, columns.namespaces, strict=True)
    for tenant, facts, number in breathing(zip(columns.tenants, written, columns.numbers.tolist(), strict=True)):
        rows.setdefault(tenant, []).append((Filter(*facts), number, token))
