"""Which addresses the server may call: none of its own network, unless it was told so.

A webhook's URL is written by a subscriber. Without this guard it could name what only the server can reach: a database
on loopback, the metadata service of a cloud. The name is resolved here and the request goes to the address that was
looked at, so that a name that changes its answer between two looks gains nothing.
"""

import asyncio
import ipaddress
import socket

from server.deliveries.transports import PushError

__all__ = ["is_public", "resolve"]

# Addresses that carry an IPv4 address inside, which a gateway may send into a private network: NAT64, 6to4, Teredo.
WRAPPERS = tuple(map(ipaddress.IPv6Network, ("64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "2001::/32")))


def is_public(address: str) -> bool:
    """Is this an address of the public Internet?

    >>> [is_public(address) for address in ("93.184.216.34", "10.0.0.1", "127.0.0.1", "169.254.169.254", "::1")]
    [True, False, False, False, False]
    """
    parsed = ipaddress.ip_address(address.partition("%")[0])
    is_wrapped = isinstance(parsed, ipaddress.IPv6Address) and any(parsed in wrapper for wrapper in WRAPPERS)
    return parsed.is_global and not parsed.is_multicast and not is_wrapped


async def resolve(host: str, port: int, allow_private: bool) -> str:
    """An address of `host`; `PushError` if it has none that may be called."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise PushError(f"the name {host} cannot be resolved: {error.strerror or error}") from error
    addresses = [str(entry[4][0]) for entry in found]
    allowed = [address for address in addresses if allow_private or is_public(address)]
    if not allowed:
        raise PushError(
            f"{host} is at {addresses[0]}, which is not public; an operator can allow it with webhook_allow_private"
        )
    return allowed[0]
