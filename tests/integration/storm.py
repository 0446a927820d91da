"""A publisher, consumers and a nemesis around one server process, and the history of what they saw.

    publisher ──▶ server ──▶ consumers: ack most, refuse some, forget some
                    ▲
                 nemesis: waits for a state that it sees from outside, then kill -9 and start again

States, not only times: so many documents sent, so many acknowledged, so many delivered, a stream just opened, the
server just started, just asked to stop.
"""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

from pathsieve import AsyncClient, Message, Wish
from pathsieve import Document as ClientDocument
from pathsieve.errors import AlreadyExists, Unavailable
from server.documents import Document
from server.server_process import ServerProcess
from server.subscriptions import Filter
from tests.integration.history import History

__all__ = ["Storm"]

FILTERS = {
    "quotes": Filter("xpath", "//quote"),
    "ibm": Filter("xpath", "//quote[@symbol='IBM']"),
    "dear": Filter("boolean", "price > 50"),
    "dear-ibm": Filter("boolean", "price > 50 AND XPATH '//quote[@symbol=\"IBM\"]'"),
    "not-halted": Filter("boolean", "NOT XPATH '//halted' AND price <= 50"),
    "never": Filter("xpath", "//unheard-of"),
}
SYMBOLS = ["IBM", "SUN", "SGI"]
PATIENCE = 120.0


@dataclass
class Storm:
    """All that happens to one server, from one seed."""

    server: ServerProcess
    seed: int
    history: History = field(default_factory=History)
    seen: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._changed = asyncio.Event()
        self._stop_publishing = asyncio.Event()

    def _see(self, what: str) -> None:
        self.seen[what] += 1
        self._changed.set()

    async def until(self, is_so: Callable[[], bool], seconds: float = PATIENCE) -> None:
        """Wait for a state."""
        async with asyncio.timeout(seconds):
            while not is_so():
                self._changed.clear()
                await self._changed.wait()

    async def rage(self, n_kills: int) -> None:
        """Run until the server has been killed so often and all has arrived, then look at the history."""
        async with AsyncClient(self.server.address, patience=PATIENCE) as client:
            await self._subscribe(client, ["quotes", "ibm", "dear"])
            async with asyncio.TaskGroup() as tasks:
                publishing = tasks.create_task(self._publish(client))
                consuming = [
                    tasks.create_task(self._consume(client, names))
                    for names in (["quotes"], ["ibm", "dear", "dear-ibm"], ["not-halted", "never"])
                ]
                tasks.create_task(self._subscribe_late(client))
                await self._kill(n_kills)
                self._stop_publishing.set()
                await publishing
                await self.until(lambda: self.history.is_complete)
                for task in consuming:
                    task.cancel()
        assert self.history.faults() == []

    async def _subscribe(self, client: AsyncClient, names: list[str]) -> None:
        for name in names:
            chosen = FILTERS[name]
            kind = {"xpath": chosen.expression} if chosen.kind == "xpath" else {"boolean": chosen.expression}
            await _until_there(client, {"id": name, **kind})  # type: ignore[typeddict-item]
            self.history.subscribed(name, chosen)
            self._see("subscribed")

    async def _subscribe_late(self, client: AsyncClient) -> None:
        """The others join while documents flow."""
        for name in ("dear-ibm", "not-halted", "never"):
            await self.until(lambda: self.seen["accepted"] > 20 * self.seen["subscribed"])
            await self._subscribe(client, [name])

    async def _publish(self, client: AsyncClient) -> None:
        async for result in client.publish_many(self._documents()):
            assert result.error is None, result.error
            self.history.was_accepted(result.id)
            self._see("accepted")

    async def _documents(self) -> AsyncIterator[ClientDocument]:
        number = 0
        while not self._stop_publishing.is_set():
            number += 1
            document = self._document(str(number))
            self.history.sent(document)
            self._see("sent")
            yield ClientDocument(document.xml, id=document.id, source="storm", attributes=document.attributes)
            await asyncio.sleep(self._random.choice([0, 0, 0, 0.002]))

    def _document(self, document_id: str) -> Document:
        halted = "<halted/>" if self._random.random() < 0.3 else ""
        xml = f"<quote symbol='{self._random.choice(SYMBOLS)}'>{halted}</quote>"
        return Document(document_id, "storm", xml.encode(), {"price": self._random.randrange(100)})

    async def _consume(self, client: AsyncClient, names: list[str]) -> None:
        await self.until(lambda: all(name in self.history.filters for name in names))
        while True:
            async with client.attach(names, consumer=names[0], credit=50) as messages:
                self._see("attached")
                async for message in messages:
                    self._deal_with(message)
                    if self._random.random() < 0.001:
                        break

    def _deal_with(self, message: Message) -> None:
        for name, sequence in message.matches:
            self.history.delivered(name.removeprefix("subscriptions/"), sequence, message.document.id)
        self._see("delivered")
        chance = self._random.random()
        if chance < 0.95:
            message.ack()
        elif chance < 0.99:
            message.nack(0.01)

    async def _kill(self, n_kills: int) -> None:
        for _ in range(n_kills):
            await self._random.choice(
                [
                    self._when_sent,
                    self._when_accepted,
                    self._when_delivered,
                    self._when_attached,
                    self._while_starting,
                    self._while_draining,
                ]
            )()
            await self.server.start()
            self._see("started")

    async def _when_sent(self) -> None:
        await self._after("sent", self._random.randrange(1, 300))
        await self.server.kill()

    async def _when_accepted(self) -> None:
        await self._after("accepted", self._random.randrange(1, 300))
        await self.server.kill()

    async def _when_delivered(self) -> None:
        await self._after("delivered", self._random.randrange(1, 300))
        await self.server.kill()

    async def _when_attached(self) -> None:
        await self._after("accepted", 1)
        await self.server.kill()

    async def _while_starting(self) -> None:
        """Killed, started, and killed again before it was ready."""
        await self.server.kill()
        await self.server.start(wait=False)
        await asyncio.sleep(self._random.uniform(0, 2))
        await self.server.kill()

    async def _while_draining(self) -> None:
        """Asked to stop, and killed before it had."""
        await self._after("accepted", self._random.randrange(1, 100))
        self.server.terminate()
        await asyncio.sleep(self._random.uniform(0, 0.1))
        await self.server.kill()

    async def _after(self, what: str, more: int) -> None:
        wanted = self.seen[what] + more
        await self.until(lambda: self.seen[what] >= wanted)


async def _until_there(client: AsyncClient, wish: Wish) -> None:
    """Subscribe; who is cut off tries again, and may find that it was there after all."""
    while True:
        try:
            await client.subscribe(**wish)
        except Unavailable:
            continue
        except AlreadyExists:
            return
        else:
            return
