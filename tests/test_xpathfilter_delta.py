"""Delta families: the clusters in the module's picture, and operators over depths at the edge of a word."""

import pytest

from sievecore.rows import Rows, new_rows
from xpathfilter import XPathIndex
from xpathfilter.delta import DeltaFamilies, build_delta_families

pytestmark = pytest.mark.kernels

NAMES = ["a", "b", "c"]


def rows_of(*paths: str) -> Rows:
    """Rows from paths whose steps stand apart by blanks: `/a //c`."""
    coded = [[NAMES.index(step.lstrip("/")) * 2 + step.startswith("//") for step in path.split()] for path in paths]
    return new_rows([step for path in coded for step in reversed(path)], [len(path) for path in coded])


def clusters(families: DeltaFamilies, record: int) -> list[list[str]]:
    """The columns of each cluster of a family, each column from its first step to its last."""
    numbers = range(families.family_start[record], families.family_start[record + 1])
    return [
        [column(families, i) for i in range(families.cluster_start[n], families.cluster_start[n + 1])] for n in numbers
    ]


def column(families: DeltaFamilies, number: int) -> str:
    steps = families.steps[families.column_start[number] : families.column_start[number + 1]]
    return " ".join(("//" if step & 1 else "/") + NAMES[step >> 1] for step in steps)


def test_a_cluster_holds_the_paths_of_one_access_record_and_one_length() -> None:
    families, columns = build_delta_families(rows_of("/a /c", "/a //b //c", "//b //c", "//b"), len(NAMES))
    assert clusters(families, NAMES.index("c")) == [["/a /c", "//b //c"], ["/a //b //c"]]
    assert clusters(families, NAMES.index("b")) == [["//b"]]
    assert clusters(families, NAMES.index("a")) == []
    assert [column(families, number) for number in columns] == ["/a /c", "/a //b //c", "//b //c", "//b"]
    assert families.cluster_size.tolist() == [1, 2, 3]


OPERATORS = {
    "parent_is_one_level_up": ("//a[@d = {0}]/*[@d = {1}]", 1, 2, True),
    "parent_is_not_two_levels_up": ("//a[@d = {0}]/*[@d = {1}]", 1, 3, False),
    "parent_at_the_last_bit": ("//a[@d = {0}]/*[@d = {1}]", 63, 64, True),
    "ancestor_is_any_level_up": ("//a[@d = {0}]//*[@d = {1}]", 1, 64, True),
    "ancestor_is_not_itself": ("//a[@d = {0}]//*[@d = {1}]", 64, 64, False),
    "ancestor_is_not_below": ("//a[@d = {0}]//*[@d = {1}]", 64, 63, False),
    "ancestor_at_the_last_bit": ("//a[@d = {0}]//*[@d = {1}]", 63, 64, True),
    "the_first_step_is_the_root_element": ("/a[@d = {0}]//*[@d = {1}]", 1, 64, True),
    "and_no_other": ("/a[@d = {0}]//*[@d = {1}]", 2, 64, False),
}


@pytest.mark.parametrize("template, upper, lower, expected", OPERATORS.values(), ids=OPERATORS)
def test_the_operators_reach_from_the_first_bit_to_the_last(
    template: str, upper: int, lower: int, expected: bool
) -> None:
    index = XPathIndex(algorithm="delta")
    index.add(template.format(upper, lower))
    chain = "".join(f"<a d='{depth}'>" for depth in range(1, 65)) + "</a>" * 64
    assert len(index.match(chain)) == expected
