"""Who stops reading, or dies, holds up nobody: consumers and publishers are processes that are stopped and killed."""

import asyncio
import json
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from signal import SIGKILL, SIGSTOP

import pytest

from pathsieve import AsyncAttachment, AsyncClient
from server.server_process import ServerProcess

pytestmark = pytest.mark.slow

N_CONSUMERS = 100
PADDING = "x" * 16_000
N_DOCUMENTS = 5_000
"""Of 16 KB: more than all that the server keeps in memory of what it has sent, and than a stream has credit for."""
MOST_GROWTH = 64 << 20
"""Of 160 MB that are published meanwhile."""


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[ServerProcess]:
    async with ServerProcess(tmp_path) as server:
        yield server


@asynccontextmanager
async def command(server: ServerProcess, *arguments: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """`pathsieve …` in a process that is killed in the end, if it still lives."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "pathsieve", *arguments, "--address", server.address, "-o", "json"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        limit=1 << 20,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def printed(process: asyncio.subprocess.Process) -> dict:
    """The next line, read as JSON."""
    assert process.stdout is not None
    return json.loads(await process.stdout.readline())


async def printed_sequence(process: asyncio.subprocess.Process) -> int:
    """The sequence number of the next message that is printed."""
    (match,) = (await printed(process))["matches"]
    return match["sequence"]


def documents(n: int) -> Iterator[str]:
    """Each is for one of the consumers, in turn, and for the one that stops."""
    return (f"<a to='{place % (N_CONSUMERS - 1)}'>{PADDING}</a>" for place in range(n))


async def publish(client: AsyncClient, n: int) -> None:
    async for result in client.publish_many(documents(n)):
        assert result.matches == 2


async def count(name: str, messages: AsyncAttachment, seen: Counter[str]) -> None:
    async for message in messages:
        seen[name] += 1
        assert message.sequence == seen[name]
        message.ack()


async def all_seen(seen: Counter[str], n: int) -> None:
    async with asyncio.timeout(60):
        while seen.total() < n:
            await asyncio.sleep(0.01)


async def test_a_consumer_that_stops_reading_costs_the_others_nothing(server: ServerProcess) -> None:
    """The publisher and 99 consumers have everything, the server's memory stays flat, and nothing is lost."""
    seen: Counter[str] = Counter()
    async with AsyncClient(server.address, timeout=60) as client, AsyncExitStack() as stack:
        await client.subscribe(id="all", xpath="//a")
        names = [f"to{place}" for place in range(N_CONSUMERS - 1)]
        for place, name in enumerate(names):
            await client.subscribe(id=name, xpath=f"//a[@to={place}]")
        tasks = await stack.enter_async_context(asyncio.TaskGroup())
        counting = [
            tasks.create_task(count(name, await stack.enter_async_context(client.attach(name)), seen)) for name in names
        ]
        stopped = await stack.enter_async_context(command(server, "attach", "all", "--no-ack", "--consumer", "slow"))
        await publish(client, N_DOCUMENTS)
        assert await printed_sequence(stopped) == 1
        stopped.send_signal(SIGSTOP)
        await publish(client, N_DOCUMENTS)
        await all_seen(seen, 2 * N_DOCUMENTS)
        before = server.resident_bytes
        await publish(client, 2 * N_DOCUMENTS)
        await all_seen(seen, 4 * N_DOCUMENTS)
        assert server.resident_bytes - before < MOST_GROWTH
        assert set(seen) == set(names)
        async with client.attach("all", consumer="slow") as messages:
            sequences = set()
            while len(sequences) < 4 * N_DOCUMENTS:
                message = await anext(messages)
                sequences.add(message.sequence)
                message.ack()
        assert sequences == set(range(1, 4 * N_DOCUMENTS + 1))
        for task in counting:
            task.cancel()


async def test_what_a_consumer_holds_when_it_dies_goes_to_another(server: ServerProcess) -> None:
    async with AsyncClient(server.address) as client:
        await client.subscribe(id="all", xpath="//a")
        async with command(server, "attach", "all", "--shared", "--no-ack") as holder:
            for _ in range(20):
                await client.publish("<a/>")
            held = [await printed_sequence(holder) for _ in range(20)]
            async with client.attach("all", mode="shared") as messages:
                holder.send_signal(SIGKILL)
                taken = {}
                while len(taken) < 20:
                    message = await anext(messages)
                    taken[message.sequence] = message.attempt
                    message.ack()
        assert held == sorted(taken) == list(range(1, 21))
        assert taken[1] == 2, "the consumer may have died of the first one that it held"


async def test_what_was_acknowledged_arrives_though_its_publisher_died(server: ServerProcess) -> None:
    async with AsyncClient(server.address) as client:
        await client.subscribe(id="all", xpath="//a")
        async with command(server, "publish", "-", "--lines") as publisher:
            assert publisher.stdin is not None
            publisher.stdin.write("".join(f"<a n='{n}'/>\n" for n in range(20_000)).encode())
            acknowledged = {(await printed(publisher))["id"] for _ in range(500)}
            publisher.send_signal(SIGKILL)
        async with client.attach("all") as messages:
            sequences = []
            while acknowledged:
                message = await anext(messages)
                sequences.append(message.sequence)
                acknowledged.discard(message.document.id)
                message.ack()
    assert sequences == list(range(1, len(sequences) + 1))
