"""The tokens that are let in, from a file that is read again when it changes.

    [[tokens]]
    sha256 = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
    tenant = "acme"
    roles = ["publish", "subscribe"]
    expires = 2027-01-01T00:00:00Z

TOML, or JSON if the file is called so. `token` may stand in place of `sha256`. A file that has become unreadable is
reported, and the tokens of before stay in force. A token is looked up by its hash, so the time that takes tells nothing
about it, and it is in no log, repr or message.
"""

import hashlib
import hmac
import json
import logging
import time
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, SecretStr, ValidationError, model_validator

from server.errors import Unauthenticated
from server.security import DEFAULT_TENANT, Principal

__all__ = ["TokenFileError", "TokenGuard"]

SCHEME = "bearer "

LOG = logging.getLogger("pathsieve.security")


class TokenFileError(Exception):
    """The token file was refused: `path`, and `reason`, which holds no token."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"token file {path}: {reason}")
        self.path = path
        self.reason = reason


class Entry(BaseModel):
    """A table of the file."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    token: SecretStr | None = None
    sha256: Annotated[str | None, Field(pattern="^[0-9a-fA-F]{64}$")] = None
    tenant: Annotated[str, Field(pattern="^[A-Za-z0-9._~-]{1,64}$")] = DEFAULT_TENANT
    roles: Annotated[frozenset[Literal["publish", "subscribe", "admin"]], Field(min_length=1)]
    expires: AwareDatetime | None = None

    @model_validator(mode="after")
    def _has_one_of_the_two(self) -> "Entry":
        if (self.token is None) == (self.sha256 is None):
            raise ValueError("expected either token or sha256")
        return self

    @property
    def digest(self) -> bytes:
        return digest_of(self.token.get_secret_value()) if self.token else bytes.fromhex(self.sha256 or "")


@dataclass(frozen=True, slots=True)
class Known:
    """Somebody who is let in until `expires`."""

    principal: Principal
    expires: float


class TokenGuard:
    """Lets in who has a token of the file."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        self._path = path
        self._clock = clock
        self._version = self._current_version()
        self._known = read(path)

    def principal(self, authorization: str | None) -> Principal:
        known = self._find(digest_of(token_in(authorization)))
        if known is None:
            raise Unauthenticated("the token is not known; ask who runs the server for one", why="unknown")
        if known.expires <= self._clock():
            expired = datetime.fromtimestamp(known.expires, UTC).isoformat(timespec="seconds")
            raise Unauthenticated(f"the token has expired at {expired}; ask for a new one", why="expired")
        return known.principal

    def is_still_valid(self, principal: Principal) -> bool:
        known = self._find(principal.digest)
        return known is not None and known.principal == principal and known.expires > self._clock()

    def reload(self) -> bool:
        version = self._current_version()
        if version == self._version:
            return False
        self._version = version
        try:
            self._known = read(self._path)
        except TokenFileError as error:
            LOG.error("%s; the tokens of before stay in force", error)
            return False
        LOG.info("token file %s was read again: %s tokens", self._path, len(self._known))
        return True

    def _find(self, digest: bytes) -> Known | None:
        known = self._known.get(digest)
        return known if known and hmac.compare_digest(known.principal.digest, digest) else None

    def _current_version(self) -> tuple[int, int, int]:
        try:
            status = self._path.stat()
        except OSError:
            return (0, 0, 0)
        return (status.st_mtime_ns, status.st_ino, status.st_size)


def digest_of(token: str) -> bytes:
    """The hash by which a token is known."""
    return hashlib.sha256(token.encode()).digest()


def token_in(authorization: str | None) -> str:
    """The token of an authorization header."""
    if authorization is None:
        raise Unauthenticated("expected metadata `authorization: Bearer …`, found none", why="missing")
    if not authorization.lower().startswith(SCHEME):
        raise Unauthenticated("expected metadata `authorization: Bearer …`, found another scheme", why="scheme")
    return authorization[len(SCHEME) :].strip()


def read(path: Path) -> dict[bytes, Known]:
    """All tokens of a file, by their hashes."""
    try:
        table = _parsed(path)
    except OSError as error:
        raise TokenFileError(path, f"cannot be read: {error.strerror}") from None
    except ValueError:
        raise TokenFileError(path, "is not TOML, or not JSON if it is called .json") from None
    entries = table.get("tokens") if isinstance(table, dict) else None
    if not isinstance(entries, list):
        raise TokenFileError(path, "expected tables [[tokens]]")
    known = [_known(path, place, entry) for place, entry in enumerate(entries, 1)]
    return {item.principal.digest: item for item in known}


def _parsed(path: Path) -> Any:
    text = path.read_text()
    return json.loads(text) if path.suffix == ".json" else tomllib.loads(text)


def _known(path: Path, place: int, table: object) -> Known:
    try:
        entry = Entry.model_validate(table)
    except ValidationError as error:
        first = error.errors(include_input=False, include_context=False, include_url=False)[0]
        where = ", ".join([f"entry {place}", *(str(part) for part in first["loc"])])
        raise TokenFileError(path, f"{where}: {first['msg']}") from None
    expires = entry.expires.timestamp() if entry.expires else float("inf")
    return Known(Principal(entry.tenant, frozenset(entry.roles), entry.digest), expires)
