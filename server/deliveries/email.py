"""Notifications as mails: a line for each document, and its XML attached.

    Message-ID: <s12.7-9@example.com>      the same for every attempt at the same messages
    Subject: 3 documents for ibm

Many documents that go together, as those of a digest do, are one mail.
"""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import format_datetime

import aiosmtplib

from server.deliveries.settings import DeliverySettings
from server.deliveries.transports import Notification, PushError
from server.documents import Document
from server.subscriptions import Email, Subscription

__all__ = ["EmailTransport", "write_mail"]

MAX_SUBJECT = 200


class EmailTransport:
    """Hands mails to an SMTP server; one connection a mail."""

    def __init__(self, settings: DeliverySettings) -> None:
        self._settings = settings

    async def send(self, subscription: Subscription, notifications: Sequence[Notification]) -> None:
        """Send one mail; `PushError` unless the SMTP server has taken it for all addresses."""
        mail = write_mail(subscription, notifications, self._settings.smtp_sender)
        try:
            refused, _ = await self._deliver(mail)
        except (aiosmtplib.SMTPException, OSError) as error:
            raise PushError(f"the mail was not taken: {type(error).__name__}: {error}") from error
        if refused:
            raise PushError(f"the mail was refused for {len(refused)} of its addresses")

    async def close(self) -> None:
        """There is no connection between mails."""

    async def _deliver(self, mail: EmailMessage) -> tuple[dict[str, aiosmtplib.SMTPResponse], str]:
        settings = self._settings
        return await aiosmtplib.send(
            mail,
            hostname=settings.smtp_host,
            port=settings.smtp_port,
            start_tls=settings.smtp_starttls,
            username=settings.smtp_username or None,
            password=settings.smtp_password or None,
            timeout=settings.smtp_timeout,
        )


def write_mail(subscription: Subscription, notifications: Sequence[Notification], sender: str) -> EmailMessage:
    """The mail for some documents; the same ones make the same mail."""
    email = subscription.push
    assert isinstance(email, Email)
    first, last = notifications[0], notifications[-1]
    mail = EmailMessage()
    mail["From"] = sender
    mail["To"] = ", ".join(email.to)
    mail["Subject"] = _one_line(email.subject or _subject(subscription, len(notifications)))
    mail["Date"] = format_datetime(datetime.fromtimestamp(last.document.publish_time, UTC))
    mail["Message-ID"] = f"<s{subscription.number}.{first.sequence}-{last.sequence}@{sender.rpartition('@')[2]}>"
    mail["Auto-Submitted"] = "auto-generated"
    mail.set_content("".join(_line(notification) for notification in notifications))
    for notification in notifications:
        _attach(mail, notification)
    return mail


def _subject(subscription: Subscription, n_documents: int) -> str:
    return f"{n_documents} document{'s' if n_documents > 1 else ''} for {subscription.id}"


def _one_line(text: str) -> str:
    return " ".join(text.split())[:MAX_SUBJECT]


def _line(notification: Notification) -> str:
    document = notification.document
    published = datetime.fromtimestamp(document.publish_time, UTC).isoformat(timespec="seconds")
    source = f" from {document.source}" if document.source else ""
    attributes = "".join(f"\n    {name} = {value}" for name, value in document.attributes.items())
    return f"{notification.sequence}  {document.id}{source}, published {published}{attributes}\n"


def _attach(mail: EmailMessage, notification: Notification) -> None:
    document = notification.document
    if document.xml:
        mail.add_attachment(
            document.xml, maintype="application", subtype="xml", filename=_file_name(notification, document)
        )


def _file_name(notification: Notification, document: Document) -> str:
    """Of the sequence, and of what is harmless in the id."""
    return f"{notification.sequence}-{re.sub(r'[^A-Za-z0-9._-]+', '_', document.id)[:80]}.xml"
