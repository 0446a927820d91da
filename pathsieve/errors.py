"""What can go wrong with a request to a server.

    PathSieveError
    ├── InvalidRequest          a field is not what was expected: `field`
    │   ├── InvalidExpression   a filter is not in the language: `column`, `expected`; str() points at the place
    │   └── DocumentRefused     a document cannot be read or matched: `line`, `column`
    ├── NotFound                no such subscription: `name`
    ├── AlreadyExists           the name is taken: `name`
    ├── EtagMismatch            somebody else has changed it since: `name`, `etag`
    ├── LimitExceeded           a limit of the server: `limit`, `allowed`, `found`
    ├── AlreadyAttached         another stream has the subscription: `name`
    ├── Unauthenticated         no token, or one that is not known or has expired
    ├── PermissionDenied        the token lacks a role
    ├── Unavailable             nobody answers, or not now: `retry_after`
    │   └── WrongReplica        another replica of the cluster delivers it, or none just now: `address`
    ├── NotInCluster            the server stands alone, and has no cluster to tell of
    ├── DeadlineExceeded        no answer in time
    ├── Detached                the server ended a stream for good: `reason`
    ├── Cancelled               the call was given up before it was answered
    ├── Unsupported             the server does not know the call: it is older or newer than this client
    └── ServerFault             a fault of the server: its log says more

`facts` has everything the server told, as text; the attributes above are the same facts with their types. `reason`
is the name that the server has for the error. Errors survive pickling.
"""

from collections.abc import Mapping
from typing import Any

__all__ = [
    "AlreadyAttached",
    "AlreadyExists",
    "Cancelled",
    "DeadlineExceeded",
    "Detached",
    "DocumentRefused",
    "EtagMismatch",
    "InvalidExpression",
    "InvalidRequest",
    "LimitExceeded",
    "NotFound",
    "NotInCluster",
    "PathSieveError",
    "PermissionDenied",
    "ServerFault",
    "Unauthenticated",
    "Unavailable",
    "Unsupported",
    "WrongReplica",
]


class PathSieveError(Exception):
    """The root of all errors of the client. `facts` are for programs, `str()` for people."""

    def __init__(self, message: str, facts: Mapping[str, str] | None = None, reason: str = "") -> None:
        super().__init__(message, dict(facts or {}), reason)
        self.message = message
        self.facts: dict[str, str] = dict(facts or {})
        self.reason = reason

    def __str__(self) -> str:
        return self.message


def _text(fact: str, doc: str) -> Any:
    return property(lambda error: error.facts.get(fact, ""), doc=doc)


def _number(fact: str, doc: str) -> Any:
    return property(lambda error: _read_number(error.facts.get(fact)), doc=doc)


def _read_number(text: str | None) -> float | int | None:
    """The number that a fact is; None where it was not told, or is none."""
    try:
        number = float(text or "")
    except ValueError:
        return None
    return int(number) if number.is_integer() else number


class InvalidRequest(PathSieveError):
    """A field is not what was expected."""

    field: str = _text("field", "Which field of the request.")


class InvalidExpression(InvalidRequest):
    """A filter is not in its language; the message points at the place."""

    column: int | None = _number("column", "Where, counted from 1.")
    expected: str = _text("expected", "What should have been there.")


class DocumentRefused(InvalidRequest):
    """A document cannot be read or matched."""

    line: int | None = _number("line", "Where, counted from 1.")
    column: int | None = _number("column", "Where, counted from 1.")


class NotFound(PathSieveError):
    """There is no such subscription, or it belongs to somebody else."""

    name: str = _text("name", "What was asked for.")


class AlreadyExists(PathSieveError):
    """The name is taken."""

    name: str = _text("name", "The name.")


class EtagMismatch(PathSieveError):
    """Somebody else has changed it since it was read: read it again and repeat the change."""

    name: str = _text("name", "What was to be changed.")
    etag: str = _text("etag", "The current one.")


class LimitExceeded(PathSieveError):
    """More than a limit of the server allows."""

    limit: str = _text("limit", "The name of the limit.")
    allowed: float | None = _number("allowed", "How much it allows.")
    found: float | None = _number("found", "How much was asked for.")
    retry_after: float | None = _number("retry_after", "When to try again, in seconds, if it is a rate.")


class AlreadyAttached(PathSieveError):
    """Another stream has the subscription."""

    name: str = _text("name", "The subscription.")


class Unauthenticated(PathSieveError):
    """No token, or one that is not known or has expired."""


class PermissionDenied(PathSieveError):
    """The token lacks a role."""


class Unavailable(PathSieveError):
    """Nobody answers, or not now."""

    retry_after: float | None = _number("retry_after", "When to try again, in seconds, if the server said so.")


class WrongReplica(Unavailable):
    """Another replica delivers the subscription. Calls follow by themselves, so one sees this when they got nowhere."""

    address: str = _text("address", "Where it is delivered, as the last replica said; empty: nowhere just now.")


class NotInCluster(PathSieveError):
    """The server stands alone, and has no cluster to tell of."""


class DeadlineExceeded(PathSieveError):
    """No answer in time. The request may have been carried out."""


class Detached(PathSieveError):
    """The server ended a stream for good; `reason` is REPLACED, DELETED, TOO_SLOW or UNAUTHENTICATED."""


class Cancelled(PathSieveError):
    """The call was given up before it was answered."""


class Unsupported(PathSieveError):
    """The server does not know the call: it is older or newer than this client."""


class ServerFault(PathSieveError):
    """A fault of the server: its log says more."""
