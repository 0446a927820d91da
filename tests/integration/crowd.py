"""Those who use a cluster while it is ill-treated: they subscribe, change their minds, leave, publish and consume.

    life        create ─▶ update ─▶ … ─▶ delete, at random replicas; a consumer of its own: a stream, or pulls
    publisher   a document at a random replica, again and again until one accepts it; now and then at two at once, or
                once more at another one when it has been accepted

All that they do and see goes into the chronicle. Whoever gets no answer tries again; whatever else goes wrong ends the
test.
"""

import asyncio
import itertools
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass

from pathsieve import AsyncClient
from pathsieve import Document as ClientDocument
from pathsieve.errors import AlreadyExists, DeadlineExceeded, Detached, NotFound, Unavailable
from tests.integration.chronicle import Chronicle

__all__ = ["Crowd", "crowds"]

SYMBOLS = ["IBM", "SUN", "SGI"]
NO_ANSWER = Unavailable, DeadlineExceeded
TIMEOUT = 8.0
PATIENCE = 3600.0
N_LIVES, N_PUBLISHERS = 8, 4


@dataclass
class Crowd:
    """`clients` talk to one replica each, and give up soon; `consumer` finds its way."""

    chronicle: Chronicle
    chance: random.Random
    clients: Sequence[AsyncClient]
    consumer: AsyncClient
    pace: float

    def __post_init__(self) -> None:
        self._numbers = itertools.count(1)
        self._names = itertools.count(1)
        self._goes = asyncio.Event()
        self._goes.set()
        self._n_busy = 0
        self._idle = asyncio.Event()

    async def run(self) -> None:
        """Until it is cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for _ in range(N_LIVES):
                tasks.create_task(self._lives())
            tasks.create_task(self._live_on("//quote"))
            for _ in range(N_PUBLISHERS):
                tasks.create_task(self._publishes())

    @asynccontextmanager
    async def holding_still(self) -> AsyncIterator[None]:
        """In the block nobody subscribes or publishes; what was begun has ended. Consumers go on."""
        self._goes.clear()
        while self._n_busy:
            self._idle.clear()
            await self._idle.wait()
        yield
        self._goes.set()

    @contextmanager
    def _busy(self) -> Iterator[None]:
        self._n_busy += 1
        try:
            yield
        finally:
            self._n_busy -= 1
            self._idle.set()

    # -- subscriptions -----------------------------------------------------------------------------

    async def _lives(self) -> None:
        """One life after the other."""
        while True:
            name = f"life-{next(self._names)}"
            await self._create(name, self._filter())
            async with asyncio.TaskGroup() as life:
                life.create_task(self._consume(name))
                for _ in range(self.chance.randrange(4)):
                    await self.chronicle.more("accepted", self.chance.randrange(5, 60))
                    await self._update(name, self._filter())
                await self.chronicle.more("accepted", self.chance.randrange(5, 60))
                await self._delete(name)

    async def _live_on(self, expression: str) -> None:
        await self._create("for-ever", ("xpath", expression))
        await self._consume("for-ever")

    def _filter(self) -> tuple[str, str]:
        price, symbol = self.chance.randrange(100), self.chance.choice(SYMBOLS)
        return self.chance.choice(
            [
                ("xpath", f"//quote[@symbol='{symbol}']"),
                ("xpath", f"//quote[@symbol='{symbol}']/halted"),
                ("boolean", f"price > {price}"),
                ("boolean", f"price <= {price} AND XPATH '//quote[@symbol=\"{symbol}\"]'"),
                ("boolean", f"NOT XPATH '//halted' AND price <= {price}"),
            ]
        )

    async def _create(self, name: str, filter: tuple[str, str]) -> None:
        kind, expression = filter
        await self._until_done(
            "create",
            name,
            lambda client: client.subscribe(id=name, **{kind: expression}),
            AlreadyExists,
            filter,  # type: ignore[arg-type]
        )

    async def _update(self, name: str, filter: tuple[str, str]) -> None:
        kind, expression = filter
        await self._until_done("update", name, lambda client: client.update(name, **{kind: expression}), (), filter)  # type: ignore[arg-type]

    async def _delete(self, name: str) -> None:
        await self._until_done("delete", name, lambda client: client.delete(name), NotFound)

    async def _until_done(
        self,
        what: str,
        name: str,
        change: Callable[[AsyncClient], Awaitable[object]],
        was_done: type[Exception] | tuple[type[Exception], ...],
        filter: tuple[str, str] | None = None,
    ) -> None:
        """Try at one replica after the other; an attempt whose answer was lost may have had its effect."""
        await self._goes.wait()
        with self._busy(), self.chronicle.during(what, subscription=name, filter=filter):
            for attempt in itertools.count():
                try:
                    await change(self.chance.choice(self.clients))
                except NO_ANSWER:
                    await asyncio.sleep(self.chance.uniform(0.05, 0.3))
                except was_done:
                    assert attempt, f"{name} cannot have been there, or gone, before {what}"
                    return
                else:
                    return

    # -- documents ---------------------------------------------------------------------------------

    async def _publishes(self) -> None:
        while True:
            await self._goes.wait()
            with self._busy():
                await self._publish(self._document())
            await asyncio.sleep(self.chance.expovariate(1 / self.pace))

    def _document(self) -> ClientDocument:
        halted = "<halted/>" if self.chance.random() < 0.3 else ""
        xml = f"<quote symbol='{self.chance.choice(SYMBOLS)}'>{halted}</quote>"
        price = self.chance.randrange(100)
        return ClientDocument(xml, id=f"d{next(self._numbers)}", source="crowd", attributes={"price": price})

    async def _publish(self, document: ClientDocument) -> None:
        chance = self.chance.random()
        at_once = self.chance.sample(range(len(self.clients)), 2 if chance < 0.05 else 1)
        is_accepted = any(await asyncio.gather(*(self._attempt(document, place) for place in at_once)))
        while not is_accepted:
            await asyncio.sleep(self.chance.uniform(0.05, 0.3))
            is_accepted = await self._attempt(document, self.chance.randrange(len(self.clients)))
        if chance > 0.9:
            await self._attempt(document, self.chance.randrange(len(self.clients)))

    async def _attempt(self, document: ClientDocument, place: int) -> bool:
        self.chronicle.note(
            "publish",
            state="begun",
            document=document.id,
            replica=place + 1,
            xml=document.xml.decode(),
            attributes=dict(document.attributes),
        )
        try:
            published = await self.clients[place].publish(document)
        except NO_ANSWER as error:
            self.chronicle.note("publish", state="done", document=document.id, ok=False, error=str(error))
            return False
        facts = {"matches": published.matches, "duplicate": published.duplicate}
        self.chronicle.note("publish", state="done", document=document.id, ok=True, **facts)
        return True

    # -- consumers ---------------------------------------------------------------------------------

    async def _consume(self, name: str) -> None:
        """Until the subscription is deleted."""
        deal = self._attached if self.chance.random() < 0.7 else self._pulled
        while True:
            try:
                await deal(name)
            except NO_ANSWER as error:
                self.chronicle.note("trouble", subscription=name, error=str(error))
                await asyncio.sleep(0.2)
            except (Detached, NotFound) as error:
                if self.chronicle.judge.may_be_deleted(name):
                    return
                raise AssertionError(f"{name} is there, and its consumer hears that it is not") from error

    async def _attached(self, name: str) -> None:
        async with self.consumer.attach(name, consumer=name, credit=20) as messages:
            async for message in messages:
                self._note(name, message.sequence, message.document.id)
                chance = self.chance.random()
                if chance < 0.9:
                    message.ack()
                elif chance < 0.96:
                    message.nack(0.01)
                elif chance < 0.97:
                    break

    async def _pulled(self, name: str) -> None:
        pulled = await self.consumer.pull(name, 20, wait=2.0)
        for message in pulled:
            self._note(name, message.sequence, message.document.id)
        done = [message for message in pulled if self.chance.random() < 0.9]
        if done:
            await self.consumer.acknowledge(name, done)

    def _note(self, name: str, sequence: int, document_id: str) -> None:
        self.chronicle.note("delivery", subscription=name, sequence=sequence, document=document_id)


@asynccontextmanager
async def crowds(
    chronicle: Chronicle, chance: random.Random, addresses: Sequence[str], pace: float
) -> AsyncIterator[Crowd]:
    """A crowd, and its clients."""
    async with AsyncExitStack() as stack:
        clients = [
            await stack.enter_async_context(AsyncClient(address, timeout=TIMEOUT, patience=0)) for address in addresses
        ]
        consumer = await stack.enter_async_context(AsyncClient(addresses, timeout=TIMEOUT, patience=PATIENCE))
        yield Crowd(chronicle, chance, clients, consumer, pace)
