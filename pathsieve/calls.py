"""One call: sent, answered or tried again, and its failure turned into an error of ours.

    call ──▶ answered ──▶ the answer
      ▲  ├─▶ another replica delivers it ──▶ the same call there, a few times
      │  └─▶ failed ────▶ it is no passing one, or patience is at its end ──▶ raised
      └── pause ◀── next address ◀── a passing failure, and to repeat the call does no harm

A call does no harm when repeated if the server recognises it, or if the server itself said that it did nothing.
Where a subscription was found is remembered, so that the next call about it goes there at once.
Pauses double, and are of random length, so that many clients do not come back all at once.
"""

import asyncio
import random
import time
from collections.abc import Callable
from typing import TypeVar

import grpc

from pathsieve.endpoints import Endpoint, Endpoints
from pathsieve.errors import PathSieveError, Unavailable, WrongReplica
from pathsieve.statuses import error_of_call, is_passing, is_unexplained

__all__ = ["Caller", "Pauses"]

Request = TypeVar("Request")
Response = TypeVar("Response")

SHORTEST, LONGEST = 0.1, 5.0
"""Seconds of the first pause, and of the last ones."""

LEAST = 2.0
"""Seconds to go on in any case with what has no explanation, for the sake of one, and with what is changing hands."""

HOPS = 4
"""Replicas that are asked one after the other, each named by the last, before a pause. At rest two are enough."""

MOST_HOMES = 10_000


class Pauses:
    """The pauses between attempts, for at most `patience` seconds since the first failure; None: for ever."""

    def __init__(self, patience: float | None) -> None:
        self.patience = patience
        self.reset()

    def reset(self) -> None:
        """It worked: start again with the shortest pause."""
        self._next = SHORTEST
        self._since: float | None = None

    async def pause(self, error: PathSieveError) -> None:
        """Wait before the next attempt; `error`, the last one's, is raised when patience is at its end."""
        now = time.monotonic()
        self._since = self._since or now
        seconds = max(self._next * random.uniform(0.5, 1.0), getattr(error, "retry_after", None) or 0.0)
        if self.patience is not None and now + seconds > self._since + max(self.patience, _least(error)):
            raise error from None
        self._next = min(self._next * 2, LONGEST)
        await asyncio.sleep(seconds)


def _least(error: PathSieveError) -> float:
    return LEAST if is_unexplained(error) or isinstance(error, WrongReplica) else 0.0


class Caller:
    """Makes calls to the current server. `timeout` bounds each attempt, `patience` how long one goes on trying."""

    def __init__(self, endpoints: Endpoints, timeout: float, patience: float) -> None:
        self.endpoints = endpoints
        self.timeout = timeout
        self.patience = patience
        self._homes: dict[str, str] = {}

    async def unary(
        self,
        method: Callable[[Endpoint], grpc.aio.UnaryUnaryMultiCallable[Request, Response]],
        request: Request,
        *,
        repeatable: bool = True,
        longer: float = 0.0,
        about: str = "",
    ) -> Response:
        """The answer to a request; `longer` is added to the time it may take. `about` names a subscription whose
        replica is to answer."""
        if not repeatable:
            await self._wait_until_ready()
        pauses = Pauses(self.patience)
        while True:
            try:
                return await self._follow(method, request, self.timeout + longer, about)
            except PathSieveError as failed:
                error = failed
            if not is_passing(error) or not (repeatable or error.reason):
                raise error
            self.endpoints.move_on()
            await pauses.pause(error)

    async def at(
        self,
        address: str,
        method: Callable[[Endpoint], grpc.aio.UnaryUnaryMultiCallable[Request, Response]],
        request: Request,
    ) -> Response:
        """The answer of one replica, which another one has named; asked once."""
        return await _answer(method, request, self.timeout, self.endpoints.at(address))

    async def _follow(
        self,
        method: Callable[[Endpoint], grpc.aio.UnaryUnaryMultiCallable[Request, Response]],
        request: Request,
        timeout: float,
        about: str,
    ) -> Response:
        """The answer of the current server, or of the replica that it names, or of the one that that one names."""
        address = self._homes.pop(about, "")
        for hop in range(1, HOPS + 1):
            endpoint = self.endpoints.at(address) if address else self.endpoints.current
            try:
                answer = await _answer(method, request, timeout, endpoint)
            except WrongReplica as wrong:
                if not wrong.address or hop == HOPS:
                    raise
                address = wrong.address
            else:
                break
        self._remember(about, address)
        return answer

    def _remember(self, about: str, address: str) -> None:
        if about and address:
            if len(self._homes) >= MOST_HOMES:
                self._homes.clear()
            self._homes[about] = address

    async def _wait_until_ready(self) -> None:
        """What must not be sent twice is not sent before somebody listens, unless patience is at its end."""
        pauses = Pauses(self.patience)
        while self.patience:
            endpoint = self.endpoints.current
            try:
                await asyncio.wait_for(endpoint.channel.channel_ready(), min(1.0, self.patience))
                break
            except TimeoutError:
                self.endpoints.move_on()
                await pauses.pause(Unavailable(f"no answer from {endpoint.address}", {"address": endpoint.address}))


async def _answer(
    method: Callable[[Endpoint], grpc.aio.UnaryUnaryMultiCallable[Request, Response]],
    request: Request,
    timeout: float,
    endpoint: Endpoint,
) -> Response:
    try:
        call = method(endpoint)(request, timeout=timeout, metadata=endpoint.metadata)
        return await call
    except grpc.aio.AioRpcError as failed:
        raise error_of_call(failed, endpoint.address) from None
