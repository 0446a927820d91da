"""Mails, against a real SMTP server."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any, cast

import pytest
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword
from delivery_scene import scene, subscription

from server.deliveries import DeliverySettings
from server.deliveries.email import EmailTransport, write_mail
from server.deliveries.push_checks import check_push
from server.deliveries.transports import Notification, PushError
from server.documents import Document
from server.errors import InvalidRequest
from server.subscriptions import Email, Schedule

TO_US = Email(("a@example.com", "b@example.com"))


class Mailbox:
    """What an SMTP server was given. It answers `says` to the data, and refuses the addresses in `unknown`."""

    def __init__(self) -> None:
        self.envelopes: list[Envelope] = []
        self.says = "250 OK"
        self.unknown: set[str] = set()
        self.settings = DeliverySettings()

    @property
    def mails(self) -> list[EmailMessage]:
        contents = (cast(bytes, envelope.content) for envelope in self.envelopes)
        return [cast(EmailMessage, message_from_bytes(content, policy=policy.default)) for content in contents]

    async def handle_RCPT(self, server: Any, session: Any, envelope: Envelope, address: str, options: Any) -> str:  # noqa: N802  named by aiosmtpd
        if address in self.unknown:
            return "550 no such user"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: Any, session: Any, envelope: Envelope) -> str:  # noqa: N802  named by aiosmtpd
        if self.says.startswith("250"):
            self.envelopes.append(envelope)
        return self.says


@asynccontextmanager
async def mailbox(**options: Any) -> AsyncIterator[Mailbox]:
    """An SMTP server on a free port that runs while the block does."""
    box, loop = Mailbox(), asyncio.get_running_loop()
    server = await loop.create_server(lambda: SMTP(box, loop=loop, **options), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    box.settings = DeliverySettings(
        smtp_host="127.0.0.1",
        smtp_port=port,
        smtp_starttls=False,
        smtp_sender="sieve@example.org",
        smtp_username="me" if options else "",
        smtp_password="secret" if options else "",
    )
    try:
        yield box
    finally:
        server.close()
        await server.wait_closed()


def notifications(*documents: Document) -> list[Notification]:
    return [Notification(sequence, 1, document) for sequence, document in enumerate(documents, 7)]


async def test_a_mail_has_a_line_and_an_attachment_for_each_document() -> None:
    documents = [
        Document("q/1", "nyse", b"<a>\xc3\xa9</a>", publish_time=1_767_261_600),
        Document("q2", attributes={"price": 120}),
    ]
    async with mailbox() as box:
        await EmailTransport(box.settings).send(subscription(12, push=TO_US), notifications(*documents))
    [mail] = box.mails
    assert box.envelopes[0].rcpt_tos == ["a@example.com", "b@example.com"]
    assert (mail["From"], mail["To"]) == ("sieve@example.org", "a@example.com, b@example.com")
    assert mail["Subject"] == "2 documents for s12"
    body = mail.get_body()
    assert body is not None
    assert "7  q/1 from nyse, published 2026-01-01T10:00:00+00:00" in body.get_content()
    assert "price = 120" in body.get_content()
    [attached] = mail.iter_attachments()
    assert (attached.get_filename(), attached.get_content_type()) == ("7-q_1.xml", "application/xml")
    assert attached.get_content() == b"<a>\xc3\xa9</a>"


def test_every_attempt_at_the_same_documents_is_the_same_mail() -> None:
    first, again = (
        write_mail(subscription(12, push=TO_US), notifications(Document("a"), Document("b")), "sieve@example.org")
        for _ in range(2)
    )
    assert first["Message-ID"] == again["Message-ID"] == "<s12.7-8@example.org>"
    assert first["Date"] == again["Date"]


def test_a_subject_cannot_smuggle_in_headers() -> None:
    email = Email(("a@example.com",), "Quotes\r\nBcc: everyone@example.com")
    mail = write_mail(subscription(12, push=email), notifications(Document("a")), "sieve@example.org")
    assert mail["Subject"] == "Quotes Bcc: everyone@example.com"
    assert mail["Bcc"] is None


async def test_a_mail_that_is_not_taken_is_a_failure() -> None:
    async with mailbox() as box:
        box.says = "451 not now"
        with pytest.raises(PushError, match="not now"):
            await EmailTransport(box.settings).send(subscription(1, push=TO_US), notifications(Document("a")))


async def test_a_mail_that_one_address_refuses_is_a_failure() -> None:
    async with mailbox() as box:
        box.unknown = {"b@example.com"}
        with pytest.raises(PushError, match="1 of its addresses"):
            await EmailTransport(box.settings).send(subscription(1, push=TO_US), notifications(Document("a")))


async def test_a_mail_server_that_is_away_is_a_failure() -> None:
    async with mailbox() as box:
        settings = box.settings
    with pytest.raises(PushError, match="SMTPConnectError"):
        await EmailTransport(settings).send(subscription(1, push=TO_US), notifications(Document("a")))


@pytest.mark.filterwarnings("ignore:Requiring AUTH while not requiring TLS")
async def test_the_server_logs_in_with_its_name_and_password() -> None:
    seen: list[LoginPassword] = []

    def authenticate(server: Any, session: Any, envelope: Any, mechanism: str, data: LoginPassword) -> AuthResult:
        seen.append(data)
        return AuthResult(success=True)

    options = {"authenticator": authenticate, "auth_required": True, "auth_require_tls": False}
    async with mailbox(**options) as box:
        await EmailTransport(box.settings).send(subscription(1, push=TO_US), notifications(Document("a")))
        assert "secret" not in repr(box.settings)
    assert (seen[0].login, seen[0].password) == (b"me", b"secret")


async def test_a_digest_is_one_mail() -> None:
    async with mailbox() as box, scene(box.settings) as stage:
        wanted = subscription(1, push=TO_US, schedule=Schedule(cron="0 * * * *"))
        stage.deliveries.subscription_created(wanted)
        for _ in range(3):
            await stage.publish(1)
        await stage.pass_time(3600)
        assert [mail["Subject"] for mail in box.mails] == ["3 documents for s1"]
        assert stage.cursors.done[1] == {1, 2, 3}


BAD = {
    "nobody": Email(()),
    "not_an_address": Email(("example.com",)),
    "a_list": Email(("a@example.com, b@example.com",)),
    "a_header": Email(("a@example.com\nBcc: b@example.com",)),
    "a_name": Email(("A <a@example.com>",)),
}


@pytest.mark.parametrize("email", BAD.values(), ids=BAD)
def test_a_bad_address_is_refused(email: Email) -> None:
    with pytest.raises(InvalidRequest, match=r"push\.email\.to"):
        check_push(email, DeliverySettings(smtp_host="localhost"))


def test_mail_is_refused_by_a_server_that_sends_none() -> None:
    check_push(TO_US, DeliverySettings(smtp_host="localhost"))
    with pytest.raises(InvalidRequest, match="smtp_host"):
        check_push(TO_US, DeliverySettings())
