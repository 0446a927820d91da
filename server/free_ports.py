"""Ports for servers that are about to start, and that nobody listens on just now.

They are below those that Linux gives to outgoing connections (from 32768 on): one of these would take the port before
the server does.
"""

import contextlib
import random
import socket

__all__ = ["free_port", "free_ports"]

HOST = "127.0.0.1"
PORTS = range(20_000, 32_000)


def free_ports(n: int) -> list[int]:
    """So many, all different."""
    ports: list[int] = []
    with contextlib.ExitStack() as held:
        for port in random.SystemRandom().sample(PORTS, len(PORTS)):
            if len(ports) == n:
                break
            listener = held.enter_context(socket.socket())
            with contextlib.suppress(OSError):  # somebody has it
                listener.bind((HOST, port))
                ports.append(port)
    return ports


def free_port() -> int:
    return free_ports(1)[0]
