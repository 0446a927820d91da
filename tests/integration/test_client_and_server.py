"""Both clients and the command line with a real server in a process of its own, which is stopped, killed, restarted."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pathsieve import AsyncClient, Client, Document
from pathsieve.cli import app
from pathsieve.errors import InvalidExpression, PermissionDenied, Unauthenticated, Unavailable
from server.server_process import ServerProcess
from tests.certificates import Authority

N_DOCUMENTS = 2000
pytestmark = pytest.mark.slow


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[ServerProcess]:
    async with ServerProcess(tmp_path) as server:
        yield server


async def test_a_server_that_is_killed_and_comes_back_costs_nothing(server: ServerProcess) -> None:
    """Killed in mid-publish and in mid-delivery: every document arrives, each sequence once it is acknowledged."""
    async with AsyncClient(server.address, timeout=60, patience=60) as client:
        await client.subscribe(id="all", xpath="//a")
        receiving = asyncio.create_task(_receive(client))
        n_results = 0
        documents = (Document(f"<a n='{n}'/>", id=f"d{n}") for n in range(N_DOCUMENTS))
        async for result in client.publish_many(documents):
            assert result.error is None
            n_results += 1
            if n_results in (300, 1100):
                await server.kill()
                await server.start(wait=False)
        assert n_results == N_DOCUMENTS
        received = await asyncio.wait_for(receiving, 100)
        assert sorted(received) == list(range(1, N_DOCUMENTS + 1))
        assert sorted(received.values()) == sorted(f"d{n}" for n in range(N_DOCUMENTS))


async def _receive(client: AsyncClient) -> dict[int, str]:
    """Each sequence with its document; the same sequence always has the same one."""
    received: dict[int, str] = {}
    async with client.attach("all") as messages:
        async for message in messages:
            assert received.setdefault(message.sequence, message.document.id) == message.document.id
            message.ack()
            if len(received) == N_DOCUMENTS:
                break
    return received


async def test_the_sync_client_goes_on_too(server: ServerProcess) -> None:
    def publish_and_receive() -> list[int]:
        with Client(server.address, timeout=60, patience=60) as client:
            client.subscribe(id="all", xpath="//a")
            results = list(client.publish_many(f"<a n='{n}'/>" for n in range(200)))
            assert all(result.matches == 1 for result in results)
            loop.call_soon_threadsafe(half.set)
            again.wait()
            with client.attach("all", auto_ack=True) as messages:
                return [next(messages).sequence for _ in range(200)]

    loop, half, again = asyncio.get_running_loop(), asyncio.Event(), threading.Event()
    working = asyncio.create_task(asyncio.to_thread(publish_and_receive))
    await half.wait()
    await server.stop()
    await server.start()
    again.set()
    assert await working == list(range(1, 201))


async def test_errors_of_the_real_server_have_their_facts(server: ServerProcess) -> None:
    async with AsyncClient(server.address) as client:
        with pytest.raises(InvalidExpression) as caught:
            await client.subscribe(xpath="//book/[price]")
        assert (caught.value.column, caught.value.expected) == (8, "a node test")
        assert "^" in str(caught.value)
        results = [result async for result in client.import_subscriptions([{"xpath": "//a"}, {"boolean": "price >"}])]
        assert isinstance(results[1].error, InvalidExpression)
        assert results[1].error.column == 8


async def test_a_session_of_commands(server: ServerProcess, tmp_path: Path) -> None:
    environment = os.environ | {"PATHSIEVE_ADDRESS": server.address}

    async def call(*arguments: str, input: str = "", code: int = 0) -> str:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "pathsieve", *arguments),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
        )
        out, err = await process.communicate(input.encode())
        assert process.returncode == code, err.decode()
        return out.decode() + err.decode()

    expressions = tmp_path / "expressions.txt"
    expressions.write_text("//quote\n//book/[price]\n")
    told = await call("sub", "import", str(expressions), code=1)
    assert "line 2: expected a node test at column 8" in told
    await call("sub", "add", "--id", "rich", "--boolean", "price > 100 AND XPATH '//quote'")
    assert "price > 100 held" in await call("sub", "explain", "-s", "rich", "-a", "price=120", input="<quote/>")
    assert "2 matches" in await call("publish", "-", "-a", "price=120", "--id", "q1", input="<quote/>")
    assert "had been published before" in await call("publish", "-", "--id", "q1", input="<quote/>")
    printed = await call("attach", "rich", "--count", "1", "-o", "json")
    assert json.loads(printed.splitlines()[0])["document"]["attributes"] == {"price": 120}
    assert "of which 0 wait" in await call("sub", "get", "rich")
    doctor = await call("doctor", "--settings", "--http", server.http_address)
    assert "it serves" in doctor
    assert "listen.port" in doctor
    looked = await call("top", "--http", server.http_address, "--count", "1", "--interval", "0.1")
    assert "1 boolean" in looked
    assert "1 accepted" in looked
    assert "throughput" in await call("bench", "--documents", "500", "--singles", "5")


async def test_ctrl_c_ends_an_attach_quietly(server: ServerProcess) -> None:
    command = (
        sys.executable,
        "-m",
        "pathsieve",
        "attach",
        "--ephemeral",
        "--xpath",
        "//a",
        "--address",
        server.address,
    )
    process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    async with AsyncClient(server.address) as client:
        assert process.stdout is not None
        while True:
            await client.publish("<a/>")
            try:
                line = await asyncio.wait_for(process.stdout.readline(), 0.5)
                break
            except TimeoutError:
                continue
    assert line.decode().endswith("<a/>\n")
    process.send_signal(signal.SIGINT)
    _, err = await process.communicate()
    assert process.returncode == 0
    assert b"Traceback" not in err
    assert b"message" in err


TOKENS = """
[[tokens]]
token = "reader-secret"
tenant = "acme"
roles = ["subscribe"]
"""


async def test_tokens_and_certificates(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    pair, own, tokens = authority.pair("server"), authority.pair("client"), tmp_path / "tokens.toml"
    tokens.write_text(TOKENS)
    settings = {
        "SECURITY__CERTIFICATE": str(pair.certificate),
        "SECURITY__KEY": str(pair.key),
        "SECURITY__CLIENT_CA": str(authority.certificate),
        "SECURITY__TOKENS": str(tokens),
    }
    tls = authority.certificate, own.certificate, own.key
    async with ServerProcess(tmp_path, **settings) as server:
        async with AsyncClient(server.address, token="reader-secret", tls=tls) as reader:
            await reader.subscribe(id="a", xpath="//a")
            with pytest.raises(PermissionDenied):
                await reader.publish("<a/>")
        async with AsyncClient(server.address, token="unknown", tls=tls) as nobody:
            with pytest.raises(Unauthenticated):
                await nobody.get("a")
        async with AsyncClient(server.address, tls=authority.certificate, patience=0) as without:
            with pytest.raises(Unavailable):
                await without.get("a")
        options = [
            "--tls-ca",
            str(tls[0]),
            "--tls-cert",
            str(tls[1]),
            "--tls-key",
            str(tls[2]),
            "--token",
            "reader-secret",
        ]
        command = ["doctor", "--address", server.address, "--http", server.http_address, *options, "-o", "json"]
        result = await asyncio.to_thread(CliRunner().invoke, app, command)
        found = {one["check"]: one for one in map(json.loads, result.stdout.splitlines())}
        assert "good for" in found["TLS"]["found"]
        assert (found["health"]["state"], found["role subscribe"]["state"]) == ("ok", "ok")
        assert found["role publish"]["state"] == "note"


async def test_what_is_in_the_log_is_read_as_often_as_one_likes(server: ServerProcess) -> None:
    """By sequence and by position, in many pages, while the server is killed and comes back."""
    async with AsyncClient(server.address, timeout=60, patience=60) as client:
        await client.subscribe(id="all", xpath="//a")
        await client.subscribe(id="even", boolean="even = TRUE")
        documents = (Document(f"<a n='{n}'/>", id=f"d{n}", attributes={"even": n % 2 == 0}) for n in range(2500))
        assert not [result async for result in client.publish_many(documents) if result.error]
        whole, evens = await client.ranges(["all", "even"])
        assert (whole.dropped, whole.head, evens.head) == (0, 2500, 1250)
        found = []
        async for one in client.read("even", after=3, through=1200):
            found.append((one.subscription, one.sequence, one.document.id))
            if len(found) == 500:
                await server.kill()
                await server.start(wait=False)
        assert found == [("subscriptions/even", n + 1, f"d{2 * n}") for n in range(3, 1200)]
        positions = {one.position: dict(one.matches) async for one in client.read("-")}
        assert list(positions) == list(range(1, 2501))
        assert positions[1999] == {"subscriptions/all": 1999, "subscriptions/even": 1000}
        assert (await client.tenant_range(after=7, max_documents=100)).through == 107

        await client.acknowledge_through({"all": 2000, "even": 10})
        assert (await client.get("all")).progress.backlog == 500
        await client.acknowledge_through({"-": 1999}, after=1990)
        assert (await client.get("even")).progress.floor == 1000
        assert [message.sequence for message in await client.pull("all", 1)] == [2001]
