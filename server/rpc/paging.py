"""Lists in pages: how many to a page, and where the next one begins.

A page token is the last key of the page before, in a form that nobody is tempted to make up.
"""

import base64
import binascii

from server.errors import InvalidRequest

__all__ = ["page_size_from", "page_token_from", "page_token_to"]

DEFAULT_SIZE, LARGEST_SIZE = 100, 1000


def page_size_from(size: int, field: str = "page_size") -> int:
    """How many to a page.

    >>> page_size_from(0), page_size_from(7), page_size_from(5000)
    (100, 7, 1000)
    """
    if size < 0:
        raise InvalidRequest(field, f"expected 0 for {DEFAULT_SIZE}, or more, found {size}")
    return min(size or DEFAULT_SIZE, LARGEST_SIZE)


def page_token_to(last_key: str) -> str:
    """The token of the page after `last_key`.

    >>> page_token_from(page_token_to("ibm"))
    'ibm'
    """
    return base64.urlsafe_b64encode(last_key.encode()).decode()


def page_token_from(token: str) -> str:
    """The last key of the page before; empty for the first page."""
    try:
        return base64.b64decode(token, altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError) as error:
        expected = f"expected the next_page_token of the page before, found {token[:200]!r}"
        raise InvalidRequest("page_token", expected) from error
