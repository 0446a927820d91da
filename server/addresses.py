"""Hosts and ports as text, and whether only this machine can reach them."""

import ipaddress

__all__ = ["address_of", "is_loopback"]


def address_of(host: str, port: int) -> str:
    """Host and port in one.

    >>> address_of("::1", 7443), address_of("localhost", 0)
    ('[::1]:7443', 'localhost:0')
    """
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach it. A name other than localhost might be anywhere.

    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, True, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
