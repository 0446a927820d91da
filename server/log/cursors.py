"""How far each subscription has come: everything up to its floor is done.

    sequence    38  39  40 │ 41  42  43  44 │
    state     done done done    ·  done done  ·          floor 40, head 44, 42 and 43 kept aside, backlog 2

Floors are an array, so acknowledging a document for 5,000 subscriptions is a few numpy calls. What is exceptional is
kept aside in `leftovers`, for the few that have it.

`floor_positions` says where in the log a subscription's backlog may begin: all its records up to there are done. It is
a lower bound, so it may be old, never wrong. It is set where that is free: when a record comes for a subscription that
has no backlog, to the position before; when an acknowledgement brings its position along; and at the start, for all
without a backlog at the last checkpoint, to that checkpoint. Seeking back sets it to 0.

`gone` is the last sequence that retention has dropped: nobody can seek back to it.

An acknowledgement is durable after the next `flush`, which comes by itself within `flush_interval` seconds. One that
is lost in a crash is a redelivery.

Of several replicas each has the cursors of its tokens: it loads them when it has taken a token, and writes them as long
as the store takes its writes; what an old owner could not write any more is a redelivery too.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from server.errors import Fenced, StoreUnavailable
from server.log import cursor_rows
from server.log.cursor_rows import BLOCK, N_TOKENS, PAGE, pages_of
from server.log.leftovers import Leftovers
from server.log.match_log import MatchLog
from server.log.number_codes import unpack
from server.store import Store
from server.store.databases import Connection
from server.store.jobs import Operation

__all__ = ["Cursors"]

logger = logging.getLogger("pathsieve.cursors")


class Cursors:
    """The cursors of one log. All methods are called on the event loop; `open` makes one."""

    def __init__(self, store: Store, log: MatchLog, flush_interval: float) -> None:
        self.floors = np.zeros(BLOCK, np.int64)
        self.floor_positions = np.zeros(BLOCK, np.int64)
        self.gone = np.zeros(BLOCK, np.int64)
        self.n_expired = 0  # past retention, and never done, since the start
        self.flush_interval = flush_interval
        self.fence: Callable[[Sequence[int]], Operation] = lambda tokens: lambda connection: None
        self.on_fenced: Callable[[Sequence[int]], None] = lambda tokens: None
        self._store = store
        self._log = log
        self._leftovers: dict[int, Leftovers] = {}
        self._has_leftovers = np.zeros(BLOCK, np.bool_)
        self._dirty_pages = np.zeros(N_TOKENS, np.bool_)
        self._is_ours = np.zeros(N_TOKENS, np.bool_)
        self._dirty_leftovers: set[int] = set()
        self._changes = 0
        self._flushed = 0
        self._flushing = asyncio.Lock()
        self._changed = asyncio.Event()
        self._flusher: asyncio.Task[None] | None = None

    @classmethod
    async def open(
        cls, store: Store, log: MatchLog, *, flush_interval: float = 0.3, tokens: Sequence[int] = range(N_TOKENS)
    ) -> "Cursors":
        """The cursors of some tokens as they were last flushed. From now on the log tells them of new records."""
        cursors = cls(store, log, flush_interval)
        await store.write(cursor_rows.convert)
        await cursors.load(tokens)
        cursors._start()
        return cursors

    async def load(self, tokens: Sequence[int]) -> None:
        """Read the cursors of some tokens, in place of what is in memory."""
        pages, leftovers = await self._store.read(partial(cursor_rows.read, tokens=tokens))
        self.ensure(max(len(self._log.heads) - 1, *(page // N_TOKENS * BLOCK for page, *_ in pages), 0))
        self.unload(tokens)
        self._reset(np.isin(np.arange(N_TOKENS), tokens))
        self._is_ours[list(tokens)] = True
        for page, *codes in pages:
            first = page // N_TOKENS * BLOCK + page % N_TOKENS
            for name, code in zip(cursor_rows.COLUMNS, codes, strict=True):
                getattr(self, name)[first : first + BLOCK : N_TOKENS] = unpack(code, PAGE)
        for number, state in leftovers:
            self.ensure(number)
            self._keep(number, Leftovers.from_text(state))
        self._find_idle(np.array(tokens, np.int64))

    def unload(self, tokens: Sequence[int]) -> None:
        """Some tokens are no longer ours: what is not written of them is not written any more.

        What was known of them stays until they are loaded again, for a stream that is still being told.
        """
        gone = np.isin(np.arange(N_TOKENS), tokens)
        self._is_ours[gone] = False
        self._dirty_pages.reshape(-1, N_TOKENS)[:, gone] = False
        self._dirty_leftovers = {number for number in self._dirty_leftovers if not gone[number % N_TOKENS]}

    def _reset(self, tokens: np.ndarray) -> None:
        for name in cursor_rows.COLUMNS:
            getattr(self, name).reshape(-1, N_TOKENS)[:, tokens] = 0
        for number in [number for number in self._leftovers if tokens[number % N_TOKENS]]:
            del self._leftovers[number]
            self._has_leftovers[number] = False

    def _find_idle(self, tokens: np.ndarray) -> None:
        """Whoever had nothing waiting when the last segment was closed need not be looked for before that."""
        log, n_known = self._log, len(self._log.closer.heads)
        numbers = np.flatnonzero(np.isin(np.arange(N_TOKENS), tokens)[np.arange(len(self.floors)) % N_TOKENS])
        known = numbers[numbers < n_known]
        idle = known[self.floors[known] == log.closer.heads[known]]
        self.floor_positions[idle] = log.tail.closed
        self.floor_positions[numbers[numbers >= n_known]] = log.tail.closed

    def _start(self) -> None:
        log = self._log
        log.closer.on_close = self._segment_closed
        log.tail.before_record = self._meet
        log.reader.start_of = self._start_of
        log.retention.on_expire = self._expire
        self._flusher = asyncio.create_task(self._flush_now_and_then())

    def ensure(self, number: int) -> None:
        """Make room for a number."""
        if number < len(self.floors):
            return
        n_blocks = max(number // BLOCK + 1, len(self.floors) // BLOCK * 3 // 2)
        for name in (*cursor_rows.COLUMNS, "_has_leftovers"):
            setattr(self, name, _grown(getattr(self, name), n_blocks * BLOCK))
        self._dirty_pages = _grown(self._dirty_pages, n_blocks * N_TOKENS)

    def acknowledge(
        self, numbers: np.ndarray, sequences: np.ndarray, positions: np.ndarray | int | None = None
    ) -> None:
        """These sequences are done, in whatever order they come; those that do not exist are left out.

        `positions`, where the caller knows them, are those of the records in the log.
        """
        highest = int(numbers.max(initial=0))
        self._log.ensure(highest)
        self.ensure(highest)
        floors, exists = self.floors[numbers], sequences <= self._log.heads[numbers]
        in_order, ahead = exists & (sequences == floors + 1), exists & (sequences > floors + 1)
        advanced = numbers[in_order]
        self.floors[advanced] = sequences[in_order]
        if positions is not None:
            self.floor_positions[advanced] = np.broadcast_to(positions, numbers.shape)[in_order]
        self._touch(advanced)
        self._keep_aside(numbers[ahead], sequences[ahead])
        self._advance(numbers[exists & self._has_leftovers[numbers]])

    def acknowledge_through(self, numbers: np.ndarray, sequences: np.ndarray) -> None:
        """All up to these sequences is done, for numbers that come once; floors only move forward."""
        highest = int(numbers.max(initial=0))
        self._log.ensure(highest)
        self.ensure(highest)
        reached = np.minimum(sequences, self._log.heads[numbers])
        ahead = reached > self.floors[numbers]
        advanced = numbers[ahead]
        self.floors[advanced] = reached[ahead]
        self._touch(advanced)
        self._advance(advanced[self._has_leftovers[advanced]])

    def floor(self, number: int) -> int:
        """Everything of a subscription up to this sequence is done."""
        return int(self.floors[number]) if number < len(self.floors) else 0

    async def stored_floor(self, number: int) -> int:
        """The floor as it was last written, by whoever has the cursor."""
        token = number % N_TOKENS
        pages, _ = await self._store.read(partial(cursor_rows.read, tokens=[token]))
        columns = {page: codes for page, *codes in pages}.get(int(pages_of(np.array([number]))[0]))
        return int(unpack(columns[0], PAGE)[number % BLOCK // N_TOKENS]) if columns else 0

    def is_done(self, number: int, sequence: int) -> bool:
        if number >= len(self.floors):
            return False
        leftovers = self._leftovers.get(number)
        return bool(sequence <= self.floors[number]) or (leftovers is not None and sequence in leftovers.done)

    def attempts(self, number: int, sequence: int) -> int:
        """How often a delivery has been counted as tried."""
        leftovers = self._leftovers.get(number)
        return leftovers.attempts.get(sequence, 0) if leftovers else 0

    def count_attempt(self, number: int, sequence: int) -> int:
        """Count one more attempt at a delivery; how many there were."""
        leftovers = self._leftovers_of(number)
        leftovers.attempts[sequence] = leftovers.attempts.get(sequence, 0) + 1
        self._touch_leftovers(number)
        return leftovers.attempts[sequence]

    def digest_time(self, number: int) -> float:
        """When the last digest left; 0 if none has."""
        leftovers = self._leftovers.get(number)
        return leftovers.digest_time if leftovers else 0.0

    def set_digest_time(self, number: int, time: float) -> None:
        self._leftovers_of(number).digest_time = time
        self._touch_leftovers(number)

    def seek(self, number: int, next_sequence: int) -> None:
        """Go on with `next_sequence`, earlier or later; everything from there on is not done any more.

        What retention has dropped stays done, and nothing is done that is not there yet.
        """
        self.ensure(number)
        self._log.ensure(number)
        floor = min(max(next_sequence - 1, int(self.gone[number])), int(self._log.heads[number]))
        if floor < self.floors[number]:
            self.floor_positions[number] = 0
        self.floors[number] = floor
        if number in self._leftovers:
            self._leftovers[number].forget_deliveries()
            self._touch_leftovers(number)
        self._touch(np.array([number]))

    def forget(self, number: int) -> None:
        """A subscription was deleted: nothing of it is owed any more."""
        self.seek(number, 1 << 62)
        self._leftovers.pop(number, None)
        self._has_leftovers[number] = False
        self._dirty_leftovers.discard(number)

    def backlog(self, numbers: np.ndarray) -> int:
        """How many matches of some numbers are not done."""
        known = numbers[numbers < min(len(self.floors), len(self._log.heads))]
        waiting = int((self._log.heads[known] - self.floors[known]).sum())
        aside = known[self._has_leftovers[known]].tolist()
        return waiting - sum(len(self._leftovers[number].done) for number in aside)

    def undone(self, numbers: np.ndarray, sequences: np.ndarray) -> np.ndarray:
        """A mask: which of these have still to be delivered."""
        self.ensure(int(numbers.max(initial=0)))
        waiting: np.ndarray = sequences > self.floors[numbers]
        for place in np.flatnonzero(waiting & self._has_leftovers[numbers]).tolist():
            waiting[place] = sequences[place] not in self._leftovers[int(numbers[place])].done
        return waiting

    def has_backlog(self, numbers: np.ndarray) -> np.ndarray:
        """A mask: which numbers have something that is not done."""
        highest = int(numbers.max(initial=0))
        self._log.ensure(highest)
        self.ensure(highest)
        behind: np.ndarray = self.floors[numbers] < self._log.heads[numbers]
        return behind

    def positions(self, numbers: np.ndarray) -> np.ndarray:
        """A position of the log for each number, after which all that is not done is found."""
        self.ensure(int(numbers.max(initial=0)))
        return self.floor_positions[numbers]

    async def flush(self) -> None:
        """When this returns, all that was acknowledged before is durable."""
        wanted = self._changes
        async with self._flushing:
            if self._flushed < wanted:
                await self._write_changes()

    async def close(self) -> None:
        """Flush for the last time."""
        self.stop()
        await self.flush()

    def stop(self) -> None:
        """Flush no more by itself."""
        if self._flusher is not None:
            self._flusher.cancel()

    async def _write_changes(self) -> None:
        changes = self._changes
        pages, numbers = np.flatnonzero(self._dirty_pages), self._dirty_leftovers
        self._dirty_pages[pages], self._dirty_leftovers = False, set()
        states = [
            (number, self._leftovers[number].to_text() if self._leftovers.get(number) else "") for number in numbers
        ]
        columns = [self._columns(name, pages) for name in cursor_rows.COLUMNS]
        tokens = sorted({*(pages % N_TOKENS).tolist(), *(number % N_TOKENS for number in numbers)})
        fence = self.fence(tokens)

        def write(connection: Connection) -> None:
            fence(connection)
            cursor_rows.write(connection, pages, columns, states)

        try:
            await self._store.write(write)
        except Fenced as fenced:
            self._dirty_pages[pages] = True
            self._dirty_leftovers |= numbers
            self.unload(fenced.tokens)
            self.on_fenced(fenced.tokens)
            raise
        except BaseException:
            self._dirty_pages[pages] = True
            self._dirty_leftovers |= numbers
            raise
        self._flushed = changes

    def _columns(self, name: str, pages: np.ndarray) -> np.ndarray:
        """Of some pages, a row each."""
        blocks = getattr(self, name).reshape(-1, PAGE, N_TOKENS)
        return blocks[pages // N_TOKENS, :, pages % N_TOKENS]

    async def _flush_now_and_then(self) -> None:
        while True:
            await self._changed.wait()
            await asyncio.sleep(self.flush_interval)
            self._changed.clear()
            try:
                await self.flush()
            except Fenced as fenced:
                logger.info("acknowledgements of what moved to another replica are dropped: %s", fenced)
                self._changed.set()
            except StoreUnavailable as error:
                logger.warning("acknowledgements could not be written yet: %s", error)
                self._changed.set()

    def _meet(self, position: int, numbers: np.ndarray, heads_before: np.ndarray) -> None:
        """A record has come; whoever was idle until now has its backlog begin here."""
        if len(numbers):
            self.ensure(int(numbers[-1]))
        self.floor_positions[numbers[self.floors[numbers] == heads_before]] = position - 1

    def _segment_closed(self, pages: Sequence[int]) -> None:
        """Where a backlog begins is worth writing before the records it begins in are out of memory."""
        numbers = (np.array(pages, np.int64)[:, None] * PAGE + np.arange(PAGE)).ravel()
        self.ensure(int(numbers.max(initial=0)))
        self._touch(numbers[self.floor_positions[numbers] > 0])

    def _start_of(self, number: int, first_sequence: int) -> int:
        if number >= len(self.floors) or first_sequence <= self.floors[number]:
            return 0
        return int(self.floor_positions[number])

    async def _expire(self, numbers: np.ndarray, last_sequences: np.ndarray) -> int:
        """Move floors past what retention is about to drop, durably; how many matches were never done."""
        ours = self._is_ours[numbers % N_TOKENS]  # who has the others follows the log, and moves them by itself
        numbers, last_sequences = numbers[ours], last_sequences[ours]
        self.ensure(int(numbers.max(initial=0)))
        self.gone[numbers] = last_sequences
        behind = self.floors[numbers] < last_sequences
        lost_numbers, lost_sequences = numbers[behind], last_sequences[behind]
        before = self.backlog(lost_numbers)
        self.floors[lost_numbers] = lost_sequences
        self._touch(numbers)
        self._advance(lost_numbers[self._has_leftovers[lost_numbers]])
        await self.flush()
        n_lost = before - self.backlog(lost_numbers)
        self.n_expired += n_lost
        return n_lost

    async def skip_expired(self, expired: int) -> int:
        """The keeper has dropped all records up to a position: floors move past them; how many were never done."""
        heads = self._log.heads
        n_known = min(len(heads), len(self.floors))
        behind = np.flatnonzero((self.floors[:n_known] < heads[:n_known]) & (self.floor_positions[:n_known] < expired))
        n_skipped = 0
        for number in behind[self._is_ours[behind % N_TOKENS]].tolist():
            floor = self.floor(number)
            found = await self._log.reader.places(number, floor + 1, 1)
            first = found[0][0] if found else int(heads[number]) + 1
            if first - 1 > self.floors[number]:
                n_skipped += first - 1 - int(self.floors[number])
                self.floors[number] = self.gone[number] = first - 1
                self._advance(np.array([number])[self._has_leftovers[[number]]])
            self._touch(np.array([number]))
        self.n_expired += n_skipped
        return n_skipped

    def _keep_aside(self, numbers: np.ndarray, sequences: np.ndarray) -> None:
        for number, sequence in zip(numbers.tolist(), sequences.tolist(), strict=True):
            leftovers = self._leftovers_of(number)
            leftovers.done.add(sequence)
            leftovers.attempts.pop(sequence, None)
            self._touch_leftovers(number)

    def _advance(self, numbers: np.ndarray) -> None:
        """Floors were moved: take along what follows them, forget what they have passed."""
        for number in set(numbers.tolist()):
            leftovers = self._leftovers[number]
            self.floors[number] = leftovers.advance(int(self.floors[number]))
            self._touch_leftovers(number)
            if not leftovers:
                del self._leftovers[number]
                self._has_leftovers[number] = False

    def _leftovers_of(self, number: int) -> Leftovers:
        self.ensure(number)
        if number not in self._leftovers:
            self._keep(number, Leftovers())
        return self._leftovers[number]

    def _keep(self, number: int, leftovers: Leftovers) -> None:
        self._leftovers[number] = leftovers
        self._has_leftovers[number] = True

    def _touch(self, numbers: np.ndarray) -> None:
        self._dirty_pages[pages_of(numbers[self._is_ours[numbers % N_TOKENS]])] = True
        self._note_change()

    def _touch_leftovers(self, number: int) -> None:
        if self._is_ours[number % N_TOKENS]:
            self._dirty_leftovers.add(number)
            self._note_change()

    def _note_change(self) -> None:
        self._changes += 1
        self._changed.set()


def _grown(array: np.ndarray, length: int) -> np.ndarray:
    grown = np.zeros(length, array.dtype)
    grown[: len(array)] = array
    return grown
