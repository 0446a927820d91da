"""Who is calling, and what they may do.

    authorization: Bearer …  ─▶  Guard  ─▶  Principal(tenant, roles)
                                   │
                                   ├── OpenGuard    no tokens: everybody is an administrator of the tenant "default"
                                   └── TokenGuard   the tokens of a file, in `server.token_file`

A principal that has been let in may be asked for again: a stream lives longer than a token may.
"""

from dataclasses import dataclass, field
from typing import Protocol

from server.errors import PermissionDenied

__all__ = ["ADMIN", "DEFAULT_TENANT", "PUBLISH", "SUBSCRIBE", "Guard", "OpenGuard", "Principal"]

PUBLISH, SUBSCRIBE, ADMIN = "publish", "subscribe", "admin"
DEFAULT_TENANT = "default"


@dataclass(frozen=True, slots=True)
class Principal:
    """Somebody who may act for `tenant`. `digest` says which token it was, without saying the token."""

    tenant: str = DEFAULT_TENANT
    roles: frozenset[str] = frozenset((ADMIN,))
    digest: bytes = field(default=b"", repr=False)

    def must_have(self, role: str) -> None:
        """`PermissionDenied` unless the principal has the role, or is an administrator."""
        if role not in self.roles and ADMIN not in self.roles:
            had = ", ".join(sorted(self.roles))
            raise PermissionDenied(f"this needs the role {role}, and the token has only {had}", role=role)


class Guard(Protocol):
    """Says who is calling."""

    def principal(self, authorization: str | None) -> Principal:
        """Whose header that is; `Unauthenticated` if it is nobody's."""

    def is_still_valid(self, principal: Principal) -> bool:
        """Whether a principal of an earlier call would be let in again."""

    def reload(self) -> bool:
        """Read again what may have changed; true if it has."""


class OpenGuard:
    """Lets everybody do everything."""

    _everybody = Principal()

    def principal(self, authorization: str | None) -> Principal:
        return self._everybody

    def is_still_valid(self, principal: Principal) -> bool:
        return True

    def reload(self) -> bool:
        return False
