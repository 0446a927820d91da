"""Pages of the server's HTTP port."""

from dataclasses import dataclass
from email.utils import parsedate_to_datetime

import httpx

from pathsieve.errors import Unavailable

__all__ = ["Page", "fetch"]

TIMEOUT = 5.0


@dataclass(frozen=True, slots=True)
class Page:
    """A page, and what the server's clock showed, in seconds since 1970 (0: it did not say)."""

    status: int
    text: str
    time: float


def fetch(base: str, path: str) -> Page:
    """A page; `Unavailable` if nobody answers."""
    url = base.rstrip("/") + path
    try:
        response = httpx.get(url if "://" in url else f"http://{url}", timeout=TIMEOUT)
    except httpx.HTTPError as error:
        raise Unavailable(f"no answer from {url}: {error}", {"address": base}) from None
    date = response.headers.get("date")
    return Page(response.status_code, response.text, parsedate_to_datetime(date).timestamp() if date else 0.0)
