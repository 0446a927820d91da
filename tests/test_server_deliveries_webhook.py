"""Webhooks, against a real HTTP server."""

import base64
import hashlib
import hmac
import logging
import socket
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from delivery_scene import subscription
from http_target import HttpTarget, http_target

from boolmatch import Interval, Point
from server.deliveries import DeliverySettings
from server.deliveries.addresses import is_public
from server.deliveries.push_checks import check_push
from server.deliveries.transports import Notification, PushError
from server.deliveries.webhook import WebhookTransport, sign
from server.documents import Document
from server.errors import InvalidRequest
from server.subscriptions import Webhook

LOCAL = DeliverySettings(webhook_allow_private=True, webhook_timeout=5)
NOW = 1_767_261_600.5
ONE = [Notification(7, 1, Document("d", xml=b"<a/>", publish_time=NOW))]


async def send(
    webhook: Webhook, notifications: Sequence[Notification] = ONE, settings: DeliverySettings = LOCAL
) -> None:
    transport = WebhookTransport(settings, lambda: NOW)
    try:
        await transport.send(subscription(12, push=webhook), notifications)
    finally:
        await transport.close()


async def refusal(target: HttpTarget, status: int, **headers: str) -> PushError:
    """How an answer is understood."""
    target.answers = [(status, headers)]
    with pytest.raises(PushError) as caught:
        await send(Webhook(target.url))
    return caught.value


async def test_the_body_says_which_subscription_wants_which_documents() -> None:
    document = Document(
        "d1",
        "nyse",
        "<é/>".encode(),
        {"price": 1.5, "at": Point(1, 2), "span": Interval(3, 4), "tags": ["a", "b"], "live": True},
        {"trace": "x"},
        NOW,
    )
    async with http_target() as target:
        await send(Webhook(target.url), [Notification(7, 2, document), Notification(8, 2, Document("d2", xml=b"\xff"))])
    [received] = target.received
    assert received.headers["content-type"] == "application/json"
    assert received.json == {
        "subscription": "subscriptions/s12",
        "messages": [
            {
                "sequence": 7,
                "attempt": 2,
                "document": {
                    "id": "d1",
                    "source": "nyse",
                    "publish_time": "2026-01-01T10:00:00.500000Z",
                    "xml": "<é/>",
                    "attributes": {
                        "price": 1.5,
                        "at": {"x": 1, "y": 2},
                        "span": {"low": 3, "high": 4},
                        "tags": ["a", "b"],
                        "live": True,
                    },
                    "headers": {"trace": "x"},
                },
            },
            {
                "sequence": 8,
                "attempt": 2,
                "document": {
                    "id": "d2",
                    "source": "",
                    "publish_time": "1970-01-01T00:00:00Z",
                    "xml_base64": "/w==",
                    "attributes": {},
                    "headers": {},
                },
            },
        ],
    }


async def test_a_request_is_signed_with_the_secret() -> None:
    key = b"a key of some bytes"
    async with http_target() as target:
        await send(Webhook(target.url, "whsec_" + base64.b64encode(key).decode(), {"x-team": "blue"}))
    [received] = target.received
    assert received.headers["x-team"] == "blue"
    assert received.headers["host"] == target.url.split("/")[2]
    signed = f"{received.headers['webhook-id']}.{received.headers['webhook-timestamp']}.".encode() + received.body
    expected = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    assert received.headers["webhook-signature"] == f"v1,{expected}"
    assert received.headers["webhook-timestamp"] == str(int(NOW))


async def test_every_attempt_at_the_same_messages_has_the_same_id() -> None:
    batch = [Notification(sequence, 1, Document("d")) for sequence in (7, 8)]
    async with http_target() as target:
        await send(Webhook(target.url), batch)
        await send(Webhook(target.url), batch)
        await send(Webhook(target.url), batch[:1])
    assert [received.headers["webhook-id"] for received in target.received] == ["s12.7-8", "s12.7-8", "s12.7-7"]
    assert "webhook-signature" not in target.received[0].headers


def test_a_plain_secret_is_used_as_it_is() -> None:
    assert sign("secret", "a", 1, b"x") != sign("secret2", "a", 1, b"x")
    assert sign("whsec_not base64!", "a", 1, b"x").startswith("v1,")


@pytest.mark.parametrize("status", [200, 201, 204])
async def test_any_success_takes_the_messages(status: int) -> None:
    async with http_target() as target:
        target.answers = [(status, {})]
        await send(Webhook(target.url))


@pytest.mark.parametrize("status", [400, 404, 429, 500, 503])
async def test_any_other_answer_is_a_failure(status: int) -> None:
    async with http_target() as target:
        failure = await refusal(target, status)
        assert str(status) in failure.reason
        assert not failure.is_final


async def test_gone_is_final() -> None:
    async with http_target() as target:
        assert (await refusal(target, 410)).is_final


RETRY_AFTER = {
    "seconds": ("120", 120),
    "a_date": ("Thu, 01 Jan 2026 10:01:00 GMT", 59.5),
    "a_date_that_is_past": ("Thu, 01 Jan 2026 09:00:00 GMT", 0),
    "far_too_long": ("99999999999", 86_400),
    "nonsense": ("soon", 0),
}


@pytest.mark.parametrize("value, expected", RETRY_AFTER.values(), ids=RETRY_AFTER)
async def test_retry_after_is_understood(value: str, expected: float) -> None:
    async with http_target() as target:
        assert (await refusal(target, 503, **{"retry-after": value})).retry_after == expected


async def test_redirects_are_not_followed() -> None:
    async with http_target() as target, http_target() as other:
        failure = await refusal(target, 307, location=other.url)
        assert "307" in failure.reason
        assert not other.received


async def test_a_refused_connection_is_a_failure() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    with pytest.raises(PushError, match="ConnectError"):
        await send(Webhook(f"http://127.0.0.1:{port}/"))


async def test_a_target_that_does_not_answer_is_a_failure() -> None:
    async with http_target() as target:
        target.hold.clear()
        try:
            with pytest.raises(PushError, match=r"no answer within 0\.2 s"):
                await send(
                    Webhook(target.url), settings=DeliverySettings(webhook_allow_private=True, webhook_timeout=0.2)
                )
        finally:
            target.hold.set()


async def test_the_servers_own_network_is_out_of_reach() -> None:
    async with http_target() as target:
        for url in (target.url, target.url.replace("127.0.0.1", "localhost")):
            with pytest.raises(PushError, match="not public"):
                await send(Webhook(url), settings=DeliverySettings())
        assert not target.received


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A certificate for the name localhost, and for no address, with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    path = tmp_path / "certificate.pem"
    path.write_bytes(made.public_bytes(Encoding.PEM) + secret)
    return path


TLS = {"the_name": ("localhost", True), "the_address": ("127.0.0.1", False)}


@pytest.mark.parametrize("host, is_good", TLS.values(), ids=TLS)
async def test_tls_asks_for_the_name_though_the_address_is_called(certificate: Path, host: str, is_good: bool) -> None:
    settings = DeliverySettings(webhook_allow_private=True, webhook_ca_file=str(certificate))
    async with http_target(ssl_certfile=str(certificate), ssl_keyfile=str(certificate)) as target:
        url = target.url.replace("http://127.0.0.1", f"https://{host}")
        if is_good:
            await send(Webhook(url), settings=settings)
        else:
            with pytest.raises(PushError, match="ConnectError"):
                await send(Webhook(url), settings=settings)
    assert len(target.received) == is_good


async def test_an_authority_that_nobody_knows_is_not_trusted(certificate: Path) -> None:
    async with http_target(ssl_certfile=str(certificate), ssl_keyfile=str(certificate)) as target:
        with pytest.raises(PushError, match="ConnectError"):
            await send(Webhook(target.url.replace("http://127.0.0.1", "https://localhost")))


ADDRESSES = {
    "8.8.8.8": True,
    "2606:4700::1111": True,
    "10.1.2.3": False,
    "172.16.0.1": False,
    "192.168.1.1": False,
    "100.64.0.1": False,
    "127.9.9.9": False,
    "169.254.169.254": False,
    "0.0.0.0": False,
    "224.0.0.1": False,
    "::1": False,
    "fe80::1%eth0": False,
    "fc00::1": False,
    "::ffff:127.0.0.1": False,
    "64:ff9b::7f00:1": False,
    "2002:7f00:1::": False,
}


@pytest.mark.parametrize("address, expected", ADDRESSES.items())
def test_what_is_public(address: str, expected: bool) -> None:
    assert is_public(address) is expected


async def test_neither_secrets_nor_urls_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "pathsieve")
    async with http_target() as target:
        target.answers = [(500, {})]
        with pytest.raises(PushError) as caught:
            await send(Webhook(target.url + "?key=hidden", "hidden-secret"))
    assert "hidden" not in caught.value.reason
    assert "hidden" not in "".join(record.getMessage() for record in caplog.records if "pathsieve" in record.name)


GOOD = [Webhook("https://example.com/x?y=1"), Webhook("http://example.com", headers={"Authorization": "Bearer x"})]


@pytest.mark.parametrize("webhook", GOOD)
def test_a_good_target_is_accepted(webhook: Webhook) -> None:
    check_push(webhook, DeliverySettings())


BAD = {
    "scheme": Webhook("ftp://example.com"),
    "no_scheme": Webhook("example.com"),
    "no_host": Webhook("https:///x"),
    "password": Webhook("https://me:secret@example.com"),
    "not_a_url": Webhook("https://[::1"),
    "reserved_header": Webhook("https://example.com", headers={"Host": "other"}),
    "signature_header": Webhook("https://example.com", headers={"Webhook-Id": "1"}),
    "newline": Webhook("https://example.com", headers={"x": "a\r\nb: c"}),
    "name": Webhook("https://example.com", headers={"x y": "a"}),
    "not_ascii": Webhook("https://example.com", headers={"x": "é"}),
}


@pytest.mark.parametrize("webhook", BAD.values(), ids=BAD)
def test_a_bad_target_is_refused(webhook: Webhook) -> None:
    with pytest.raises(InvalidRequest, match=r"push\.webhook"):
        check_push(webhook, DeliverySettings())


def test_plain_http_can_be_forbidden() -> None:
    with pytest.raises(InvalidRequest, match="expected https://,"):
        check_push(Webhook("http://example.com"), DeliverySettings(webhook_allow_http=False))
