"""Start, load, serve, drain, stop: what is answered when."""

import asyncio
import json
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

from pathsieve.v1 import delivery_service_pb2 as delivery
from pathsieve.v1.publish_service_pb2 import PublishRequest, PublishStreamRequest
from pathsieve.v1.subscription_service_pb2 import CreateSubscriptionRequest, ListSubscriptionsRequest
from server.daemon import Daemon
from server.errors import CannotStart, StoreError
from server.readiness import Phase, Progress
from server.rpc.listener import LIVENESS
from tests.servers import Stubs, details_of, document, running, settings_in, stubs_of

SERVICES = ["", *(f"pathsieve.v1.{name}Service" for name in ("Subscription", "Publish", "Delivery", "Cluster", "Peer"))]
SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


async def health(stubs: Stubs) -> set[int]:
    stub = health_pb2_grpc.HealthStub(stubs.channel)
    answers = [await stub.Check(health_pb2.HealthCheckRequest(service=name)) for name in SERVICES]
    return {answer.status for answer in answers}


async def is_live(stubs: Stubs) -> bool:
    answer = await health_pb2_grpc.HealthStub(stubs.channel).Check(health_pb2.HealthCheckRequest(service=LIVENESS))
    return bool(answer.status == SERVING)


async def create(stubs: Stubs, subscription_id: str) -> None:
    request = CreateSubscriptionRequest(subscription={"filter": {"xpath": "//a"}}, subscription_id=subscription_id)
    await stubs.subscriptions.CreateSubscription(request)


async def attach(stubs: Stubs, name: str) -> Any:
    call = stubs.delivery.Attach()
    credit = {"messages": 10, "bytes": 1000}
    await call.write(delivery.AttachRequest(start={"subscriptions": [name], "credit": credit}))
    await call.read()
    return call


async def test_health_is_answered_before_it_is_ready_and_calls_are_told_how_far_it_is(tmp_path: Path) -> None:
    told: list[Progress] = []
    async with Daemon(settings_in(tmp_path), told.append) as daemon, stubs_of(daemon.address) as stubs:
        daemon.readiness.enter(Phase.LOADING)
        assert await health(stubs) == {NOT_SERVING}
        assert await is_live(stubs)
        call = stubs.subscriptions.ListSubscriptions(ListSubscriptionsRequest())
        assert await call.code() is grpc.StatusCode.UNAVAILABLE
        assert "the server is starting" in await call.details()
        assert (await details_of(call))["retry_after"] == "1.0"
        await daemon.ready()
        assert await health(stubs) == {SERVING}
        assert await is_live(stubs)
    assert told[-1] == Progress("subscriptions", 0, 0)


async def test_what_was_stored_is_loaded_at_the_next_start(tmp_path: Path) -> None:
    told: list[Progress] = []
    async with running(settings_in(tmp_path)) as daemon, stubs_of(daemon.address) as stubs:
        await create(stubs, "a")
    async with Daemon(settings_in(tmp_path), told.append) as daemon, stubs_of(daemon.address) as stubs:
        await daemon.ready()
        published = await stubs.publish.Publish(PublishRequest(documents=[document("1")]))
        assert published.results[0].matches == 1
    assert told[-1] == Progress("subscriptions", 1, 1)


async def test_services_can_be_listed(tmp_path: Path) -> None:
    def listed(address: str) -> list[str]:
        with grpc.insecure_channel(address) as channel:
            return list(ProtoReflectionDescriptorDatabase(channel).get_services())

    async with running(settings_in(tmp_path)) as daemon:
        services = await asyncio.to_thread(listed, daemon.address)
    assert set(services) == {*SERVICES[1:], "grpc.health.v1.Health", "grpc.reflection.v1alpha.ServerReflection"}


async def test_draining_refuses_new_calls_and_says_goodbye(tmp_path: Path) -> None:
    async with running(settings_in(tmp_path)) as daemon, stubs_of(daemon.address) as stubs:
        await create(stubs, "a")
        call = await attach(stubs, "subscriptions/a")
        publishing = stubs.publish.PublishStream()
        await publishing.read()
        draining = asyncio.create_task(daemon.drain())
        assert (await call.read()).goodbye.reason == delivery.GOODBYE_REASON_DRAINING
        assert (await publishing.read()).draining
        assert await health(stubs) == {NOT_SERVING}
        refused = stubs.publish.Publish(PublishRequest(documents=[document("1")]))
        assert await refused.code() is grpc.StatusCode.UNAVAILABLE
        assert (await details_of(refused))["reason"] == "DRAINING"
        await call.done_writing()
        await publishing.done_writing()
        await draining
        assert {await call.code(), await publishing.code()} == {grpc.StatusCode.OK}


async def test_acks_count_that_follow_the_goodbye(tmp_path: Path) -> None:
    async with running(settings_in(tmp_path)) as daemon, stubs_of(daemon.address) as stubs:
        await create(stubs, "a")
        call = await attach(stubs, "subscriptions/a")
        await stubs.publish.Publish(PublishRequest(documents=[document("1")]))
        message = (await call.read()).messages.messages[0]
        draining = asyncio.create_task(daemon.drain())
        await call.read()
        await call.write(delivery.AttachRequest(ack={"message_ids": [message.message_id]}))
        await call.done_writing()
        await draining
    async with running(settings_in(tmp_path)) as daemon, stubs_of(daemon.address) as stubs:
        pulled = await stubs.delivery.Pull(delivery.PullRequest(subscription="subscriptions/a"))
        assert not pulled.messages


async def test_every_document_is_answered_before_it_stops(tmp_path: Path) -> None:
    requests = [PublishStreamRequest(documents=[document(f"{i}-{j}") for j in range(10)]) for i in range(50)]
    async with running(settings_in(tmp_path)) as daemon, stubs_of(daemon.address) as stubs:
        call = stubs.publish.PublishStream(iter(requests))
        responses = aiter(call)
        results = list((await anext(responses)).results)
        while not results:
            results += (await anext(responses)).results
        draining = asyncio.create_task(daemon.drain())
        results += [result async for response in responses for result in response.results]
        await draining
    assert sorted(result.index for result in results) == list(range(500))
    problems = {result.problem.details["reason"] for result in results if result.HasField("problem")}
    assert problems <= {"DRAINING"}


async def test_a_pull_that_waits_does_not_hold_it_up(tmp_path: Path) -> None:
    async with running(settings_in(tmp_path)) as daemon, stubs_of(daemon.address) as stubs:
        await create(stubs, "a")
        request = delivery.PullRequest(subscription="subscriptions/a", wait={"seconds": 600})
        pulling = stubs.delivery.Pull(request)
        while not daemon.variables()["calls"]:
            await asyncio.sleep(0.01)
        await daemon.drain()
        assert await pulling.code() in (grpc.StatusCode.OK, grpc.StatusCode.UNAVAILABLE)


async def test_a_watcher_of_health_hears_of_the_end_and_does_not_hold_it_up(tmp_path: Path) -> None:
    async with running(settings_in(tmp_path)) as daemon, stubs_of(daemon.address) as stubs:
        watch = health_pb2_grpc.HealthStub(stubs.channel).Watch(health_pb2.HealthCheckRequest())
        assert (await watch.read()).status == SERVING
        await daemon.drain()
        assert (await watch.read()).status == NOT_SERVING
        assert await is_live(stubs)


async def test_health_follows_whether_a_replica_has_its_share(tmp_path: Path) -> None:
    async with running(settings_in(tmp_path)) as daemon, stubs_of(daemon.address) as stubs:
        watch = health_pb2_grpc.HealthStub(stubs.channel).Watch(health_pb2.HealthCheckRequest())
        assert (await watch.read()).status == SERVING
        daemon.readiness.takes_part = lambda: False
        assert (await watch.read()).status == NOT_SERVING
        assert await is_live(stubs)
        await create(stubs, "a")
        daemon.readiness.takes_part = lambda: True
        assert (await watch.read()).status == SERVING


async def test_the_ready_file_is_there_while_it_serves(tmp_path: Path) -> None:
    path = tmp_path / "ready.json"
    async with running(settings_in(tmp_path, listen__ready_file=path)) as daemon:
        told = json.loads(path.read_text())
        assert (told["grpc"], told["http"]) == (daemon.address, daemon.http_address)
    assert not path.exists()


async def test_what_happens_is_measured(tmp_path: Path) -> None:
    async with running(settings_in(tmp_path)) as daemon, stubs_of(daemon.address) as stubs:
        await create(stubs, "a")
        await stubs.publish.Publish(PublishRequest(documents=[document("1"), document("1"), document("2", "<a")]))
        call = await attach(stubs, "subscriptions/a")
        await call.read()
        async with httpx.AsyncClient(base_url=f"http://{daemon.http_address}", trust_env=False) as http:
            text = (await http.get("/metrics")).text
            variables = (await http.get("/varz")).json()
            assert (await http.get("/readyz")).json()["phase"] == "ready"
        call.cancel()
    lines = set(text.splitlines())
    assert lines >= {
        'pathsieve_documents_total{outcome="accepted"} 1.0',
        'pathsieve_documents_total{outcome="refused"} 1.0',
        "pathsieve_matches_total 1.0",
        "pathsieve_duplicates_dropped_total 1.0",
        'pathsieve_subscriptions{kind="xpath"} 1.0',
        "pathsieve_backlog_messages 1.0",
        "pathsieve_delivered_total 1.0",
        "pathsieve_attached_streams 1.0",
        "pathsieve_ready 1.0",
    }
    assert variables["settings"]["listen.port"]["origin"] == "flag for listen.port"
    assert variables["engines"]["default"]["xpath"]["subscriptions"] == 1


async def test_a_port_that_is_taken_is_told_in_words(tmp_path: Path) -> None:
    async with running(settings_in(tmp_path)) as daemon:
        port = int(daemon.address.rpartition(":")[2])
        with pytest.raises(CannotStart, match=f"cannot listen on 127.0.0.1:{port}"):
            async with running(settings_in(tmp_path / "other", listen__port=port)):
                pass


async def test_a_store_that_cannot_be_used_is_told_in_words(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "pathsieve.db").write_text("this is no database, but it is long enough to look like one" * 100)
    with pytest.raises(StoreError, match="cannot be used"):
        async with running(settings_in(tmp_path)):
            pass
