"""What an error knows, for programs: of our own errors and of the engines' alike.

    XPathSyntaxError("//book/[price]", 8, "a node test")   ─▶   column 8, expected "a node test"
    LimitExceeded("max_document_bytes", 100, 200)           ─▶   limit, allowed 100, found 200

Facts are short: they travel in headers, which have little room. Nothing secret is one.
"""

import re

from server.errors import ServerError

__all__ = ["clipped", "facts_of", "reason_of"]

FACTS = ("text", "column", "line", "expected", "attribute", "prefix", "position", "hint")
"""Attributes of the engines' errors that are worth telling."""

LONGEST_FACT = 200


def facts_of(error: BaseException) -> dict[str, str]:
    """The facts of an error, as text."""
    if isinstance(error, ServerError):
        return {name: clipped(str(value), LONGEST_FACT) for name, value in error.facts.items()}
    known = ((name, getattr(error, name, None)) for name in FACTS)
    return {name: clipped(str(value), LONGEST_FACT) for name, value in known if value not in (None, "")}


def clipped(text: str, length: int) -> str:
    """A text that is not longer than `length`.

    >>> clipped("a long story", 6)
    'a lon…'
    """
    return text if len(text) <= length else text[: length - 1] + "…"


def reason_of(error: BaseException) -> str:
    """The error's class as a constant.

    >>> reason_of(LookupError())
    'LOOKUP_ERROR'
    """
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", type(error).__name__).upper()
