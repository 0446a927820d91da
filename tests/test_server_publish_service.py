"""PublishService, over a real channel."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from pathsieve.v1 import publish_service_pb2 as wire
from pathsieve.v1.subscription_service_pb2 import CreateSubscriptionRequest
from server.daemon import Daemon
from tests.servers import Stubs, details_of, document, ended, running, settings_in, stubs_of


@pytest.fixture
async def daemon(tmp_path: Path) -> AsyncIterator[Daemon]:
    settings = settings_in(
        tmp_path, publishing__stream_credit_documents=8, limits__max_document_bytes=1000, limits__max_batch_documents=8
    )
    async with running(settings) as daemon:
        yield daemon


@pytest.fixture
async def stubs(daemon: Daemon) -> AsyncIterator[Stubs]:
    async with stubs_of(daemon.address) as stubs:
        request = CreateSubscriptionRequest(subscription={"filter": {"xpath": "//a"}}, subscription_id="a")
        await stubs.subscriptions.CreateSubscription(request)
        yield stubs


def batch(*documents: Any) -> wire.PublishStreamRequest:
    return wire.PublishStreamRequest(documents=documents)


async def test_each_document_has_a_result_in_order(stubs: Stubs) -> None:
    documents = [document("1"), document("2", "<a"), document("3", "<b/>"), document("1")]
    response = await stubs.publish.Publish(wire.PublishRequest(documents=documents))
    told = [(result.index, result.document_id, result.matches, result.duplicate) for result in response.results]
    assert told == [(0, "1", 1, False), (1, "", 0, False), (2, "3", 0, False), (3, "1", 0, True)]
    assert response.results[1].problem.details["reason"] == "DOCUMENT_ERROR"


BAD_DOCUMENTS = {
    "not_xml": (document("x", "<a"), "DOCUMENT_ERROR", {"line": "1"}),
    "too_large": (document("x", "<a>" + "x" * 1000 + "</a>"), "LIMIT_EXCEEDED", {"limit": "max_document_bytes"}),
    "no_value": (document("x", attributes={"p": {}}), "EVENT_ERROR", {"attribute": "p"}),
    "no_interval": (
        document("x", attributes={"p": {"interval_value": {"low": 2, "high": 1}}}),
        "EVENT_ERROR",
        {"attribute": "p"},
    ),
    "no_number": (document("x", attributes={"p": {"double_value": float("nan")}}), "EVENT_ERROR", {"attribute": "p"}),
}


@pytest.mark.parametrize("bad, reason, facts", BAD_DOCUMENTS.values(), ids=BAD_DOCUMENTS)
async def test_a_bad_document_does_not_end_the_stream(
    stubs: Stubs, bad: Any, reason: str, facts: dict[str, str]
) -> None:
    call = stubs.publish.PublishStream()
    await call.write(batch(document("1"), bad, document("2")))
    await call.write(batch(document("3")))
    await call.done_writing()
    results = {result.index: result async for response in call for result in response.results}
    assert [results[index].matches for index in (0, 2, 3)] == [1, 1, 1]
    problem = results[1].problem
    assert problem.details["reason"] == reason
    assert facts.items() <= dict(problem.details).items()
    assert await call.code() is grpc.StatusCode.OK


async def test_the_first_response_opens_the_stream(stubs: Stubs) -> None:
    call = stubs.publish.PublishStream()
    first = await call.read()
    assert (first.credit_documents, first.credit_bytes) == (8, 32 << 20)
    assert not first.results


async def test_what_is_answered_is_granted_again(stubs: Stubs) -> None:
    call = stubs.publish.PublishStream()
    sent = document("1")
    await call.write(batch(sent))
    await call.done_writing()
    responses = [response async for response in call]
    assert sum(response.credit_documents for response in responses) == 8 + 1
    assert sum(response.credit_bytes for response in responses) == (32 << 20) + sent.ByteSize()


async def test_many_more_than_the_window_pass_through_it(stubs: Stubs) -> None:
    call = stubs.publish.PublishStream()
    credit, indexes, sent = 0, set(), 0
    while len(indexes) < 100:
        response = await call.read()
        credit += response.credit_documents
        indexes |= {result.index for result in response.results}
        take = min(credit, 100 - sent)
        if take:
            await call.write(batch(*(document(f"d{sent + i}") for i in range(take))))
            credit, sent = credit - take, sent + take
    assert indexes == set(range(100))


async def test_more_than_was_granted_ends_the_stream(stubs: Stubs) -> None:
    call = stubs.publish.PublishStream()
    await call.write(batch(*(document(str(i)) for i in range(9))))
    await ended(call)
    assert await call.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert (await details_of(call)) == {
        "reason": "LIMIT_EXCEEDED",
        "limit": "credit_documents",
        "allowed": "8",
        "found": "9",
    }


async def test_more_bytes_than_were_granted_end_the_stream(tmp_path: Path) -> None:
    settings = settings_in(tmp_path, publishing__stream_credit_bytes=1, limits__max_document_bytes=1000)
    async with running(settings) as daemon, stubs_of(daemon.address) as stubs:
        call = stubs.publish.PublishStream()
        await call.write(batch(document("1", "x" * 70_000)))
        await ended(call)
        assert await call.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert (await details_of(call))["limit"] == "credit_bytes"


async def test_a_stream_with_nothing_on_it_ends_well(stubs: Stubs) -> None:
    call = stubs.publish.PublishStream()
    await call.done_writing()
    assert len([response async for response in call]) == 1
    assert await call.code() is grpc.StatusCode.OK


async def test_draining_is_said_and_what_is_in_flight_is_answered(daemon: Daemon, stubs: Stubs) -> None:
    call = stubs.publish.PublishStream()
    await call.read()
    await call.write(batch(document("1")))
    answered = await call.read()
    assert answered.results[0].matches == 1
    daemon.readiness.draining.set()
    assert (await call.read()).draining
    await call.done_writing()
    assert await call.read() is grpc.aio.EOF
    assert await call.code() is grpc.StatusCode.OK


async def test_a_batch_is_staged_and_committed_once(stubs: Stubs) -> None:
    first = wire.StageDocumentsRequest(query="q", batch=1, part={"partition": 0, "attempt": 0})
    first.documents.extend([document("1"), document("2", "<a")])
    more = wire.StageDocumentsRequest(documents=[document("3", "<b/>"), document("4", "x" * 2000)])
    call = stubs.publish.StageDocuments(iter([first, more]))
    staged = await call
    assert staged.staged == 2
    assert [(result.index, result.problem.details["reason"]) for result in staged.refused] == [
        (1, "DOCUMENT_ERROR"),
        (3, "LIMIT_EXCEEDED"),
    ]
    request = wire.CommitBatchRequest(query="q", batch=1, parts=[{"partition": 0, "attempt": 0}])
    committed = [await stubs.publish.CommitBatch(request) for _ in range(2)]
    assert [(one.documents, one.matches, one.repeated_commit) for one in committed] == [(2, 1, False), (2, 1, True)]


async def test_an_aborted_batch_is_forgotten(stubs: Stubs) -> None:
    first = wire.StageDocumentsRequest(query="q", batch=1, part={"partition": 0}, documents=[document("1")])
    await stubs.publish.StageDocuments(iter([first]))
    await stubs.publish.AbortBatch(wire.AbortBatchRequest(query="q", batch=1))
    committed = await stubs.publish.CommitBatch(wire.CommitBatchRequest(query="q", batch=1))
    assert committed.documents == 0
