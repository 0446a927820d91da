"""The four pages, over a real socket."""

from collections.abc import AsyncIterator

import httpx
import pytest

from server.errors import CannotStart
from server.http_port import HttpPort, application
from server.metrics import Metrics
from server.readiness import Phase, Progress, Readiness


@pytest.fixture
def readiness() -> Readiness:
    return Readiness()


@pytest.fixture
async def http(readiness: Readiness) -> AsyncIterator[httpx.AsyncClient]:
    port = HttpPort(application(readiness, Metrics("1.0"), lambda: {"version": "1.0"}), "127.0.0.1", 0)
    await port.start()
    async with httpx.AsyncClient(base_url=f"http://{port.address}", trust_env=False) as client:
        yield client
    await port.stop()


async def test_it_lives(http: httpx.AsyncClient) -> None:
    assert (await http.get("/healthz")).status_code == 200


async def test_it_tells_how_far_it_is(http: httpx.AsyncClient, readiness: Readiness) -> None:
    readiness.advance(Progress("subscriptions", 5, 10))
    answer = await http.get("/readyz")
    assert answer.status_code == 503
    assert answer.json() == {"phase": "loading", "what": "subscriptions", "done": 5, "total": 10}


PHASES = {Phase.LOADING: 503, Phase.READY: 200, Phase.DRAINING: 503}


@pytest.mark.parametrize("phase", PHASES, ids=lambda phase: phase.value)
async def test_it_is_ready_only_when_it_is(http: httpx.AsyncClient, readiness: Readiness, phase: Phase) -> None:
    readiness.enter(phase)
    assert (await http.get("/readyz")).status_code == PHASES[phase]


async def test_a_replica_without_its_share_is_not_ready(http: httpx.AsyncClient, readiness: Readiness) -> None:
    readiness.enter(Phase.READY)
    readiness.takes_part = lambda: False
    answer = await http.get("/readyz")
    assert (answer.status_code, answer.json()["phase"]) == (503, "rejoining")


async def test_metrics_are_for_prometheus(http: httpx.AsyncClient) -> None:
    answer = await http.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=")
    assert 'pathsieve_build_info{version="1.0"} 1.0' in answer.text


async def test_variables_are_json(http: httpx.AsyncClient) -> None:
    assert (await http.get("/varz")).json() == {"version": "1.0"}


async def test_a_port_that_is_taken_is_told_in_words(http: httpx.AsyncClient, readiness: Readiness) -> None:
    pages = application(readiness, Metrics("1.0"), dict)
    with pytest.raises(CannotStart, match="for HTTP: Address already in use"):
        HttpPort(pages, "127.0.0.1", http.base_url.port or 0)
