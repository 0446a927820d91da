"""Random histories of publishers and consumers: nothing is lost, nothing comes after its ack, order and credit hold.

    publish, take, ack, nack, forget, extend, grant, close, attach again, pull, seek, let time pass ... then settle

Every history runs over the log in memory, some over the real one as well. The clock is ours, so a seed is a history.
"""

from collections import defaultdict
from pathlib import Path
from random import Random

import pytest
from delivery_scene import SHARED, Scene, real_scene, scene, subscription

from server.deliveries import Attachment, AttachMode, Credit, DeliverySettings, Goodbye, Messages
from server.deliveries.leases import size_of
from server.documents import Document

N_STEPS = 250
EXCLUSIVE, SHARED_BY_TWO, PULLED = (1, 2, 3), (4, 5), (6,)
ALL = (*EXCLUSIVE, *SHARED_BY_TWO, *PULLED)
SETTINGS = DeliverySettings(
    ack_deadline=10,
    max_attempts=4,
    min_backoff=0.2,
    max_backoff=3,
    max_unacked_messages=12,
    max_unacked_bytes=4000,
    max_read_messages=3,
    max_batch_messages=4,
)


class Follower:
    """One stream and what its client believes."""

    def __init__(self, stream: Attachment, credit: Credit) -> None:
        self.stream = stream
        self.messages_left = credit.messages
        self.bytes_left = credit.bytes
        self.held: list[int] = []


class Simulation:
    """A history in the making, checked as it goes."""

    def __init__(self, stage: Scene, seed: int) -> None:
        self.stage = stage
        self.random = Random(seed)
        self.followers: dict[str, Follower] = {}
        self.pulled: list[int] = []
        self.done: defaultdict[int, set[int]] = defaultdict(set)
        self.delivered: defaultdict[int, set[int]] = defaultdict(set)
        self.newest: defaultdict[int, int] = defaultdict(int)
        self.skipped: defaultdict[int, set[int]] = defaultdict(set)
        self.n_documents = 0

    def go_on(self, stage: Scene) -> None:
        """The server was started again: streams are gone, the rest is as it was."""
        stage.now = self.stage.now
        self.stage = stage
        self.followers.clear()

    async def live(self, n_steps: int) -> None:
        steps = {
            self.publish: 8,
            self.take: 8,
            self.ack: 6,
            self.nack: 2,
            self.extend: 1,
            self.grant: 4,
            self.close: 1,
            self.attach: 3,
            self.pull: 3,
            self.acknowledge_pulled: 3,
            self.return_pulled: 1,
            self.seek: 1,
            self.wait: 4,
        }
        for _ in range(n_steps):
            [step] = self.random.choices(list(steps), list(steps.values()))
            await step()
            if self.random.random() < 0.7:
                await self.stage.settle()
            self.check_memory()

    async def publish(self) -> None:
        entries = []
        for _ in range(self.random.randint(1, 4)):
            self.n_documents += 1
            xml = b"x" * self.random.choice([5, 50, 500])
            document = Document(f"d{self.n_documents}", xml=xml, publish_time=self.stage.now)
            wanted = sorted(self.random.sample(ALL, self.random.randint(1, len(ALL))))
            entries.append(("default", document, self.stage.numbers(wanted)))
        await self.stage.log.append(entries)

    async def attach(self) -> None:
        name, numbers, mode = self.random.choice(
            [("a", EXCLUSIVE, AttachMode.EXCLUSIVE), ("b", SHARED_BY_TWO, SHARED), ("c", SHARED_BY_TWO, SHARED)]
        )
        if name in self.followers and self.random.random() < 0.8:
            return
        credit = Credit(self.random.randint(0, 5), self.random.choice([100, 1000, 3000]))
        wanted = [subscription(number) for number in numbers]
        replaced = self.followers.pop(name, None)
        stream = await self.stage.deliveries.attach("default", wanted, mode, name, credit)
        if replaced is not None:
            assert isinstance(await replaced.stream.next(), Goodbye)
        self.followers[name] = Follower(stream, credit)

    async def take(self) -> None:
        for name, follower in self.followers.items():
            if self.random.random() < 0.6:
                self.receive(name, follower)

    def receive(self, name: str, follower: Follower) -> None:
        event = follower.stream._take()
        for message in event.messages if isinstance(event, Messages) else ():
            assert follower.messages_left > 0, "a message is sent only while there is credit in messages"
            assert follower.bytes_left > 0, "... and in bytes, which only one document can overdraw"
            follower.messages_left -= 1
            follower.bytes_left -= size_of(message.document)
            follower.held.append(message.message_id)
            lease = follower.stream.held[message.message_id]
            for number, sequence in zip(lease.numbers.tolist(), lease.sequences.tolist(), strict=True):
                self.check_delivery(number, sequence, in_order=name == "a")

    def check_delivery(self, number: int, sequence: int, in_order: bool) -> None:
        assert sequence not in self.done[number], "nothing comes after its ack"
        left_out = set(range(self.newest[number] + 1, sequence)) - self.done[number]
        assert not in_order or not left_out, "first deliveries are in order"
        self.newest[number] = max(self.newest[number], sequence)
        self.delivered[number].add(sequence)

    def some_held(self) -> tuple[Attachment, list[int]] | None:
        """Some messages that a client has; it may have lost them already without knowing."""
        holders = [follower for follower in self.followers.values() if follower.held]
        if not holders:
            return None
        follower = self.random.choice(holders)
        chosen = self.random.sample(follower.held, self.random.randint(1, len(follower.held)))
        follower.held = [message_id for message_id in follower.held if message_id not in chosen]
        return follower.stream, chosen

    async def ack(self) -> None:
        if (some := self.some_held()) is not None:
            stream, message_ids = some
            for lease in (stream.held[message_id] for message_id in message_ids if message_id in stream.held):
                for number, sequence in zip(lease.numbers.tolist(), lease.sequences.tolist(), strict=True):
                    self.done[number].add(sequence)
            stream.ack(message_ids)

    async def nack(self) -> None:
        if (some := self.some_held()) is not None:
            stream, message_ids = some
            stream.nack(message_ids, self.random.choice([None, 0.0, 5.0]))

    async def extend(self) -> None:
        if (some := self.some_held()) is not None:
            stream, message_ids = some
            stream.extend(message_ids, 20)

    async def grant(self) -> None:
        for follower in self.followers.values():
            credit = Credit(self.random.randint(0, 4), self.random.choice([0, 100, 2000]))
            follower.messages_left += credit.messages
            follower.bytes_left += credit.bytes
            follower.stream.grant(credit.messages, credit.bytes)

    async def close(self) -> None:
        if self.followers:
            name = self.random.choice(list(self.followers))
            await self.followers.pop(name).stream.close()

    async def pull(self) -> None:
        for message in await self.stage.deliveries.pull(subscription(6), self.random.randint(1, 4)):
            self.check_delivery(6, message.sequence, in_order=True)
            self.pulled.append(message.sequence)

    async def acknowledge_pulled(self) -> None:
        chosen = self.random.sample(self.pulled, self.random.randint(0, len(self.pulled)))
        self.pulled = [sequence for sequence in self.pulled if sequence not in chosen]
        await self.stage.deliveries.acknowledge(subscription(6), chosen)
        self.done[6].update(chosen)

    async def return_pulled(self) -> None:
        seconds = self.random.choice([0, 30])
        await self.stage.deliveries.modify_ack_deadline(subscription(6), self.pulled[:2], seconds)

    async def seek(self) -> None:
        number = self.random.choice(ALL)
        head = int(self.stage.log.heads[number])
        wanted = self.random.randint(1, head + 2)
        found = await self.stage.deliveries.seek(subscription(number), sequence=wanted)
        assert found == min(wanted, head + 1)
        self.skipped[number].update(range(1, found))
        self.done[number] = set(range(1, found))
        self.newest[number] = found - 1

    async def wait(self) -> None:
        await self.stage.pass_time(self.random.choice([0.1, 0.5, 3, 12]))

    def check_memory(self) -> None:
        """Nothing is kept beyond what was asked for and what the limits allow."""
        for consumer in self.stage.deliveries._consumers._consumers:
            assert len(consumer._leases) <= SETTINGS.max_unacked_messages
            assert consumer._unacked_bytes == sum(lease.weight for lease in consumer._leases)
            assert len(consumer._leases) == 1 or consumer._unacked_bytes <= SETTINGS.max_unacked_bytes
            held = {lease for stream in consumer.streams for lease in stream.held.values()}
            assert held <= set(consumer._leases)

    async def finish(self) -> None:
        """Let everybody take and acknowledge all there is."""
        while {"a", "b"} - set(self.followers):
            await self.attach()
        for _ in range(1000):
            if not self.stage.cursors.backlog(self.stage.numbers(ALL)):
                break
            for follower in self.followers.values():
                follower.messages_left, follower.bytes_left = follower.messages_left + 5, follower.bytes_left + 5000
                follower.stream.grant(5, 5000)
            await self.stage.settle()
            await self.take()
            await self.ack()
            await self.pull()
            await self.acknowledge_pulled()
            await self.wait()
        await self.check_end()

    async def check_end(self) -> None:
        for number in ALL:
            letters = await self.stage.deliveries.dead_letters(subscription(number), 0, 10_000)
            head = int(self.stage.log.heads[number])
            assert int(self.stage.cursors.floors[number]) == head, "all is done"
            everything = set(range(1, head + 1))
            assert self.delivered[number] | self.skipped[number] >= everything, "all was delivered"
            assert self.done[number] | {letter.sequence for letter in letters} >= everything


@pytest.mark.parametrize("seed", range(60))
async def test_nothing_is_lost_over_the_log_in_memory(seed: int) -> None:
    async with scene(SETTINGS) as stage:
        simulation = Simulation(stage, seed)
        await simulation.live(N_STEPS)
        await simulation.finish()


@pytest.mark.parametrize("seed", range(100, 104))
async def test_nothing_is_lost_over_the_real_log_and_restarts(seed: int, tmp_path: Path) -> None:
    async with real_scene(tmp_path, SETTINGS) as stage:
        simulation = Simulation(stage, seed)
        await simulation.live(N_STEPS)
    for _ in range(3):
        async with real_scene(tmp_path, SETTINGS) as stage:
            simulation.go_on(stage)
            await simulation.live(N_STEPS // 3)
    async with real_scene(tmp_path, SETTINGS) as stage:
        simulation.go_on(stage)
        await simulation.finish()
