"""A lookout looks when it is told to, by itself after a while, and again after whatever went wrong."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

import pytest

from server.errors import StoreUnavailable
from server.lookout import Lookout

LOGGER = logging.getLogger("pathsieve.test")
NEVER = 3600.0

Looked = Callable[[int], Awaitable[None]]


@asynccontextmanager
async def looking(interval: float, outcomes: Sequence[Exception | None] = ()) -> AsyncIterator[tuple[Lookout, Looked]]:
    """A lookout that runs, and what waits until it has looked so many times."""
    looks = asyncio.Semaphore(0)
    remaining = iter(outcomes)

    async def look() -> None:
        looks.release()
        if outcome := next(remaining, None):
            raise outcome

    async def looked(n_times: int) -> None:
        async with asyncio.timeout(30):
            for _ in range(n_times):
                await looks.acquire()

    lookout = Lookout(look, interval, "the test", LOGGER)
    running = asyncio.create_task(lookout.run())
    yield lookout, looked
    assert not running.done()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_it_looks_when_it_is_woken() -> None:
    async with looking(NEVER) as (lookout, looked):
        for _ in range(3):
            lookout.wake()
            await looked(1)


async def test_it_looks_by_itself() -> None:
    async with looking(0.01) as (_, looked):
        await looked(3)


@pytest.mark.parametrize(
    "outcome, told",
    [
        (StoreUnavailable("no connection"), "the test cannot be followed for now"),
        (ZeroDivisionError(), "following the test: this should not have happened"),
    ],
    ids=["the_store_is_away", "a_fault"],
)
async def test_what_goes_wrong_is_told_and_tried_again(
    outcome: Exception, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with looking(0.01, [outcome]) as (_, looked):
        await looked(2)
    assert [told in record.getMessage() for record in caplog.records] == [True]
