"""A real ZooKeeper for tests: the jars inside pyspark, in a temporary folder, a root of its own for each test."""

import asyncio
import contextlib
import itertools
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from server.cluster.zookeeper import Session, ZooKeeper
from server.local_zookeeper import LocalEnsemble, LocalZooKeeper, find_jars, find_java

TICK = 500
_numbers = itertools.count()
Started = TypeVar("Started", LocalZooKeeper, LocalEnsemble)


@contextlib.contextmanager
def running_zookeeper() -> Iterator[LocalZooKeeper]:
    """One server that runs until the block ends; the test is skipped where there is no Java, or no jars."""
    with _folder() as folder, _running(LocalZooKeeper(folder, durable=False, tick=TICK)) as server:
        yield server


@contextlib.contextmanager
def running_ensemble(size: int = 3) -> Iterator[LocalEnsemble]:
    """Several servers that are one."""
    with _folder() as folder, _running(LocalEnsemble(folder, size, durable=False, tick=TICK)) as ensemble:
        yield ensemble


def new_root() -> str:
    """A path that no other test uses."""
    return f"/test-{next(_numbers)}"


async def expire(opened: ZooKeeper) -> None:
    """Have somebody else end the session, as a server does that has not heard of a client for too long."""
    lost = asyncio.Event()
    opened.on_state.append(lambda state: lost.set() if state is Session.LOST else None)
    twin = ZooKeeper(opened.hosts)
    twin._client._session_id, twin._client._session_passwd = opened._client.client_id
    await twin.start()
    await twin.stop()
    await lost.wait()


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    if find_java() is None:
        pytest.skip("no Java on this machine: there is no `java` on PATH")
    if find_jars() is None:
        pytest.skip("no jars of ZooKeeper: they are part of pyspark, which is not installed")
    with tempfile.TemporaryDirectory(prefix="pathsieve-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@contextlib.contextmanager
def _running(server: Started) -> Iterator[Started]:
    try:
        server.start()
        yield server
    finally:
        server.kill()
