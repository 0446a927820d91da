"""The benchmarks run, their workload is what it says, and a wrong answer does not go unnoticed."""

import json
import re
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lxml import etree

from benchmarks.__main__ import BOOLEAN, ENGINES, XPATH, main
from benchmarks.markdown import markdown, read_rows
from benchmarks.plot import curves
from benchmarks.report import COST, Row, table, write_json
from benchmarks.schema import DISPATCH, read_schema
from benchmarks.workload import documents, expressions
from boolmatch import BooleanIndex
from pathsieve import Message
from tests.integration.clusters import skip_without_parts
from xpathfilter import XPathIndex

pytestmark = pytest.mark.timeout(600)  # whoever runs first compiles the kernels


@pytest.fixture(scope="module", params=ENGINES)
def outcome(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict:
    if request.param == "cluster":
        skip_without_parts()
    path = tmp_path_factory.mktemp("bench") / "new" / "bench.json"
    assert main(["--quick", "--engine", request.param, "--json", str(path)]) == 0
    return json.loads(path.read_text()) | {"scenarios": set(ENGINES[request.param])}


def test_a_quick_run_has_rows_of_every_scenario(outcome: dict) -> None:
    assert {row["scenario"] for row in outcome["rows"]} == outcome["scenarios"]
    assert all(np.isfinite(row["measured"]) for row in outcome["rows"])


def test_every_scenario_checks_answers(outcome: dict) -> None:
    assert set(outcome["checked"]) == outcome["scenarios"]
    assert all(n_checked > 0 for n_checked in outcome["checked"].values())
    assert outcome["wrong"] == {}


def test_ten_million_run_alone(tmp_path: Path) -> None:
    path = tmp_path / "bench.json"
    assert main(["--quick", "--ten-million", "--json", str(path)]) == 0
    assert set(json.loads(path.read_text())["checked"]) == {"ten-million"}


def assert_is_refused(scenario: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = folder / "bench.json"
    assert main(["--quick", "--only", scenario, "--json", str(path)]) == 1
    assert set(json.loads(path.read_text())["wrong"]) == {scenario}
    assert "wrong answer" in capsys.readouterr().err


@pytest.mark.parametrize("scenario", XPATH)
def test_lost_matches_of_documents_end_in_an_error(
    scenario: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    right = XPathIndex.match
    broken = "delta" if scenario == "delta" else "suffix"

    def match(index: XPathIndex, document: bytes) -> np.ndarray:
        return right(index, document)[: 0 if index.algorithm == broken else None]

    monkeypatch.setattr(XPathIndex, "match", match)
    assert_is_refused(scenario, tmp_path, capsys)


@pytest.mark.slow
@pytest.mark.parametrize("scenario", ["server-stream", "server-latency"])
def test_lost_matches_of_a_server_end_in_an_error(
    scenario: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    right = Message.matches.func
    monkeypatch.setattr(Message, "matches", property(lambda message: right(message)[1:]))
    assert_is_refused(scenario, tmp_path, capsys)


@pytest.mark.parametrize("scenario", BOOLEAN)
def test_lost_matches_of_events_end_in_an_error(
    scenario: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    right = BooleanIndex.match_many

    def match_many(index: BooleanIndex, *arguments: Any, **options: Any) -> list[Any]:
        found = right(index, *arguments, **options)
        return [ids[: 0 if index.algorithm == "auto" else None] for ids in found]

    monkeypatch.setattr(BooleanIndex, "match_many", match_many)
    assert_is_refused(scenario, tmp_path, capsys)


def test_expressions_are_distinct_and_seeded() -> None:
    texts = list(islice(expressions(), 2000))
    assert len(set(texts)) == 2000
    assert list(islice(expressions(), 500)) == texts[:500]
    assert list(islice(expressions(seed=2), 500)) != texts[:500]


def test_expressions_follow_the_convention() -> None:
    steps = [re.findall(r"(//?)([^/[]+)(\[[^]]+])?", text) for text in islice(expressions(), 20_000)]
    flat = [step for path in steps for step in path]
    assert 2.5 < len(flat) / len(steps) < 4
    assert max(len(path) for path in steps) <= 10
    assert {name for _, name, _ in flat} == {"*", *DISPATCH.elements}
    assert all(re.fullmatch(r"\[@[a-z]+=([1-9]|1\d|20)]", test) for *_, test in flat if test)


def test_documents_follow_the_schema() -> None:
    for document in islice(documents(), 50):
        root = etree.fromstring(document)
        assert root.tag == DISPATCH.root
        for element in root.iter():
            described = DISPATCH.elements[element.tag]
            assert {child.tag for child in element} <= set(described.children)
            assert set(element.attrib) <= set(described.attributes)


def test_documents_are_of_the_size_they_should_have() -> None:
    roots = [etree.fromstring(document) for document in islice(documents(), 100)]
    n_elements = [sum(1 for _ in root.iter()) for root in roots]
    assert 110 < np.mean(n_elements) < 150
    assert all(not root.xpath("//*[count(ancestor::*) >= 10]") for root in roots)


def test_a_schema_names_the_element_that_is_not_described() -> None:
    with pytest.raises(ValueError, match="footer"):
        read_schema("memo : line* footer? \n line :", {})


BOUNDS = {
    "no_bound_no_verdict": (Row("s", "w", 1, 3.0, "×"), None),
    "above_a_floor": (Row("s", "w", 1, 3.0, "×", at_least=3), True),
    "below_a_floor": (Row("s", "w", 1, 2.9, "×", at_least=3), False),
    "below_a_ceiling": (Row("s", "w", 1, 3.0, "×", at_most=3), True),
    "above_a_ceiling": (Row("s", "w", 1, 3.1, "×", at_most=3), False),
}


@pytest.mark.parametrize("row, ok", BOUNDS.values(), ids=BOUNDS)
def test_a_bound_is_kept_or_missed(row: Row, ok: bool | None) -> None:
    assert row.ok is ok
    assert ("MISSED" in table([row])) is (ok is False)


def test_the_plot_is_drawn_from_the_rows_of_costs() -> None:
    rows = [
        Row("g", "suffix", 20, 2.0, COST),
        Row("g", "suffix", 10, 1.0, COST),
        Row("g", "ratio", 20, 2.0, "×"),
    ]
    assert curves(rows) == {"suffix": [(10, 1.0), (20, 2.0)]}


TABLES = {
    "a_scenario_lists_its_rows": (
        [Row("load", "add_many", 2000, 0.5, "/s", at_least=3)],
        "### load\n\n| what | subscriptions | measured | bar |\n|---|---|---|---|\n"
        "| add_many | 2,000 | 0.5 /s | ≥ 3 (missed) |",
    ),
    "algorithms_stand_side_by_side": (
        [Row("bool-table", "dense, scan", 100, 40.0, "µs"), Row("bool-table", "dense, auto", 10, 2.0, "µs")],
        "### bool-table\n\n| µs | scan | auto |\n|---|---|---|\n| dense | 40 | 2 (of 10) |",
    ),
}


@pytest.mark.parametrize("rows, text", TABLES.values(), ids=TABLES)
def test_the_tables_of_the_documentation(rows: list[Row], text: str, tmp_path: Path) -> None:
    write_json(tmp_path / "bench.json", rows, {})
    assert markdown(rows) == markdown(read_rows(tmp_path / "bench.json")) == text
