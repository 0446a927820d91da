"""The server as a process: signals, exit codes, what is written where."""

import asyncio
import hashlib
import os
from pathlib import Path
from signal import SIGHUP, SIGTERM
from typing import Any

import grpc
import httpx
import pytest

from pathsieve.v1 import delivery_service_pb2 as delivery
from pathsieve.v1.publish_service_pb2 import PublishRequest
from pathsieve.v1.subscription_service_pb2 import CreateSubscriptionRequest, ListSubscriptionsRequest
from server.errors import CannotStart
from server.server_process import ServerProcess
from tests.servers import Stubs, document, ended, stubs_of

TOKEN = "a-token-that-nobody-guesses"


async def attached(stubs: Stubs) -> Any:
    request = CreateSubscriptionRequest(subscription={"filter": {"xpath": "//a"}}, subscription_id="a")
    await stubs.subscriptions.CreateSubscription(request)
    call = stubs.delivery.Attach()
    start = {"subscriptions": ["subscriptions/a"], "credit": {"messages": 10, "bytes": 1000}}
    await call.write(delivery.AttachRequest(start=start))
    await call.read()
    return call


async def test_a_signal_drains_it(tmp_path: Path) -> None:
    async with ServerProcess(tmp_path) as server, stubs_of(server.address) as stubs:
        call = await attached(stubs)
        stopping = asyncio.create_task(server.stop())
        assert (await call.read()).goodbye.reason == delivery.GOODBYE_REASON_DRAINING
        await ended(call)
        assert await call.code() is grpc.StatusCode.OK
        assert await stopping == 0
    assert "draining: 1 attached streams" in server.log
    assert server.log.rstrip().endswith("stopped")


async def test_a_second_signal_stops_it_at_once(tmp_path: Path) -> None:
    async with ServerProcess(tmp_path) as server, stubs_of(server.address) as stubs:
        await attached(stubs)
        pulling = stubs.delivery.Pull(delivery.PullRequest(subscription="subscriptions/a", wait={"seconds": 600}))
        server.signal(SIGTERM)
        while "draining" not in server.log:
            await asyncio.sleep(0.02)
        assert await server.stop() == 0
        pulling.cancel()
    assert "stopped" in server.log


async def test_what_was_published_before_a_stop_is_there_after_it(tmp_path: Path) -> None:
    async with ServerProcess(tmp_path) as server:
        async with stubs_of(server.address) as stubs:
            (await attached(stubs)).cancel()
            published = await stubs.publish.Publish(PublishRequest(documents=[document("1")]))
            assert published.results[0].matches == 1
        await server.stop()
        await server.start()
        async with stubs_of(server.address) as stubs:
            pulled = await stubs.delivery.Pull(delivery.PullRequest(subscription="subscriptions/a"))
            assert [message.document.id for message in pulled.messages] == ["1"]
            again = await stubs.publish.Publish(PublishRequest(documents=[document("1")]))
            assert again.results[0].duplicate


async def test_a_hangup_reads_the_tokens_again(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens.toml"
    tokens.write_text("tokens = []")
    async with ServerProcess(tmp_path, SECURITY__TOKENS=str(tokens)) as server, stubs_of(server.address) as stubs:
        digest = hashlib.sha256(TOKEN.encode()).hexdigest()
        tokens.write_text(f'[[tokens]]\nsha256 = "{digest}"\nroles = ["subscribe"]')
        os.utime(tokens, ns=(0, 0))
        server.signal(SIGHUP)
        while "was read again: 1 tokens" not in server.log:
            await asyncio.sleep(0.02)
        metadata = (("authorization", f"Bearer {TOKEN}"),)
        await stubs.subscriptions.ListSubscriptions(ListSubscriptionsRequest(), metadata=metadata)
    assert TOKEN not in server.log
    assert digest not in server.log


async def test_its_pages_are_where_the_ready_file_says(tmp_path: Path) -> None:
    async with ServerProcess(tmp_path) as server, httpx.AsyncClient(trust_env=False) as http:
        assert (await http.get(f"http://{server.http_address}/readyz")).status_code == 200


NOT_STARTED = {
    "a_setting_that_is_not_there": ({"LISTEN__PROT": "1"}, "listen.prot (environment variable PATHSIEVE_LISTEN__PROT)"),
    "a_public_port_without_tokens": ({"LISTEN__HOST": "0.0.0.0"}, "security.insecure_public"),
    "tokens_that_are_not_there": ({"SECURITY__TOKENS": "/none.toml"}, "token file /none.toml: cannot be read"),
    "a_store_that_cannot_be": ({"STORE__URL": "/proc/none/x.db"}, "/proc/none"),
}


@pytest.mark.parametrize("settings, said", NOT_STARTED.values(), ids=NOT_STARTED)
async def test_it_says_in_words_why_it_does_not_start(tmp_path: Path, settings: dict[str, str], said: str) -> None:
    server = ServerProcess(tmp_path, **settings)
    with pytest.raises(CannotStart, match="the server ended with"):
        await server.start()
    assert said in server.log.replace("\n", " ")
    assert "Traceback" not in server.log
