"""Notifications as POST requests, signed as standardwebhooks.com describes.

    POST /hook
    webhook-id: s12.7-9                            the same for every attempt at the same messages
    webhook-timestamp: 1767261600
    webhook-signature: v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=        of "id.timestamp.body"

    {"subscription": "subscriptions/ibm", "messages": [{"sequence": 7, "attempt": 1, "document": {...}}, ...]}

Any answer of 2xx takes all messages. 410 Gone gives them up at once: the target says that it will never want them. All
else, a timeout, and a connection that is refused are tried again, not before `Retry-After` says. Redirects are
not followed: they could lead where the guard of `addresses` does not allow. What answers say is not looked at, and
neither secrets nor URLs, which may hold some, are logged.
"""

import asyncio
import base64
import binascii
import hashlib
import hmac
import ssl
import time
from collections.abc import Callable, Sequence
from email.utils import parsedate_to_datetime

import httpx

from server.deliveries.addresses import resolve
from server.deliveries.settings import DeliverySettings
from server.deliveries.transports import Notification, PushError
from server.deliveries.webhook_body import webhook_body
from server.subscriptions import Subscription, Webhook

__all__ = ["WebhookTransport", "sign"]

SECRET_PREFIX = "whsec_"
MAX_RETRY_AFTER = 86_400.0
MAX_ANSWER = 65_536
GONE = 410


class WebhookTransport:
    """One pool of connections for all targets."""

    def __init__(self, settings: DeliverySettings, clock: Callable[[], float] = time.time) -> None:
        self._settings = settings
        self._clock = clock
        self._client = httpx.AsyncClient(
            follow_redirects=False,
            trust_env=False,
            verify=ssl.create_default_context(cafile=settings.webhook_ca_file) if settings.webhook_ca_file else True,
            timeout=settings.webhook_timeout,
            limits=httpx.Limits(max_connections=settings.push_concurrency, max_keepalive_connections=20),
        )

    async def send(self, subscription: Subscription, notifications: Sequence[Notification]) -> None:
        """Post the notifications; `PushError` unless the target answers with 2xx in time."""
        try:
            async with asyncio.timeout(self._settings.webhook_timeout):
                request = await self._request(subscription, notifications)
                response = await self._client.send(request, stream=True)
                await _let_go(response)
        except TimeoutError as error:
            raise PushError(f"no answer within {self._settings.webhook_timeout:g} s") from error
        except httpx.HTTPError as error:
            raise PushError(f"the request failed: {type(error).__name__}") from error
        if not response.is_success:
            raise self._failure(response)

    async def close(self) -> None:
        """Close all connections."""
        await self._client.aclose()

    async def _request(self, subscription: Subscription, notifications: Sequence[Notification]) -> httpx.Request:
        """The request, to the address that was looked at; TLS still asks for the name of the URL."""
        webhook = subscription.push
        assert isinstance(webhook, Webhook)
        url = httpx.URL(webhook.url)
        port = url.port or (443 if url.scheme == "https" else 80)
        address = await resolve(url.host, port, self._settings.webhook_allow_private)
        body = webhook_body(subscription, notifications)
        headers = dict(webhook.headers) | self._headers(subscription, notifications, webhook.secret, body)
        return self._client.build_request(
            "POST",
            url.copy_with(host=address),
            content=body,
            headers=headers | {"host": url.netloc.decode("ascii")},
            extensions={"sni_hostname": url.host},
        )

    def _headers(
        self, subscription: Subscription, notifications: Sequence[Notification], secret: str, body: bytes
    ) -> dict[str, str]:
        message_id = f"s{subscription.number}.{notifications[0].sequence}-{notifications[-1].sequence}"
        timestamp = int(self._clock())
        headers = {
            "content-type": "application/json",
            "user-agent": "pathsieve",
            "webhook-id": message_id,
            "webhook-timestamp": str(timestamp),
        }
        if secret:
            headers["webhook-signature"] = sign(secret, message_id, timestamp, body)
        return headers

    def _failure(self, response: httpx.Response) -> PushError:
        retry_after = _seconds(response.headers.get("retry-after", ""), self._clock())
        return PushError(f"the target answered {response.status_code}", retry_after, response.status_code == GONE)


def sign(secret: str, message_id: str, timestamp: int, body: bytes) -> str:
    """The signature of a request. A secret in the standard's form, whsec_ and base64, is decoded; another is not.

    >>> secret, message_id = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek"
    >>> sign(secret, message_id, 1614265330, b'{"test": 2432232314}')
    'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE='
    """
    content = b".".join((message_id.encode(), str(timestamp).encode(), body))
    digest = hmac.new(_key(secret), content, hashlib.sha256).digest()
    return "v1," + base64.b64encode(digest).decode()


async def _let_go(response: httpx.Response) -> None:
    """Read a short answer to its end, so that the connection can be used again; close on a long one."""
    length = response.headers.get("content-length", "")
    if length.isdecimal() and int(length) <= MAX_ANSWER:
        async for _ in response.aiter_raw():
            pass
    await response.aclose()


def _key(secret: str) -> bytes:
    if not secret.startswith(SECRET_PREFIX):
        return secret.encode()
    try:
        return base64.b64decode(secret.removeprefix(SECRET_PREFIX), validate=True)
    except binascii.Error:
        return secret.encode()


def _seconds(retry_after: str, now: float) -> float:
    """What `Retry-After` asks for, in seconds from now: it is a number of them, or a date."""
    if retry_after.isdecimal():
        return min(float(retry_after), MAX_RETRY_AFTER)
    try:
        moment = parsedate_to_datetime(retry_after).timestamp()
    except ValueError:
        return 0.0
    return min(max(moment - now, 0.0), MAX_RETRY_AFTER)
