"""top and doctor: what a server's figures say, and what is wrong."""

import json
import threading
from collections.abc import Iterator
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from typer.testing import CliRunner, Result

from pathsieve.cli import app
from pathsieve.cli.figures import Figures, rates_between, read_figures
from tests.faces import run
from tests.scripted_server import ScriptedServer

METRICS = """\
# TYPE pathsieve_documents counter
pathsieve_documents_total{{outcome="accepted"}} {n}
# TYPE pathsieve_matches counter
pathsieve_matches_total {n}0
# TYPE pathsieve_subscriptions gauge
pathsieve_subscriptions{{kind="xpath"}} 40000.0
pathsieve_subscriptions{{kind="boolean"}} 2.0
# TYPE pathsieve_ready gauge
pathsieve_ready 1.0
# TYPE pathsieve_backlog_messages gauge
pathsieve_backlog_messages 42.0
# TYPE pathsieve_match_seconds histogram
pathsieve_match_seconds_bucket{{le="0.001"}} {n}
pathsieve_match_seconds_bucket{{le="0.01"}} {n}
pathsieve_match_seconds_bucket{{le="+Inf"}} {n}
pathsieve_match_seconds_count {n}
pathsieve_match_seconds_sum {n}e-3
"""


class Pages(BaseHTTPRequestHandler):
    """/metrics, a hundred documents later each time, and /readyz."""

    n_documents = 0
    date = formatdate(usegmt=True)

    def do_GET(self) -> None:
        type(self).n_documents += 100
        text = '{"phase": "ready"}' if self.path == "/readyz" else METRICS.format(n=type(self).n_documents)
        self.send_response_only(200)
        self.send_header("Date", type(self).date or formatdate(usegmt=True))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, format: str, *arguments: Any) -> None:
        """Nothing on stderr."""


@pytest.fixture
def http(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(Pages, "date", "")
    with HTTPServer(("127.0.0.1", 0), Pages) as pages:
        thread = threading.Thread(target=pages.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{pages.server_port}"
        pages.shutdown()
        thread.join()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedServer]:
    server = HealthyServer()
    server.address = run(server.start())
    monkeypatch.setenv("PATHSIEVE_ADDRESS", server.address)
    yield server
    run(server.stop())


class HealthyServer(ScriptedServer):
    """It also says how it is."""

    def add_more(self) -> None:
        self.health = health.aio.HealthServicer()
        health_pb2_grpc.add_HealthServicer_to_server(self.health, self.server)


def call(*arguments: str, code: int = 0) -> Result:
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == code, result.output
    assert "\x1b" not in result.output
    return result


def figures(n_documents: int, moment: float) -> Figures:
    return Figures(moment, read_figures(METRICS.format(n=n_documents)).samples)


def test_rates_are_what_happened_between_two_moments() -> None:
    rates = rates_between(figures(100, 10.0), figures(300, 12.0))
    assert rates.documents == 100
    assert rates.matches == 1000
    assert rates.match_mean == pytest.approx(0.001)
    assert rates.match_p99 == 0.001


def test_nothing_happened_is_no_error() -> None:
    rates = rates_between(figures(100, 10.0), figures(100, 10.0))
    assert (rates.documents, rates.match_mean, rates.match_p99) == (0, 0, 0)


def test_a_server_that_started_again_has_no_negative_rates() -> None:
    assert rates_between(figures(500, 10.0), figures(100, 11.0)).documents == 0


def test_top_prints_look_after_look(http: str) -> None:
    printed = call("top", "--http", http, "--interval", "0.1", "--count", "2").stdout
    assert printed.count("ready") == 2
    assert "40,002" in printed
    assert "40,000 xpath, 2 boolean" in printed
    assert "42" in printed
    looks = [
        json.loads(line)
        for line in call("top", "--http", http, "--interval", "0.1", "--count", "2", "-o", "json").stdout.splitlines()
    ]
    assert [look["backlog"] for look in looks] == [42, 42]
    assert all(look["documents"] > 0 for look in looks)


def test_top_without_a_server_ends_with_3() -> None:
    assert "no answer from http://127.0.0.1:1" in call("top", "--http", "http://127.0.0.1:1", code=3).stderr


def findings(result: Result) -> dict[str, Any]:
    found = [json.loads(line) for line in result.stdout.splitlines()]
    return {one["check"]: one for one in found if "check" in one}


def test_the_doctor_finds_a_healthy_server(server: ScriptedServer, http: str) -> None:
    found = findings(call("doctor", "--http", http, "-o", "json"))
    names = ["server", "TLS", "health", "role subscribe", "role publish", "HTTP port", "clock", "disk"]
    assert {name: found[name]["state"] for name in names} == dict.fromkeys(names, "ok")
    printed = call("doctor", "--http", http).stdout
    assert "grpcio" in printed
    assert "it serves" in printed


def test_the_doctor_finds_nobody(http: str) -> None:
    result = call("doctor", "--address", "localhost:1", "--http", http, code=3)
    assert "no answer from localhost:1" in result.stdout
    assert "pathsieve serve" in result.stdout


def test_the_doctor_finds_a_server_that_is_stopping(server: ScriptedServer, http: str) -> None:
    run(server.health.set("", health_pb2.HealthCheckResponse.NOT_SERVING))
    found = findings(call("doctor", "--http", http, "-o", "json", code=1))
    assert found["health"]["state"] == "broken"
    assert "NOT_SERVING" in found["health"]["found"]


def test_the_doctor_finds_a_token_that_is_not_known(server: ScriptedServer, http: str) -> None:
    server.token = "secret"
    found = findings(call("doctor", "--http", http, "-o", "json", code=1))
    assert found["role publish"]["state"] == "broken"
    assert "PATHSIEVE_TOKEN" in found["role publish"]["hint"]


def test_the_doctor_finds_a_clock_that_is_wrong(
    server: ScriptedServer, http: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Pages, "date", formatdate(1_000_000_000, usegmt=True))
    assert findings(call("doctor", "--http", http, "-o", "json"))["clock"]["state"] == "note"


def test_the_doctor_misses_the_http_port(server: ScriptedServer) -> None:
    found = findings(call("doctor", "--http", "http://127.0.0.1:1", "-o", "json"))
    assert found["HTTP port"]["state"] == "note"
    assert "PATHSIEVE_HTTP" in found["HTTP port"]["hint"]
