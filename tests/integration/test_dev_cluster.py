"""A cluster with one command: it starts, works, says who dies, and leaves nothing behind, however it ends."""

import asyncio
import os
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from signal import SIGINT, SIGKILL, SIGTERM, Signals

import pytest

from pathsieve import AsyncClient
from server import dev_cluster
from server.dev_cluster import DevCluster, missing
from tests.integration.clusters import clusters, new_folder

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


class Command:
    """`pathsieve dev-cluster` in a process of its own, and what it has said so far."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.said = ""

    async def until(self, pattern: str) -> re.Match[str]:
        assert self.process.stderr is not None
        async with asyncio.timeout(120):
            while not (found := re.search(pattern, self.said)):
                line = await self.process.stderr.readline()
                assert line, f"it ended, having said:\n{self.said}"
                self.said += line.decode()
        return found

    async def ended(self) -> int:
        """The exit code; what it says until then is read."""
        assert self.process.stderr is not None
        async with asyncio.timeout(120):
            self.said += (await self.process.stderr.read()).decode()
            return await self.process.wait()

    @property
    def folder(self) -> Path:
        found = re.search(r"in (\S+);", self.said)
        assert found
        return Path(found[1])


@asynccontextmanager
async def command(repository: Path, *options: str) -> AsyncIterator[Command]:
    arguments = "-m", "pathsieve", "dev-cluster", "--base-port", "0", "--replicas", "2", *options
    process = await asyncio.create_subprocess_exec(
        sys.executable, *arguments, cwd=repository, stderr=asyncio.subprocess.PIPE
    )
    try:
        yield Command(process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


def processes_with(text: str) -> list[int]:
    """Who has the text in his command, or in his environment."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            known = (folder / "cmdline").read_bytes() + (folder / "environ").read_bytes()
        except OSError:
            continue
        if text.encode() in known and int(folder.name) != os.getpid():
            found.append(int(folder.name))
    return found


async def until_gone(folder: Path) -> None:
    async with asyncio.timeout(60):
        while folder.exists() or processes_with(str(folder)):
            await asyncio.sleep(0.05)


@pytest.mark.usefixtures("cluster_parts")
@pytest.mark.parametrize("signal, code", [(SIGINT, 0), (SIGTERM, 0), (SIGKILL, -9)])
async def test_however_it_ends_nothing_is_left_behind(repository: Path, signal: Signals, code: int) -> None:
    async with command(repository) as cluster:
        await cluster.until("Ctrl-C stops everything")
        assert len(processes_with(str(cluster.folder))) >= 4
        cluster.process.send_signal(signal)
        assert await cluster.ended() == code
        await until_gone(cluster.folder)


@pytest.mark.usefixtures("cluster_parts")
@pytest.mark.parametrize("moment", ["Starting 2 replicas", "Stopping"])
async def test_it_may_be_interrupted_at_any_time(repository: Path, moment: str) -> None:
    async with command(repository) as cluster:
        if moment == "Stopping":
            await cluster.until("Ctrl-C stops everything")
            cluster.process.send_signal(SIGINT)
        await cluster.until(moment)
        cluster.process.send_signal(SIGINT)
        assert await cluster.ended() == 0
        await until_gone(cluster.folder)


@pytest.mark.usefixtures("cluster_parts")
async def test_it_says_who_died_and_ends_with_the_last(repository: Path) -> None:
    async with command(repository) as cluster:
        await cluster.until("Ctrl-C stops everything")
        pids = [int(pid) for pid in re.findall(r"replica-\d .* pid (\d+)", cluster.said)]
        os.kill(pids[1], SIGKILL)
        await cluster.until(r"replica-2 has died; its log is \S+/replica-2/server.log")
        os.kill(pids[0], SIGKILL)
        await cluster.until("no replica is left")
        assert await cluster.ended() == 1


@pytest.mark.usefixtures("cluster_parts")
async def test_what_is_in_its_folder_is_there_the_next_time() -> None:
    with new_folder() as folder:
        async with clusters(folder, keep=True) as cluster, AsyncClient(cluster.addresses) as client:
            await client.subscribe(id="a", xpath="//a")
            await client.publish("<a/>", id="1")
        async with clusters(folder, keep=True) as cluster, AsyncClient(cluster.addresses) as client:
            assert [message.document.id for message in await client.pull("a", wait=10)] == ["1"]


@pytest.mark.usefixtures("cluster_parts")
async def test_every_replica_takes_what_another_delivers() -> None:
    with new_folder() as folder:
        async with clusters(folder) as cluster:
            for address in cluster.addresses:
                async with AsyncClient(address) as client:
                    await client.subscribe(id=f"at-{address[-5:].replace(':', '')}", xpath="//a")
            for number, address in enumerate(cluster.addresses):
                async with AsyncClient(address) as client:
                    assert (await client.publish("<a/>", id=str(number))).matches == len(cluster.addresses)
            async with AsyncClient(cluster.addresses) as client, client.attach("-", auto_ack=True) as messages:
                got = [await messages.receive(timeout=30) for _ in cluster.addresses]
                assert {message.document.id for message in got if message} == {"0", "1"}


def test_what_is_missing_is_said_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("find_java", "find_jars", "find_binaries"):
        monkeypatch.setattr(dev_cluster, name, lambda: None)
    java, jars, postgres = missing()
    assert "apt install default-jre-headless" in java
    assert "pyspark" in jars
    assert "--postgres" in postgres
    assert missing(zookeeper=False, postgres=False) == []


def test_a_cluster_of_nobody_is_refused(tmp_path: Path) -> None:
    with pytest.raises(dev_cluster.CannotStart, match="expected 1 to 37 replicas, found 0"):
        DevCluster(tmp_path, replicas=0)
