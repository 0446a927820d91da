"""What can go wrong in the server. `server.rpc.statuses` says which gRPC status each class becomes.

    ServerError
    ├── InvalidRequest       a field is not what was expected
    ├── NotFound             no such subscription, of this tenant
    ├── AlreadyExists        the name is taken
    ├── EtagMismatch         somebody else has changed it since
    ├── LimitExceeded        a named limit: what it is, what was asked
    ├── AlreadyAttached      another stream has the subscription
    ├── WrongReplica         another replica delivers the subscription, or none just now
    ├── NotInCluster         the server stands alone
    ├── PermissionDenied     the token lacks a role
    ├── Unauthenticated      no token, or one that is not known or has expired
    ├── StoreUnavailable     the store cannot take it now; try again
    ├── Fenced               another replica has taken over what this one was about to write; try again
    ├── DeliveredElsewhere   a stream is sent to the replicas that deliver what it asks for
    ├── NoOwner              some tokens of the cluster have no owner just now; try again
    ├── StoreError           the store cannot be used at all: wrong file, newer version, in use
    ├── Loading              the server has not read all subscriptions yet; try again
    ├── Draining             the server is about to stop; try again elsewhere
    └── CannotStart          a port, a certificate, a file of tokens is not to be had

The errors of the engines (`XPathSyntaxError`, `BooleanSyntaxError`, `DocumentError`, `EventError`, ...) pass through
as they are.
"""

from collections.abc import Mapping, Sequence

__all__ = [
    "AlreadyAttached",
    "AlreadyExists",
    "CannotStart",
    "DeliveredElsewhere",
    "Draining",
    "EtagMismatch",
    "Fenced",
    "InvalidRequest",
    "LimitExceeded",
    "Loading",
    "NoOwner",
    "NotFound",
    "NotInCluster",
    "PermissionDenied",
    "ServerError",
    "StoreError",
    "StoreUnavailable",
    "Unauthenticated",
    "WrongReplica",
]


class ServerError(Exception):
    """The root of all errors that the server raises of its own accord. `facts` are for programs, `str()` for people."""

    def __init__(self, message: str, **facts: str | int | float) -> None:
        super().__init__(message)
        self.facts = facts


class InvalidRequest(ServerError):
    """`field` is not what was expected."""

    def __init__(self, field: str, expected: str, **facts: str | int | float) -> None:
        super().__init__(f"{field}: {expected}", field=field, **facts)
        self.field = field


class NotFound(ServerError):
    """There is no such thing, or it belongs to somebody else: the two look the same from outside."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no {name}; `pathsieve sub list` shows what there is", name=name)
        self.name = name


class AlreadyExists(ServerError):
    """The name is taken."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} exists already; choose another id, or update it", name=name)
        self.name = name


class EtagMismatch(ServerError):
    """Somebody else has changed it since it was read."""

    def __init__(self, name: str, expected: str, found: str) -> None:
        super().__init__(
            f"{name} has changed: its etag is {found}, not {expected}; read it again and repeat the change",
            name=name,
            etag=found,
        )
        self.name = name


class LimitExceeded(ServerError):
    """More than the limit called `limit` allows."""

    def __init__(
        self, limit: str, allowed: int | float, found: int | float, hint: str = "", retry_after: float | None = None
    ) -> None:
        advice = f"; {hint}" if hint else ""
        super().__init__(
            f"{found:,} is more than the limit {limit} of {allowed:,}{advice}",
            limit=limit,
            allowed=allowed,
            found=found,
            **({} if retry_after is None else {"retry_after": retry_after}),
        )
        self.limit = limit
        self.retry_after = retry_after


class AlreadyAttached(ServerError):
    """Another stream has the subscription, exclusively or with another list of subscriptions."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"{name} is attached already: {reason}", name=name)
        self.name = name


class WrongReplica(ServerError):
    """Another replica delivers the subscription, at `address`; empty: none does just now, try again."""

    def __init__(self, name: str, address: str = "", retry_after: float = 0.5) -> None:
        if address:
            super().__init__(f"{name} is delivered by another replica: ask {address}", name=name, address=address)
        else:
            message = f"{name} is delivered by no replica just now; try again in a moment"
            super().__init__(message, name=name, address="", retry_after=retry_after)
        self.address = address
        self.retry_after = None if address else retry_after


class NotInCluster(ServerError):
    """The server stands alone, so there is no cluster to look at."""

    def __init__(self) -> None:
        super().__init__("this server stands alone; the setting cluster.zookeeper makes it a replica of a cluster")


class PermissionDenied(ServerError):
    """The token lacks a role."""


class Unauthenticated(ServerError):
    """No token, or one that is not known or has expired."""


class StoreUnavailable(ServerError):
    """The store cannot take it now; the call may be repeated after `retry_after` seconds.

    Nothing was written, unless `outcome_unknown`: then the time was up while the store had it, and it may land yet.
    """

    def __init__(self, reason: str, retry_after: float = 1.0, outcome_unknown: bool = False) -> None:
        outcome = "; it is not known whether this was written" if outcome_unknown else ""
        super().__init__(f"the store is not available: {reason}{outcome}; try again", retry_after=retry_after)
        self.retry_after = retry_after
        self.outcome_unknown = outcome_unknown


class Fenced(ServerError):
    """Another replica has taken over these tokens: nothing was written, and nothing may be."""

    def __init__(self, kind: str, tokens: Sequence[int]) -> None:
        count = f"{len(tokens)} {kind} token{'s' if len(tokens) > 1 else ''}"
        super().__init__(f"another replica has taken over {count}; try again", retry_after=0.5)
        self.kind = kind
        self.tokens = tokens
        self.retry_after = 0.5


class NoOwner(ServerError):
    """For some tokens nobody has answered in time, so the document has not met all subscriptions; nothing was kept."""

    def __init__(self, n_tokens: int, seconds: float) -> None:
        reason = f"no replica has answered for {n_tokens} tokens within {seconds:.1f} s"
        super().__init__(f"{reason}; try again", tokens=n_tokens, retry_after=1.0)
        self.retry_after = 1.0


class DeliveredElsewhere(ServerError):
    """Other replicas deliver some of what a stream asked for; `names` by their addresses. No error for its client."""

    def __init__(self, names: Mapping[str, Sequence[str]]) -> None:
        super().__init__("other replicas deliver some of it")
        self.names = names


class StoreError(ServerError):
    """The store at `place` cannot be used; `reason` says why, and what to do."""

    def __init__(self, place: str, reason: str) -> None:
        super().__init__(f"the store {place} cannot be used: {reason}", place=place, reason=reason)
        self.place = place
        self.reason = reason


class Loading(ServerError):
    """The server has not read all of its subscriptions yet; `progress` says how far it is."""

    def __init__(self, progress: str, retry_after: float = 1.0) -> None:
        super().__init__(f"the server is starting: {progress}; try again in a moment", retry_after=retry_after)
        self.retry_after = retry_after


class Draining(ServerError):
    """The server is about to stop."""

    def __init__(self) -> None:
        super().__init__("the server is stopping; try again in a moment, or elsewhere", retry_after=1.0)
        self.retry_after = 1.0


class CannotStart(ServerError):
    """Something that the server needs to start is not to be had; no client ever sees this."""
