"""Match log and cursors against the obvious: a list of everything that was ever appended, and a set of what is done.

Small segments, small caches, new starts at any moment. What is flushed survives a start; what is not may be undone
again, so a start without a flush goes back to the last one.
"""

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from hypothesis import settings, strategies
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from server.documents import Document
from server.log.cursors import Cursors
from server.log.match_log import MatchLog, SegmentLimits
from server.store import open_store

NUMBERS = (1, 2, 3, 1023, 1024, 20_000)
wanted_by = strategies.lists(strategies.sampled_from(NUMBERS), unique=True, max_size=4).map(sorted)
a_number = strategies.sampled_from(NUMBERS)


class Oracle:
    """Every record in a list, every sequence that is done in a set."""

    def __init__(self) -> None:
        self.records: list[tuple[str, list[int], float]] = []
        self.done: dict[int, set[int]] = {number: set() for number in NUMBERS}
        self.n_expired = 0

    def matches(self, number: int) -> list[tuple[int, str]]:
        """(sequence, document) of all records, those that are gone as well."""
        ids = [document for document, numbers, _ in self.records if number in numbers]
        return list(enumerate(ids, 1))

    def alive(self, number: int) -> list[tuple[int, str]]:
        n_gone = sum(number in numbers for _, numbers, _ in self.records[: self.n_expired])
        return self.matches(number)[n_gone:]

    def backlog(self, number: int) -> int:
        return len(self.matches(number)) - len(self.done[number])

    def expire(self, n_records: int) -> None:
        self.n_expired = max(self.n_expired, n_records)
        for number in NUMBERS:
            n_gone = sum(number in numbers for _, numbers, _ in self.records[: self.n_expired])
            self.done[number] |= set(range(1, n_gone + 1))


class LogMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.folder = TemporaryDirectory()
        self.oracle = Oracle()
        self.flushed = {number: set() for number in NUMBERS}
        self.time = 0.0

    def run(self, awaitable):
        return self.loop.run_until_complete(awaitable)

    @initialize(n_records=strategies.integers(1, 5))
    def begin(self, n_records: int) -> None:
        self.limits = SegmentLimits(records=n_records)
        self.run(self.open())

    async def open(self) -> None:
        self.store = await open_store(str(Path(self.folder.name) / "store.db"))
        self.log = await MatchLog.open(self.store, limits=self.limits, recent_bytes=2000, cache_bytes=400)
        self.cursors = await Cursors.open(self.store, self.log, flush_interval=3600.0)
        for number in NUMBERS:
            self.log.ensure(number)
            self.cursors.ensure(number)

    async def shut(self) -> None:
        await self.log.close()
        self.cursors.stop()
        await self.store.close()

    @rule(batch=strategies.lists(wanted_by, min_size=1, max_size=4), wait=strategies.booleans())
    def append(self, batch: list[list[int]], wait: bool) -> None:
        entries = []
        for numbers in batch:
            self.time += 1.0
            name = f"d{len(self.oracle.records)}"
            self.oracle.records.append((name, numbers, self.time))
            document = Document(name, xml=b"<a/>" * len(numbers), publish_time=self.time)
            entries.append(("default", document, np.array(numbers, np.int64)))
        records = self.run(self.log.append(entries))
        assert records[-1].position == len(self.oracle.records)
        if wait:
            self.run(self.log.until_closed())

    @rule(number=a_number, data=strategies.data())
    def acknowledge(self, number: int, data: strategies.DataObject) -> None:
        head = len(self.oracle.matches(number))
        sequences = data.draw(strategies.lists(strategies.integers(1, head + 1), max_size=4))
        self.cursors.acknowledge(np.full(len(sequences), number), np.array(sequences, np.int64))
        self.oracle.done[number] |= {sequence for sequence in sequences if sequence <= head}

    @rule(sequences=strategies.fixed_dictionaries({}, optional={n: strategies.integers(1, 6) for n in NUMBERS}))
    def acknowledge_together(self, sequences: dict[int, int]) -> None:
        numbers = sorted(sequences)
        self.cursors.acknowledge(np.array(numbers, np.int64), np.array([sequences[n] for n in numbers], np.int64))
        for number, sequence in sequences.items():
            if sequence <= len(self.oracle.matches(number)):
                self.oracle.done[number].add(sequence)

    @rule(number=a_number, data=strategies.data())
    def seek(self, number: int, data: strategies.DataObject) -> None:
        head = len(self.oracle.matches(number))
        sequence = data.draw(strategies.integers(1, head + 2))
        self.cursors.seek(number, sequence)
        n_gone = head - len(self.oracle.alive(number))
        self.oracle.done[number] = set(range(1, min(max(sequence - 1, n_gone), head) + 1))

    @rule(number=a_number, first=strategies.integers(1, 12), limit=strategies.integers(1, 6))
    def read(self, number: int, first: int, limit: int) -> None:
        found = self.run(self.log.read(number, first, limit, 1 << 40))
        expected = [match for match in self.oracle.alive(number) if match[0] >= first][:limit]
        assert [(sequence, document.id) for sequence, document in found] == expected

    @rule(
        numbers=strategies.sets(a_number, min_size=1),
        max_records=strategies.integers(1, 4),
        max_bytes=strategies.sampled_from([1, 20, 1 << 40]),
        start=strategies.integers(0, 10),
    )
    def read_from(self, numbers: set[int], max_records: int, max_bytes: int, start: int) -> None:
        position, found = start, []
        while position < self.log.position:
            records, end = self.run(
                self.log.read_from(np.array(sorted(numbers), np.int64), position, max_records, max_bytes)
            )
            assert end > position
            assert len(records) <= max_records
            position = end
            found += [
                (record.position, record.document.id, int(number), int(sequence))
                for record in records
                for number, sequence in zip(record.numbers, record.sequences, strict=True)
            ]
        assert found == self.expected_from(numbers, start)

    def expected_from(self, numbers: set[int], start: int) -> list[tuple[int, str, int, int]]:
        sequences = dict.fromkeys(NUMBERS, 0)
        expected = []
        for position, (name, wanted, _) in enumerate(self.oracle.records, 1):
            for number in wanted:
                sequences[number] += 1
                if number in numbers and position > max(start, self.oracle.n_expired):
                    expected.append((position, name, number, sequences[number]))
        return expected

    @rule(number=a_number, time=strategies.floats(0.5, 20.0))
    def sequence_at(self, number: int, time: float) -> None:
        times = [at for _, numbers, at in self.oracle.records if number in numbers]
        n_gone = len(self.oracle.matches(number)) - len(self.oracle.alive(number))
        late = [place for place, at in enumerate(times, 1) if at >= time and place > n_gone]
        assert self.run(self.log.sequence_at(number, time)) == (late[0] if late else len(times) + 1)

    @rule(share=strategies.floats(0.0, 1.0))
    def expire(self, share: float) -> None:
        before = self.time * share
        backlog = sum(self.oracle.backlog(number) for number in NUMBERS)
        expired = self.run(self.log.expire(before))
        first = self.log.tail.segments[0].first_position if self.log.tail.segments else self.log.tail.closed + 1
        assert expired.documents == first - 1 - self.oracle.n_expired
        assert all(at < before for _, _, at in self.oracle.records[: first - 1][self.oracle.n_expired :])
        self.oracle.expire(first - 1)
        assert expired.never_done == backlog - sum(self.oracle.backlog(number) for number in NUMBERS)
        if expired.documents:
            self.flush()

    @rule()
    def flush(self) -> None:
        self.run(self.cursors.flush())
        self.flushed = {number: set(done) for number, done in self.oracle.done.items()}

    @precondition(lambda self: self.oracle.records)
    @rule()
    def start_again(self) -> None:
        self.run(self.shut())
        self.run(self.open())
        self.oracle.done = {number: set(done) for number, done in self.flushed.items()}

    @invariant()
    def heads_and_backlogs_agree(self) -> None:
        if not hasattr(self, "log"):
            return
        for number in NUMBERS:
            assert self.log.heads[number] == len(self.oracle.matches(number))
            assert self.cursors.backlog(np.array([number])) == self.oracle.backlog(number)

    @invariant()
    def what_is_done_agrees(self) -> None:
        if not hasattr(self, "log"):
            return
        for number in NUMBERS:
            known = range(1, len(self.oracle.matches(number)) + 1)
            assert {each for each in known if self.cursors.is_done(number, each)} == self.oracle.done[number]

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.run(self.shut())
        self.loop.close()
        self.folder.cleanup()


TestLogMachine = LogMachine.TestCase
TestLogMachine.settings = settings(max_examples=40, stateful_step_count=40)
