"""The command line: what people see, what programs get, and how commands end."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from pathsieve import Client
from pathsieve.cli import app
from tests.faces import run
from tests.scripted_server import ScriptedServer


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedServer]:
    server = ScriptedServer()
    server.address = run(server.start())
    monkeypatch.setenv("PATHSIEVE_ADDRESS", server.address)
    yield server
    run(server.stop())


@pytest.fixture
def client(server: ScriptedServer) -> Iterator[Client]:
    with Client(server.address) as client:
        yield client


def call(*arguments: str, input: str | bytes = "", code: int = 0) -> Result:
    result = CliRunner().invoke(app, list(arguments), input=input)
    assert result.exit_code == code, result.output
    assert "\x1b" not in result.output, "no control codes where there is no terminal"
    return result


def objects(result: Result) -> list[Any]:
    return [json.loads(line) for line in result.stdout.splitlines()]


# -- subscriptions ---------------------------------------------------------------------------------


def test_a_subscription_is_added_shown_and_removed(server: ScriptedServer) -> None:
    added = call(
        "sub", "add", "--id", "ibm", "--xpath", "//q:quote[@s='IBM']", "--ns", "q=urn:q", "--label", "team=rates"
    )
    assert "//q:quote[@s='IBM']" in added.stdout
    shown = call("sub", "get", "ibm").stdout
    assert "q=urn:q" in shown
    assert "team=rates" in shown
    assert "when asked" in shown
    assert "deleted ibm" in call("sub", "rm", "ibm").stderr
    assert "there is no subscriptions/ibm" in call("sub", "get", "ibm", code=1).stderr


def test_all_that_a_subscription_can_have_can_be_said(server: ScriptedServer) -> None:
    options = ["--every", "60", "--webhook", "https://example.org", "--ack-deadline", "5", "--max-attempts", "3"]
    (made,) = objects(call("sub", "add", "--boolean", "price > 100", *options, "-o", "json"))
    assert made["boolean"] == "price > 100"
    assert made["webhook"]["url"] == "https://example.org"
    assert made["schedule"] == {"every": 60.0}
    assert made["delivery"] == {"ack_deadline": 5.0, "max_attempts": 3}
    (mailed,) = objects(call("sub", "add", "--xpath", "//a", "--email", "a@b.c", "--cron", "0 8 * * *", "-o", "json"))
    assert mailed["email"]["to"] == ["a@b.c"]
    assert mailed["schedule"] == {"cron": "0 8 * * *"}


def test_a_list_has_a_line_for_each(server: ScriptedServer, client: Client) -> None:
    client.subscribe(id="b", xpath="//b" + "/c" * 50)
    client.subscribe(id="a", boolean="price > 100", schedule=60)
    lines = call("sub", "list").stdout.splitlines()
    assert lines[2].split() == ["a", "boolean", "price", ">", "100", "when", "asked", "every", "60", "s"]
    assert lines[3].startswith("b")
    assert "…" in lines[3]
    assert "2 of 2 subscriptions" in call("sub", "list").stderr
    assert "1 of 2 subscriptions" in call("sub", "list", "--limit", "1").stderr


def test_an_empty_list_says_what_to_do(server: ScriptedServer) -> None:
    assert "pathsieve sub add" in call("sub", "list").stderr


def test_a_list_in_json_can_be_imported_again(server: ScriptedServer, client: Client, tmp_path: Path) -> None:
    client.subscribe(id="a", xpath="//p:a", namespaces={"p": "u"}, labels={"k": "v"}, schedule=5, email=["x@y", "z@y"])
    client.subscribe(id="b", boolean="x = 1", webhook="https://example.org")
    before = list(client.list())
    listed = tmp_path / "all.jsonl"
    listed.write_text(call("sub", "list", "-o", "json").stdout)
    call("sub", "rm", "a", "b")
    call("sub", "import", str(listed))
    after = list(client.list())
    assert [(one.filter, one.labels, one.schedule, one.push) for one in before] == [
        (one.filter, one.labels, one.schedule, one.push) for one in after
    ]


# -- import ----------------------------------------------------------------------------------------

FILES = {
    "a.txt": "# quotes\n//a\n\n//b\n",
    "b.jsonl": '{"id": "x", "xpath": "//a"}\n\n"//b"\n',
    "c.csv": "id,xpath,labels.team\nx,//a,rates\ny,//b,\n",
}


@pytest.mark.parametrize("name", FILES)
def test_subscriptions_are_imported_from(name: str, server: ScriptedServer, tmp_path: Path) -> None:
    (tmp_path / name).write_text(FILES[name])
    result = call("sub", "import", str(tmp_path / name))
    assert "imported 2 subscriptions" in result.stderr
    assert sorted(one.filter.xpath for one in server.subscriptions.values()) == ["//a", "//b"]


def test_refused_lines_are_listed_with_their_numbers_and_a_caret(server: ScriptedServer, tmp_path: Path) -> None:
    path = tmp_path / "some.jsonl"
    path.write_text('"//a"\n{oops\n"//book/[price]"\n{"xpaht": "//a"}\n[1]\n"//b"\n')
    result = call("sub", "import", str(path), code=1)
    assert "imported 2 subscriptions" in result.stderr
    assert "refused 4" in result.stderr
    assert "line 2: not JSON" in result.stderr
    assert "line 3: expected a node test at column 8\n      //book/[price]\n             ^" in result.stderr
    assert "line 4: a subscription has no xpaht" in result.stderr
    assert "line 5: expected an object" in result.stderr
    (report,) = objects(call("sub", "import", str(path), "-o", "json", code=1))
    assert [refusal["line"] for refusal in report["refused"]] == [2, 3, 4, 5]
    assert report["refused"][1]["column"] == "8"


def test_stdin_is_imported_too(server: ScriptedServer) -> None:
    call("sub", "import", "-", input="//a\n//b\n")
    call("sub", "import", "-", "--format", "jsonl", input='{"id": "c", "xpath": "//c"}\n')
    call("sub", "import", "-", "--boolean", input="price > 100\n")
    assert len(server.subscriptions) == 4


def test_ids_that_are_taken_can_be_skipped(server: ScriptedServer, tmp_path: Path) -> None:
    path = tmp_path / "some.csv"
    path.write_text("id,xpath\na,//a\n")
    call("sub", "import", str(path))
    assert "exists already" in call("sub", "import", str(path), code=1).stderr
    assert "1 were there already" in call("sub", "import", str(path), "--skip-existing").stderr


# -- test and explain ------------------------------------------------------------------------------


def test_a_filter_is_tried_on_a_document(server: ScriptedServer, client: Client, tmp_path: Path) -> None:
    path = tmp_path / "quote.xml"
    path.write_text("<quote/>")
    assert call("sub", "test", "--xpath", "//quote", str(path)).stdout == "matches\n"
    assert call("sub", "test", "--xpath", "//other", str(path), code=1).stdout == "does not match\n"
    assert call("sub", "test", "--xpath", "//quote", input="<quote/>").stdout == "matches\n"
    client.subscribe(id="q", xpath="//quote")
    assert "matches: //quote" in call("sub", "explain", "-s", "q", str(path)).stdout
    explained = call("sub", "explain", "--xpath", "//quote", "-a", "price=120", str(path)).stdout
    assert "price = 120" in explained
    (facts,) = objects(call("sub", "test", "--xpath", "//quote", "-o", "json", str(path)))
    assert facts["matches"] is True


LOCAL = {
    "an_xpath": (["--xpath", "//quote[@n > 1]"], "<quote n='2'/>", 0, "matches"),
    "that_does_not_match": (["--xpath", "//quote[@n > 1]"], "<quote n='1'/>", 1, "does not match"),
    "with_a_namespace": (["--xpath", "//q:quote", "--ns", "q=u"], "<quote xmlns='u'/>", 0, "matches"),
    "a_condition": (["--boolean", "price > 100", "-a", "price=120"], "", 0, "matches"),
    "both": (["--boolean", "price > 100 AND XPATH '//q'", "-a", "price=120"], "<q/>", 0, "matches"),
    "a_point": (
        ["--boolean", "WITHIN(p, 'POLYGON((0 0, 2 0, 2 2, 0 2, 0 0))')", "-a", 'p={"x": 1, "y": 1}'],
        "",
        0,
        "matches",
    ),
    "a_bad_expression": (["--xpath", "//book/[price]"], "<a/>", 1, "expected a node test"),
    "a_bad_document": (["--xpath", "//a"], "<oops", 1, "line 1"),
}


@pytest.mark.parametrize("options, document, code, words", LOCAL.values(), ids=LOCAL)
def test_a_filter_is_tried_without_a_server(options: list[str], document: str, code: int, words: str) -> None:
    result = call("sub", "explain", "--local", *options, "--address", "localhost:1", input=document, code=code)
    assert words in result.output


# -- publish ---------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "deep").mkdir()
    (tmp_path / "a.xml").write_text("<a/>")
    (tmp_path / "deep" / "b.xml").write_text("<b/>")
    (tmp_path / "notes.txt").write_text("no document")
    return tmp_path


def test_a_folder_is_published_once(server: ScriptedServer, client: Client, folder: Path) -> None:
    client.subscribe(id="a", xpath="//a")
    assert "published 2 documents" in call("publish", str(folder)).stderr
    assert "1 match" not in call("publish", str(folder)).stderr
    assert "2 had been published before" in call("publish", str(folder)).stderr
    assert len(server.accepted) == 2
    (folder / "a.xml").write_text("<a>changed</a>")
    call("publish", str(folder / "*.xml"))
    assert len(server.accepted) == 3


def test_what_goes_with_documents_is_given(server: ScriptedServer, folder: Path) -> None:
    options = ["--source", "desk", "-a", "price=120", "-a", "symbol=IBM", "--header", "h=v", "--id", "d1"]
    call("publish", str(folder / "a.xml"), *options)
    (document,) = server.accepted
    assert (document.id, document.source, dict(document.headers)) == ("d1", "desk", {"h": "v"})
    assert document.attributes["price"].integer_value == 120
    assert document.attributes["symbol"].string_value == "IBM"


def test_a_refused_file_is_named_and_does_not_stop_the_others(server: ScriptedServer, folder: Path) -> None:
    (folder / "bad.xml").write_text("<oops")
    result = call("publish", str(folder), str(folder / "missing.xml"), code=1)
    assert "published 2 documents" in result.stderr
    assert f"{folder / 'bad.xml'}: no XML at line 1" in result.stderr
    assert f"{folder / 'missing.xml'}: No such file" in result.stderr
    lines = {Path(line["file"]).name: line for line in objects(call("publish", str(folder), "-o", "json", code=1))}
    assert lines["a.xml"]["duplicate"] is True
    assert lines["bad.xml"]["line"] == "1"


def test_stdin_is_published(server: ScriptedServer) -> None:
    call("publish", "-", input="<a/>")
    call("publish", "-", "--lines", input="<b/>\n\n<c/>\n")
    assert [document.xml for document in server.accepted] == [b"<a/>", b"<b/>", b"<c/>"]


# -- attach ----------------------------------------------------------------------------------------


def test_messages_are_printed_and_acknowledged(server: ScriptedServer, client: Client) -> None:
    client.subscribe(id="a", xpath="//a")
    for n in range(3):
        client.publish(f"<a>\n  {n}</a>", id=f"d{n}")
    printed = call("attach", "a", "--count", "2")
    assert printed.stdout.splitlines() == ["a 1  d0  <a> 0</a>", "a 2  d1  <a> 1</a>"]
    assert "2 messages" in printed.stderr
    assert [note.is_acked for note in server.notifications] == [True, True, False]


def test_messages_in_json_have_everything(server: ScriptedServer, client: Client) -> None:
    client.subscribe(id="a", xpath="//a")
    client.publish("<a/>", id="d", source="s", attributes={"n": 1}, headers={"h": "v"})
    (message,) = objects(call("attach", "-", "--no-ack", "--idle", "0.3", "-o", "json"))
    assert message["matches"] == [{"subscription": "subscriptions/a", "sequence": 1}]
    document = message["document"]
    assert (document["id"], document["xml"], document["attributes"]) == ("d", "<a/>", {"n": 1})
    assert not server.notifications[0].is_acked


def test_an_ephemeral_filter_sees_what_comes(server: ScriptedServer) -> None:
    command = [sys.executable, "-m", "pathsieve", "attach", "--ephemeral", "--xpath", "//a", "--count", "1"]
    command += ["--address", server.address]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as attached,
        Client(server.address) as client,
    ):
        while not server.starts:
            client.count()
        client.publish("<a/>", id="d")
        out, err = attached.communicate(timeout=30)
    assert out == "//a  d  <a/>\n"
    assert err == "1 message\n"
    assert attached.returncode == 0


# -- how commands end ------------------------------------------------------------------------------

USAGE = {
    "no_filter": ["sub", "add"],
    "two_filters": ["sub", "add", "--xpath", "//a", "--boolean", "a = 1"],
    "a_label_without_a_value": ["sub", "add", "--xpath", "//a", "--label", "team"],
    "nothing_to_attach_to": ["attach"],
    "a_file_that_is_not_there": ["sub", "import", "nowhere.txt"],
    "no_documents": ["publish", "nowhere/*.xml"],
    "an_unknown_command": ["subscribe"],
}


@pytest.mark.parametrize("arguments", USAGE.values(), ids=USAGE)
def test_what_is_not_understood_ends_with_2(arguments: list[str], server: ScriptedServer) -> None:
    assert "Traceback" not in call(*arguments, code=2).output


def test_nobody_there_ends_with_3() -> None:
    result = call("sub", "list", "--address", "localhost:1", code=3)
    assert "no answer from localhost:1" in result.stderr
    assert "pathsieve serve" in result.stderr


def test_a_wrong_token_ends_with_4(server: ScriptedServer) -> None:
    server.token = "secret"
    assert "PATHSIEVE_TOKEN" in call("sub", "list", code=4).stderr
    call("sub", "list", "--token", "secret")


def test_the_command_is_installed_and_quiet(server: ScriptedServer) -> None:
    command = [sys.executable, "-m", "pathsieve", "sub", "list", "--address", "localhost:1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 2


COMMANDS = [
    [],
    ["sub"],
    *(["sub", name] for name in ("add", "import", "list", "get", "rm", "test", "explain")),
    *([name] for name in ("serve", "publish", "attach", "top", "bench", "doctor", "version")),
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_has_help(command: list[str]) -> None:
    assert "Usage:" in call(*command, "--help").stdout


def test_a_bench_has_three_figures(server: ScriptedServer) -> None:
    options = ["--documents", "200", "--singles", "5", "--size", "500", "-o", "json"]
    figures = objects(call("bench", *options))
    assert [figure["what"] for figure in figures] == ["throughput", "publish", "notify"]
    assert all(figure["per_second"] > 0 for figure in figures)
    assert "documents" in call("bench", *options[:-2]).stdout


def test_the_versions_are_shown() -> None:
    assert "pathsieve 0." in call("version").stdout
