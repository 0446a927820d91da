"""Suffix families: the trie in the module's picture, and rows that come back as they went in."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xpathfilter.algorithms import ALGORITHMS
from xpathfilter.rows import PathRows, new_rows
from xpathfilter.suffix import DESCENDANT, LAST, LEAF, RECORD_SHIFT, TERMINAL, SuffixFamilies, build_suffix_families

pytestmark = pytest.mark.kernels

NAMES = ["a", "b", "c", "c[@x]"]


def rows_of(*paths: str) -> PathRows:
    """Rows from paths whose steps stand apart by blanks: `/a //c`."""
    coded = [[code(step) for step in reversed(path.split())] for path in paths]
    return new_rows([step for path in coded for step in path], [len(path) for path in coded])


def code(step: str) -> int:
    return NAMES.index(step.lstrip("/")) * 2 + step.startswith("//")


def family(families: SuffixFamilies, node: int) -> dict[str, Any]:
    """A node and the brothers after it, each with its children; a dot marks a terminal."""
    drawn = {}
    while True:
        bits = int(families.codes[node])
        step = ("//" if bits & DESCENDANT else "/") + NAMES[bits >> RECORD_SHIFT] + (" •" if bits & TERMINAL else "")
        drawn[step] = {} if bits & LEAF else family(families, int(families.first_child[node]))
        if bits & LAST:
            return drawn
        node += 1


def test_paths_share_the_nodes_of_their_last_steps() -> None:
    rows = rows_of("/a /b //c", "/a //b //c", "//c", "//b /c[@x]")
    families, terminals = build_suffix_families(rows, len(NAMES))
    assert family(families, int(families.first_child[0])) == {
        "//c •": {"/b": {"/a •": {}}, "//b": {"/a •": {}}},
        "/c[@x]": {"//b •": {}},
    }
    assert len(families.codes) == 1 + 7
    assert len(set(terminals.tolist())) == 4


def test_a_family_is_found_by_its_access_record() -> None:
    families, terminals = build_suffix_families(rows_of("//c", "/b /c", "//b /c[@x]"), len(NAMES))
    tops = {number: int(node) for number, node in enumerate(families.roots) if node >= 0}
    assert set(tops) == {code("//c"), code("/c"), code("/c[@x]")}
    assert tops[code("//c")] == terminals[0]


def test_a_walk_from_a_terminal_to_its_family_goes_along_the_path() -> None:
    families, terminals = build_suffix_families(rows_of("/a /b //c"), len(NAMES))
    node, steps = int(terminals[0]), []
    while node > 0:
        steps.append(NAMES[families.codes[node] >> RECORD_SHIFT])
        node = int(families.parents[node])
    assert steps == ["a", "b", "c"]


def test_no_rows_are_no_families() -> None:
    families, terminals = build_suffix_families(new_rows([], []), len(NAMES))
    assert len(terminals) == 0
    assert (families.roots < 0).all()


paths = st.lists(st.integers(0, 2 * len(NAMES) - 1), min_size=1, max_size=6).map(tuple)


@pytest.mark.parametrize("algorithm", ALGORITHMS.values(), ids=ALGORITHMS)
@given(st.lists(paths, max_size=20, unique=True), st.randoms())
def test_rows_come_back_as_they_went_in(algorithm: Any, rows: list[tuple[int, ...]], random: Any) -> None:
    given_rows = new_rows([step for path in rows for step in path], [len(path) for path in rows])
    families, terminals = algorithm.build(given_rows, len(NAMES))
    order = list(range(len(rows)))
    random.shuffle(order)
    back = algorithm.rows(families, terminals[np.array(order, np.int64)])
    assert back.start.tolist() == np.cumsum([0, *(len(rows[i]) for i in order)]).tolist()
    assert back.steps.tolist() == [step for i in order for step in rows[i]]
