"""Is this a target that can be pushed to? Asked when a subscription is created, not when it is too late."""

import re

import httpx

from server.deliveries.settings import DeliverySettings
from server.errors import InvalidRequest
from server.subscriptions import Email, Push, Webhook

__all__ = ["check_push"]

RESERVED_HEADERS = {"host", "content-length", "content-type", "transfer-encoding", "connection"}
LAST_PORT = 65_535
ADDRESS = re.compile(r"[^\s@<>,;:\"()\[\]\\]+@[^\s@<>,;:\"()\[\]\\]+")


def check_push(push: Push, settings: DeliverySettings) -> None:
    """Refuse a target that could never be reached."""
    if isinstance(push, Webhook):
        _check_webhook(push, settings)
    else:
        _check_email(push, settings)


def _check_webhook(webhook: Webhook, settings: DeliverySettings) -> None:
    """Refuse a target that could never be called."""
    schemes = ("https", "http") if settings.webhook_allow_http else ("https",)
    try:
        url = httpx.URL(webhook.url)
    except httpx.InvalidURL as error:
        raise InvalidRequest("push.webhook.url", f"expected a URL: {error}") from error
    has_port = url.port is None or 0 < url.port <= LAST_PORT
    if url.scheme not in schemes or not url.host or not has_port or url.userinfo:
        wanted = " or ".join(f"{scheme}://" for scheme in schemes)
        raise InvalidRequest("push.webhook.url", f"expected {wanted}, a host, perhaps a port, no user or password")
    for name, value in webhook.headers.items():
        _check_header(name, value)


def _check_header(name: str, value: str) -> None:
    if name.lower() in RESERVED_HEADERS or name.lower().startswith("webhook-"):
        raise InvalidRequest("push.webhook.headers", f"{name} is set by the server; leave it out", found=name)
    if not name.isascii() or not name.replace("-", "").replace("_", "").isalnum() or not value.isprintable():
        raise InvalidRequest("push.webhook.headers", f"expected a name and a printable value for {name!r}", found=name)
    if not value.isascii():
        raise InvalidRequest("push.webhook.headers", f"expected a value of ASCII characters for {name}", found=name)


def _check_email(email: Email, settings: DeliverySettings) -> None:
    """Refuse a mail that could never be sent."""
    if not settings.smtp_host:
        raise InvalidRequest("push.email", "this server sends no mail; an operator can set smtp_host")
    if not email.to:
        raise InvalidRequest("push.email.to", "expected at least one address")
    for address in email.to:
        if not address.isascii() or not ADDRESS.fullmatch(address):
            raise InvalidRequest("push.email.to", f"expected an address as in name@example.com, found {address!r}")
