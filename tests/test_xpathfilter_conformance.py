"""Third-party conformance cases: libxml2's, jaxen's and the W3C's expressions have their known outcome here too."""

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from xpathfilter import DocumentLimits, XPathFilterError, XPathIndex

pytestmark = pytest.mark.kernels

N_CASES = 726
ENTITIES = DocumentLimits(allow_entities=True)

Case = dict[str, Any]


@pytest.fixture(scope="module")
def cases(shared: Path) -> list[Case]:
    """The cases whose context is the document node."""
    lines = (shared / "data" / "conformance" / "cases.jsonl").read_text("utf-8").splitlines()
    return [case for case in map(json.loads, lines) if case["context"] == "/"]


def outcome(case: Case, ids: dict[str, int], found: set[int]) -> bool | None:
    """Whether the case matched; None if its expression was refused."""
    return ids[case["id"]] in found if case["id"] in ids else None


def add_one_by_one(index: XPathIndex, cases: list[Case]) -> dict[str, int]:
    ids = {}
    for case in cases:
        try:
            ids[case["id"]] = index.add(case["expr"], case["ns"])
        except XPathFilterError:
            assert case["matches"] is None, case["expr"]
    return ids


def add_together(index: XPathIndex, cases: list[Case]) -> dict[str, int]:
    by_namespaces: dict[str, list[Case]] = defaultdict(list)
    for case in cases:
        by_namespaces[json.dumps(case["ns"], sort_keys=True)].append(case)
    ids = {}
    for alike in by_namespaces.values():
        numbers = index.add_many([case["expr"] for case in alike], alike[0]["ns"], errors=[])
        ids |= {case["id"]: number for case, number in zip(alike, numbers.tolist(), strict=True) if number > 0}
    return ids


@pytest.mark.parametrize("algorithm", ["suffix", "delta"])
@pytest.mark.parametrize("add", [add_one_by_one, add_together])
def test_every_case_has_its_known_outcome(shared: Path, cases: list[Case], add: Any, algorithm: str) -> None:
    index = XPathIndex(algorithm=algorithm, limits=ENTITIES)
    ids = add(index, cases)
    wrong = []
    for name in sorted({case["doc"] for case in cases}):
        found = set(index.match((shared / "data" / "conformance" / name).read_bytes()).tolist())
        own = [case for case in cases if case["doc"] == name]
        wrong += [case["expr"] for case in own if outcome(case, ids, found) != case["matches"]]
    assert wrong == []


def test_there_are_cases_of_every_outcome(cases: list[Case]) -> None:
    outcomes = [case["matches"] for case in cases]
    assert len(cases) == N_CASES
    assert min(outcomes.count(True), outcomes.count(False)) > 200
    assert outcomes.count(None) == 9
