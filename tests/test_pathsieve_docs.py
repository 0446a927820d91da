"""The examples of the client's documents run, and print what they say."""

import contextlib
import io
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pathsieve.cli import exits
from tests.faces import run
from tests.scripted_server import ScriptedServer

DOCS = Path(__file__).resolve().parent.parent / "docs"
PROMISE = re.compile(r"print\(.*?\)  # ([^,\n]+(?:, '[^\n]*)?)")


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    server = ScriptedServer()
    server.address = run(server.start())
    yield server
    run(server.stop())


def test_the_examples_of_the_client_print_what_they_say(server: ScriptedServer) -> None:
    """One after the other, against one server, as a reader would type them."""
    for example in re.findall(r"```python\n(.*?)```", (DOCS / "client.md").read_text(), re.DOTALL):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(example.replace("localhost:7443", server.address), "client.md", "exec"), {})
        assert printed.getvalue().splitlines() == PROMISE.findall(example)
    assert server.notifications[0].is_acked


def test_the_session_of_the_command_line_goes_as_it_says(server: ScriptedServer) -> None:
    (session,) = re.findall(r"```console\n(.*?)```", (DOCS / "cli.md").read_text(), re.DOTALL)
    folder = Path(sys.executable).parent
    environment = os.environ | {"PATHSIEVE_ADDRESS": server.address, "PATH": f"{folder}:{os.environ['PATH']}"}
    for command, expected in re.findall(r"^\$ (.*)\n((?:[^$].*\n)*)", session, re.MULTILINE):
        done = subprocess.run(
            ["bash", "-c", command], capture_output=True, text=True, env=environment, check=False, timeout=60
        )
        assert done.returncode == 0, done.stderr
        assert all(line in done.stdout + done.stderr for line in expected.splitlines())


def test_the_exit_codes_are_those_of_the_code() -> None:
    table = dict(re.findall(r"^\| (\d+) \| (.+) \|$", (DOCS / "cli.md").read_text(), re.MULTILINE))
    drawn = dict(re.findall(r"^ *(\d+) +(.+)$", exits.__doc__ or "", re.MULTILINE))
    assert table == drawn
