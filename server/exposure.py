"""Who can reach the server, and who is let in.

only this machine                        nobody has to be asked
beyond it, tokens or certificates        they are asked
beyond it, neither                       refused, unless it is said in words: security.insecure_public
"""

import logging

from server.addresses import is_loopback
from server.errors import CannotStart
from server.security import Guard, OpenGuard
from server.settings import Settings
from server.token_file import TokenGuard

__all__ = ["check_exposure", "guard_of"]

LOG = logging.getLogger("pathsieve.security")


def guard_of(settings: Settings) -> Guard:
    """The tokens of the file, if there is one; else everybody is let in."""
    tokens = settings.security.tokens
    return OpenGuard() if tokens is None else TokenGuard(tokens)


def check_exposure(settings: Settings) -> None:
    """`CannotStart` if whoever can reach the port from elsewhere could do everything."""
    security, host = settings.security, settings.listen.host
    if is_loopback(host):
        return
    if security.tokens is None and security.client_ca is None and not security.insecure_public:
        raise CannotStart(
            f"listen.host is {host}, and anybody who can reach it could do everything: set security.tokens or "
            "security.client_ca, or say security.insecure_public = true if that is what you want"
        )
    if settings.cluster.zookeeper and not settings.cluster.secret.get_secret_value():
        raise CannotStart(
            f"listen.host is {host}, and anybody who can reach it could pass for another replica: set cluster.secret, "
            "the same for all replicas"
        )
    if security.certificate is None:
        LOG.warning("tokens and documents travel to %s unencrypted: security.certificate is not set", host)
