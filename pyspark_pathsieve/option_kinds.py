"""What the text of an option may be, and the value that it stands for.

    "8"      WHOLE       8
    "30s"    SECONDS     30.0        also "500ms", "2m", "1h", and a bare number
    "true"   FLAG        True
    "drop"   choice("fail", "drop")  "drop"

A kind is a function that raises `ValueError` and the words for what was expected; `options` adds which option it is.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["ADDRESSES", "FLAG", "POSITIVE", "SECONDS", "TEXT", "WHOLE", "Kind", "choice"]

UNITS = {"ms": 0.001, "": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}
DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|)")
LARGEST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Kind:
    """How to read the text of an option; `expected` completes "expected …"."""

    expected: str
    read: Callable[[str], Any]


def choice(*allowed: str) -> Kind:
    """One of several words, in any case of letters.

    >>> choice("exactly-once", "at-least-once").read("EXACTLY-ONCE")
    'exactly-once'
    """
    words = {word.lower(): word for word in allowed}
    return Kind(" or ".join(allowed), lambda text: words[text.strip().lower()])


def _addresses(text: str) -> tuple[str, ...]:
    """
    >>> _addresses("a:7443, b:7443")
    ('a:7443', 'b:7443')
    """
    addresses = tuple(address.strip() for address in text.split(","))
    for address in addresses:
        host, colon, port = address.rpartition(":")
        if not (host and colon and port.isdecimal() and 0 < int(port) < 1 << 16) or "//" in address:
            raise ValueError
    return addresses


def _whole(least: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        number = int(text)
        if not least <= number <= LARGEST:
            raise ValueError
        return number

    return read


def _seconds(text: str) -> float:
    """
    >>> _seconds("500ms"), _seconds("2 m"), _seconds("30")
    (0.5, 120.0, 30.0)
    """
    found = DURATION.fullmatch(text.strip().lower())
    if not found:
        raise ValueError
    return float(found[1]) * UNITS[found[2]]


def _text(text: str) -> str:
    if not text.strip():
        raise ValueError
    return text


def _flag(text: str) -> bool:
    return {"true": True, "false": False}[text.strip().lower()]


TEXT = Kind("a text", _text)
FLAG = Kind("true or false", _flag)
WHOLE = Kind("a whole number, 0 or more", _whole(0))
POSITIVE = Kind("a whole number, 1 or more", _whole(1))
SECONDS = Kind("a time such as 500ms, 30s, 2m or 1h", _seconds)
ADDRESSES = Kind("host:port, or several with commas between them", _addresses)
