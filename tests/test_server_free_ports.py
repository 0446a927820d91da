"""Free ports: all different, and nobody's."""

import socket

import pytest

from server import free_ports as module
from server.free_ports import free_port, free_ports


def test_they_are_different_and_can_be_had() -> None:
    ports = free_ports(30)
    assert len(set(ports)) == 30
    for port in ports:
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", port))


def test_one_that_somebody_has_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    taken, free = free_ports(2)
    monkeypatch.setattr(module, "PORTS", [taken, free])
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", taken))
        listener.listen()
        assert free_port() == free
