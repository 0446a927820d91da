"""TLS, tokens, tenants and rates, over real channels."""

import json
import logging
import os
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from pathsieve.v1 import delivery_service_pb2 as delivery
from pathsieve.v1.publish_service_pb2 import PublishRequest
from pathsieve.v1.subscription_service_pb2 import (
    CreateSubscriptionRequest,
    GetSubscriptionRequest,
    ListSubscriptionsRequest,
)
from server.daemon import Daemon
from server.errors import CannotStart
from tests.certificates import Authority
from tests.servers import Stubs, details_of, document, ended, running, settings_in, stubs_of

Code = grpc.StatusCode
TOKENS = {
    "acme-all": ("acme", ["publish", "subscribe"]),
    "acme-publisher": ("acme", ["publish"]),
    "acme-reader": ("acme", ["subscribe"]),
    "other-admin": ("other", ["admin"]),
}


def write_tokens(path: Path, tokens: Sequence[str] = tuple(TOKENS), **fields: str) -> None:
    entries = [{"token": token, "tenant": TOKENS[token][0], "roles": TOKENS[token][1], **fields} for token in tokens]
    path.write_text(json.dumps({"tokens": entries}))


def bearing(token: str) -> dict[str, Any]:
    return {"metadata": (("authorization", f"Bearer {token}"),)}


@pytest.fixture
def tokens(tmp_path: Path) -> Path:
    path = tmp_path / "tokens.json"
    write_tokens(path)
    return path


@pytest.fixture
async def daemon(tmp_path: Path, tokens: Path) -> AsyncIterator[Daemon]:
    async with running(settings_in(tmp_path, security__tokens=tokens)) as daemon:
        yield daemon


@pytest.fixture
async def stubs(daemon: Daemon) -> AsyncIterator[Stubs]:
    async with stubs_of(daemon.address) as stubs:
        yield stubs


async def create(stubs: Stubs, subscription_id: str, token: str) -> None:
    request = CreateSubscriptionRequest(subscription={"filter": {"xpath": "//a"}}, subscription_id=subscription_id)
    await stubs.subscriptions.CreateSubscription(request, **bearing(token))


STRANGERS = {
    "nobody": ({}, "missing"),
    "a_guess": (bearing("guess"), "unknown"),
    "another_scheme": ({"metadata": (("authorization", "Basic YTpi"),)}, "scheme"),
}


@pytest.mark.parametrize("call, why", STRANGERS.values(), ids=STRANGERS)
async def test_strangers_are_not_let_in(stubs: Stubs, call: dict[str, Any], why: str) -> None:
    listing = stubs.subscriptions.ListSubscriptions(ListSubscriptionsRequest(), **call)
    assert await listing.code() is Code.UNAUTHENTICATED
    assert (await details_of(listing))["why"] == why


async def test_health_needs_no_token(stubs: Stubs) -> None:
    health = health_pb2_grpc.HealthStub(stubs.channel)
    assert (await health.Check(health_pb2.HealthCheckRequest())).status == health_pb2.HealthCheckResponse.SERVING


async def test_a_role_is_needed(stubs: Stubs) -> None:
    publishing = stubs.publish.Publish(PublishRequest(documents=[document("1")]), **bearing("acme-reader"))
    assert await publishing.code() is Code.PERMISSION_DENIED
    assert (await details_of(publishing))["role"] == "publish"
    listing = stubs.subscriptions.ListSubscriptions(ListSubscriptionsRequest(), **bearing("acme-publisher"))
    assert await listing.code() is Code.PERMISSION_DENIED


async def test_streams_need_a_role_too(stubs: Stubs) -> None:
    call = stubs.publish.PublishStream(**bearing("acme-reader"))
    await ended(call)
    assert await call.code() is Code.PERMISSION_DENIED


async def test_tenants_do_not_see_each_other(stubs: Stubs) -> None:
    await create(stubs, "mine", "acme-all")
    other = bearing("other-admin")
    get = stubs.subscriptions.GetSubscription(GetSubscriptionRequest(name="subscriptions/mine"), **other)
    assert await get.code() is Code.NOT_FOUND
    page = await stubs.subscriptions.ListSubscriptions(ListSubscriptionsRequest(), **other)
    assert (len(page.subscriptions), page.total_size) == (0, 0)
    pull = stubs.delivery.Pull(delivery.PullRequest(subscription="subscriptions/mine"), **other)
    assert await pull.code() is Code.NOT_FOUND
    attach = stubs.delivery.Attach(**other)
    await attach.write(delivery.AttachRequest(start={"subscriptions": ["subscriptions/mine"]}))
    await ended(attach)
    assert await attach.code() is Code.NOT_FOUND


async def test_a_document_meets_only_subscriptions_of_its_tenant(stubs: Stubs) -> None:
    await create(stubs, "mine", "acme-all")
    request = PublishRequest(documents=[document("1")])
    assert (await stubs.publish.Publish(request, **bearing("other-admin"))).results[0].matches == 0
    assert (await stubs.publish.Publish(request, **bearing("acme-publisher"))).results[0].matches == 1


async def test_tenants_may_have_the_same_names(stubs: Stubs) -> None:
    await create(stubs, "same", "acme-all")
    await create(stubs, "same", "other-admin")


async def test_a_revoked_token_ends_its_stream(daemon: Daemon, stubs: Stubs, tokens: Path) -> None:
    await create(stubs, "mine", "acme-all")
    call = stubs.delivery.Attach(**bearing("acme-reader"))
    await call.write(delivery.AttachRequest(start={"subscriptions": ["subscriptions/mine"]}))
    await call.read()
    publishing = stubs.publish.PublishStream(**bearing("acme-publisher"))
    await publishing.read()
    write_tokens(tokens, ["acme-all"])
    os.utime(tokens, ns=(0, 0))
    goodbye = (await call.read()).goodbye
    assert goodbye.reason == delivery.GOODBYE_REASON_UNAUTHENTICATED
    await ended(call)
    assert await call.code() is Code.UNAUTHENTICATED
    await ended(publishing)
    assert await publishing.code() is Code.UNAUTHENTICATED


async def test_an_expired_token_is_told_so(stubs: Stubs, daemon: Daemon, tokens: Path) -> None:
    write_tokens(tokens, expires="2020-01-01T00:00:00Z")
    os.utime(tokens, ns=(0, 0))
    daemon.reload_tokens()
    listing = stubs.subscriptions.ListSubscriptions(ListSubscriptionsRequest(), **bearing("acme-all"))
    assert await listing.code() is Code.UNAUTHENTICATED
    assert "expired at 2020-01-01T00:00:00+00:00" in await listing.details()


async def test_no_token_is_logged_or_told(daemon: Daemon, stubs: Stubs, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        listing = stubs.subscriptions.ListSubscriptions(ListSubscriptionsRequest(), **bearing("guess-me"))
        assert "guess-me" not in await listing.details()
    assert "guess-me" not in caplog.text
    assert "acme-all" not in caplog.text + json.dumps(daemon.variables())


async def test_a_tenant_that_calls_too_often_is_told_when_to_come_back(tmp_path: Path) -> None:
    async with (
        running(settings_in(tmp_path, limits__requests_per_second=0.001)) as daemon,
        stubs_of(daemon.address) as stubs,
    ):
        calls = [stubs.subscriptions.ListSubscriptions(ListSubscriptionsRequest()) for _ in range(3)]
        codes = [await call.code() for call in calls]
        assert sorted(code.name for code in codes) == ["OK", "RESOURCE_EXHAUSTED", "RESOURCE_EXHAUSTED"]
        details = await details_of(calls[codes.index(Code.RESOURCE_EXHAUSTED)])
        assert details["limit"] == "requests_per_second"
        assert 0 < float(details["retry_after"]) <= 1000


async def test_tls(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    pair = authority.pair("server")
    settings = settings_in(tmp_path, security__certificate=pair.certificate, security__key=pair.key)
    credentials = grpc.ssl_channel_credentials(authority.certificate.read_bytes())
    async with running(settings) as daemon, stubs_of(daemon.address, credentials) as stubs:
        await stubs.subscriptions.ListSubscriptions(ListSubscriptionsRequest())
        stranger = grpc.ssl_channel_credentials(Authority(tmp_path, "stranger").certificate.read_bytes())
        async with stubs_of(daemon.address, stranger) as distrustful:
            call = distrustful.subscriptions.ListSubscriptions(ListSubscriptionsRequest())
            assert await call.code() is Code.UNAVAILABLE
        async with stubs_of(daemon.address) as plain:
            assert await plain.subscriptions.ListSubscriptions(ListSubscriptionsRequest()).code() is Code.UNAVAILABLE


async def test_with_mutual_tls_clients_need_certificates(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    pair, mine = authority.pair("server"), authority.pair("client")
    settings = settings_in(
        tmp_path,
        security__certificate=pair.certificate,
        security__key=pair.key,
        security__client_ca=authority.certificate,
    )
    root = authority.certificate.read_bytes()
    known = grpc.ssl_channel_credentials(root, mine.key.read_bytes(), mine.certificate.read_bytes())
    async with running(settings) as daemon:
        async with stubs_of(daemon.address, known) as stubs:
            await stubs.subscriptions.ListSubscriptions(ListSubscriptionsRequest())
        async with stubs_of(daemon.address, grpc.ssl_channel_credentials(root)) as stubs:
            assert await stubs.subscriptions.ListSubscriptions(ListSubscriptionsRequest()).code() is Code.UNAVAILABLE


NOT_STARTED = {
    "a_public_port_without_tokens": ({"listen__host": "0.0.0.0"}, "security.insecure_public"),
    "a_certificate_without_a_key": ({"security__certificate": "none.pem"}, "go together"),
    "a_key_that_is_not_there": (
        {"security__certificate": "none.pem", "security__key": "none.key"},
        "security.key: none.key cannot be read: No such file",
    ),
    "an_extractor_that_is_no_xpath": (
        {"extractors__price": "number("},
        "flag for extractors.price: extractors.price: expected an expression",
    ),
}


@pytest.mark.parametrize("changed, said", NOT_STARTED.values(), ids=NOT_STARTED)
async def test_it_does_not_start(tmp_path: Path, changed: dict[str, object], said: str) -> None:
    with pytest.raises(CannotStart, match=said):
        async with running(settings_in(tmp_path, **changed)):
            pass


async def test_it_listens_to_all_if_told_in_words(tmp_path: Path) -> None:
    settings = settings_in(tmp_path, listen__host="0.0.0.0", security__insecure_public=True)
    async with running(settings) as daemon:
        assert daemon.address.startswith("0.0.0.0:")
