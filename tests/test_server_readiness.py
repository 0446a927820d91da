"""Phases of the server's life, and what is refused in each."""

import pytest

from server.errors import Draining, Loading
from server.readiness import Phase, Progress, Readiness

REFUSED = {Phase.LOADING: Loading, Phase.DRAINING: Draining, Phase.STOPPED: Draining}


@pytest.mark.parametrize("phase", REFUSED, ids=lambda phase: phase.value)
async def test_calls_are_refused_unless_it_is_ready(phase: Phase) -> None:
    readiness = Readiness()
    readiness.enter(phase)
    with pytest.raises(REFUSED[phase]):
        readiness.must_serve()


async def test_calls_are_taken_when_it_is_ready() -> None:
    readiness = Readiness()
    readiness.enter(Phase.READY)
    readiness.must_serve()
    assert readiness.ready.is_set()
    assert not readiness.draining.is_set()


async def test_one_that_has_lost_its_share_is_not_ready_and_serves_all_the_same() -> None:
    readiness = Readiness()
    readiness.enter(Phase.READY)
    assert readiness.is_ready
    readiness.takes_part = lambda: False
    assert not readiness.is_ready
    assert readiness.stage == "rejoining"
    readiness.must_serve()


async def test_who_comes_too_early_is_told_how_far_it_is() -> None:
    readiness = Readiness()
    readiness.advance(Progress("subscriptions", 500, 2000))
    with pytest.raises(Loading, match=r"starting: 500 of 2,000 subscriptions \(25%\); try again"):
        readiness.must_serve()


async def test_progress_is_told_as_it_is_made() -> None:
    readiness = Readiness()
    told: list[Progress] = []
    readiness.on_progress(told.append)
    readiness.advance(Progress("subscriptions", 1, 2))
    assert told == [Progress("subscriptions", 1, 2)]


def test_a_total_that_nobody_knows_is_not_told() -> None:
    assert str(Progress("subscriptions", 7)) == "7 subscriptions"
