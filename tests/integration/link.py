"""A way between processes that can be broken: a TCP proxy in front of one port.

    caller ──▶ link ──▶ target        FLOWING   bytes go both ways
                                      CUT       connections are reset, new ones too
                                      STALLED   bytes of one direction, or of both, wait until it heals: a black hole

Who has connected can be told apart, so that a link may be broken for some and flow for others.
"""

import asyncio
import contextlib
import socket
import struct
from collections.abc import Callable
from dataclasses import dataclass, field

__all__ = ["ANYBODY", "Link"]

ANYBODY = ""
RESET = struct.pack("ii", 1, 0)
CHUNK = 1 << 16


@dataclass(frozen=True)
class Break:
    """What is broken: the whole, or what goes there, or what comes back."""

    is_cut: bool = False
    there: bool = True
    back: bool = True


@dataclass(eq=False)
class _Connection:
    """One caller's, and the one to the target that belongs to it."""

    who: str
    writers: list[asyncio.StreamWriter]
    there: asyncio.Event = field(default_factory=asyncio.Event)
    back: asyncio.Event = field(default_factory=asyncio.Event)

    def obey(self, broken: Break | None) -> None:
        for flows, is_broken in (
            (self.there, broken is not None and broken.there),
            (self.back, broken is not None and broken.back),
        ):
            if is_broken:
                flows.clear()
            else:
                flows.set()

    def reset(self) -> None:
        for writer in self.writers:
            _reset(writer)


class Link:
    """Listens on a port of its own. `who` names the caller by the port that it calls from."""

    def __init__(self, name: str, target: int, who: Callable[[int], str] = lambda port: ANYBODY) -> None:
        self.name = name
        self.target = target
        self._who = who
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self.address = f"127.0.0.1:{self.port}"
        self._breaks: dict[str, Break] = {}
        self._connections: set[_Connection] = set()
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._connected, sock=self._listener)

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for connection in list(self._connections):
            connection.reset()

    def cut(self, who: str = ANYBODY) -> None:
        """Reset what is connected, and what connects, until it heals."""
        self._break(who, Break(is_cut=True))
        for connection in list(self._connections):
            if who in (ANYBODY, connection.who):
                connection.reset()

    def stall(self, who: str = ANYBODY, there: bool = True, back: bool = True) -> None:
        """Let nothing through in these directions until it heals; nobody is told."""
        self._break(who, Break(there=there, back=back))

    def heal(self) -> None:
        """Everything flows again."""
        self._breaks.clear()
        for connection in self._connections:
            connection.obey(None)

    def _break(self, who: str, broken: Break) -> None:
        self._breaks[who] = broken
        for connection in self._connections:
            connection.obey(self._broken(connection.who))

    def _broken(self, who: str) -> Break | None:
        return self._breaks.get(who, self._breaks.get(ANYBODY))

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        who = self._who(writer.get_extra_info("peername")[1])
        broken = self._broken(who)
        if broken is not None and broken.is_cut:
            _reset(writer)
            return
        try:
            answers, target = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:  # nobody listens there, and whoever calls hears of it
            _reset(writer)
            return
        connection = _Connection(who, [writer, target])
        connection.obey(self._broken(who))
        self._connections.add(connection)
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(_pump(reader, target, connection.there))
                tasks.create_task(_pump(answers, writer, connection.back))
        finally:
            self._connections.discard(connection)
            connection.reset()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, flows: asyncio.Event) -> None:
    """Pass on what comes; its end as well, and neither while the way is stalled."""
    data = b"."
    while data:
        data = await _read(reader)
        await flows.wait()
        with contextlib.suppress(OSError):  # the other half hears of it as well
            if data:
                writer.write(data)
                await writer.drain()
            else:
                writer.close()


async def _read(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.read(CHUNK)
    except OSError:
        return b""


def _reset(writer: asyncio.StreamWriter) -> None:
    """Hang up at once, as a firewall does."""
    with contextlib.suppress(OSError):  # it has been hung up already
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    writer.transport.abort()
