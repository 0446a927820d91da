"""Suffix families: the trie in the module's picture, and rows that come back as they went in."""

import re
from random import Random
from typing import Any

import numpy as np
import oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sievecore.rows import Rows, new_rows
from xpathfilter import XPathIndex
from xpathfilter.algorithms import ALGORITHMS
from xpathfilter.suffix import (
    DESCENDANT,
    LAST,
    LEAF,
    RECORD_SHIFT,
    TERMINAL,
    WIDE,
    WIDE_SIZE,
    SuffixFamilies,
    build_suffix_families,
)

pytestmark = pytest.mark.kernels

NAMES = ["a", "b", "c", "c[@x]"]


def rows_of(*paths: str) -> Rows:
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
    assert back.values.tolist() == [step for i in order for step in rows[i]]


# Wide groups ------------------------------------------------------------------------------------------

N_BROTHERS = 2 * WIDE_SIZE


def many_brothers() -> list[str]:
    """Groups wide and narrow, at the end and in the middle of paths, some brothers twice: as child and descendant."""
    texts = [f"//b[@n = '{n}']/{end}" for n in range(N_BROTHERS) for end in ("c", "/c")]
    texts += [f"/a//b[@n = {n}]//c" for n in range(0, N_BROTHERS, 7)]
    return texts + [f"//a[@n = {n % 5}]/b[@m > {n}]/c/d" for n in range(N_BROTHERS)]


@pytest.fixture(scope="module")
def wide_index() -> tuple[XPathIndex, dict[int, str]]:
    index, texts = XPathIndex(), many_brothers()
    subscriptions = dict(zip(index.add_many(texts).tolist(), texts, strict=True))
    families = index._overlay.snapshot.layers[0].segment.families
    assert isinstance(families, SuffixFamilies)
    sizes = families.wide["end"] - families.wide["first"]
    assert (sizes >= WIDE_SIZE).all()
    assert np.count_nonzero(sizes == N_BROTHERS) >= 2
    assert (families.codes[families.wide["first"]] & WIDE != 0).all()
    return index, subscriptions


@pytest.mark.parametrize("n_levels", [3, 70, 200])
@pytest.mark.parametrize("n_rows", [1, 5, 300])
@pytest.mark.parametrize("key", ["n", "m"], ids=["few_records_hold", "many_records_hold"])
def test_the_brothers_of_a_wide_group_are_all_found(
    wide_index: tuple[XPathIndex, dict[int, str]], key: str, n_rows: int, n_levels: int
) -> None:
    index, subscriptions = wide_index
    random = Random(n_rows)
    numbers = [0, N_BROTHERS - 1, *(random.randrange(N_BROTHERS) for _ in range(n_rows))][-n_rows:]
    rows = "".join(f"<b {key}='{number}'><c><d/></c><e><c/></e></b>" for number in numbers)
    text = "<a n='3'>" * n_levels + rows + "</a>" * n_levels
    right = [number for number, expression in subscriptions.items() if wanted(expression, key, numbers)]
    assert index.match(text).tolist() == right


def wanted(expression: str, key: str, numbers: list[int]) -> bool:
    """What lxml would say, known from how the expressions and the document are made."""
    if "/d" in expression:
        of_a, of_b = (int(number) for number in re.findall(r"[0-9]+", expression))
        return key == "m" and of_a == 3 and max(numbers) > of_b
    return key == "n" and int(re.findall(r"[0-9]+", expression)[0]) in numbers


@pytest.mark.parametrize("key", ["n", "m"])
def test_what_is_known_of_wide_groups_is_what_lxml_says(
    wide_index: tuple[XPathIndex, dict[int, str]], key: str
) -> None:
    _, subscriptions = wide_index
    some = list(subscriptions.values())[::97]
    rows = "".join(f"<b {key}='{number}'><c><d/></c><e><c/></e></b>" for number in (0, 194))
    text = f"<a n='3'><a n='3'>{rows}</a></a>"
    assert oracle.outcomes(some, text, None) == [wanted(expression, key, [0, 194]) for expression in some]
