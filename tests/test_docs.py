"""The documents say what is true: examples run, dumps are the code's own, links lead somewhere."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from boolmatch import BooleanIndex, Interval, Point
from boolmatch.parser import parse
from tests.bool_oracle import matches
from tests.dump_layout import LAYOUT, MARKED, refreshed, sections
from tests.oracle import holds, read
from xpathfilter import XPathIndex

REPOSITORY = Path(__file__).resolve().parent.parent
DOCUMENTS = sorted([*REPOSITORY.glob("*.md"), *REPOSITORY.glob("docs/*.md")])
FENCED = re.compile(r"```.*?```", re.DOTALL)
LINK = re.compile(r"\[[^\]]+\]\(([^)\s]+)\)")
ROW = re.compile(r"^\| `(.+?)` \| `?(.+?)`? \| (yes|no) \|", re.MULTILINE)

STYLE_TERMS = [
    *("position record", "operator", "access record", "cluster", "cluster family", "internal event"),
    "predicate space",
]
OWN_TERMS = [
    *("block", "merged node", "fresh", "family", "terminal", "target", "slot", "segment", "layer", "level"),
    *("snapshot", "overlay", "draft", "plan", "formula", "lane", "verified", "record", "subject"),
    *("value test", "event states", "crew", "leader"),
]


def relative(path: Path) -> str:
    return str(path.relative_to(REPOSITORY))


def broken_links(document: Path, text: str) -> Iterator[str]:
    """The relative links of `text`, found in `document`, that lead to nothing."""
    for target in LINK.findall(FENCED.sub("", text)):
        path, _, _ = target.partition("#")
        if path and ":" not in path and not (document.parent / path).exists():
            yield target


@pytest.mark.parametrize("document", DOCUMENTS, ids=relative)
def test_relative_links_lead_somewhere(document: Path) -> None:
    assert list(broken_links(document, document.read_text())) == []


LINKS = {
    "a_missing_file": ("[a](docs/nowhere.md)", ["docs/nowhere.md"]),
    "a_missing_file_with_a_heading": ("[a](nowhere.md#top)", ["nowhere.md#top"]),
    "a_file_that_is_there": ("[a](Makefile) [b](docs/glossary.md#words)", []),
    "another_site": ("[a](https://example.org/nowhere)", []),
    "code_is_no_link": ("```python\nrows[0](nowhere)\n```", []),
}


@pytest.mark.parametrize("text, expected", LINKS.values(), ids=LINKS)
def test_the_check_of_links_finds_what_it_should(text: str, expected: list[str]) -> None:
    assert list(broken_links(REPOSITORY / "README.md", text)) == expected


@pytest.mark.kernels
def test_the_example_of_the_readme_runs_and_prints_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    _, example = re.findall(r"```python\n(.*?)```", (REPOSITORY / "README.md").read_text(), re.DOTALL)
    exec(compile(example, "README.md", "exec"), {})
    first, *others = capsys.readouterr().out.splitlines()
    promised = re.search(r"print\(index\.match\(document\)\) +# (\[[^]]*\])", example)
    assert promised is not None
    assert first == promised[1]
    assert others[0].startswith("matches: //quote[@symbol = 'IBM'")
    assert others[-2].startswith("Premature end of data")
    assert others[-1].startswith("10001 ")


@pytest.mark.kernels
def test_the_memory_layout_is_what_the_code_makes() -> None:
    written = LAYOUT.read_text()
    assert [name for _, name, _ in MARKED.findall(written)] == list(sections())
    assert written == refreshed(written), "python -m tests.dump_layout --write puts it right"


@pytest.mark.parametrize("term", STYLE_TERMS + OWN_TERMS)
def test_the_glossary_defines(term: str) -> None:
    defined = re.findall(r"^\| \*\*(.+?)\*\* \|", (REPOSITORY / "docs/glossary.md").read_text(), re.MULTILINE)
    assert defined.count(term) == 1


SURPRISES = ROW.findall((REPOSITORY / "docs/contract.md").read_text())


def test_the_surprises_of_the_contract_are_found() -> None:
    assert {outcome for _, _, outcome in SURPRISES} == {"yes", "no"}


@pytest.mark.kernels
@pytest.mark.parametrize("expression, document, outcome", SURPRISES)
def test_the_surprises_of_the_contract_are_true(expression: str, document: str, outcome: str) -> None:
    text = "<any/>" if document == "any" else document
    index = XPathIndex()
    subscription = index.add(expression)
    assert (subscription in index.match(text)) == (outcome == "yes")
    assert holds(expression, read(text)) == (outcome == "yes")


BOOLEAN_ROWS = ROW.findall((REPOSITORY / "docs/boolean.md").read_text())


@pytest.mark.kernels
@pytest.mark.parametrize("expression, event, outcome", BOOLEAN_ROWS)
def test_the_tables_about_boolean_matches_are_true(expression: str, event: str, outcome: str) -> None:
    index = BooleanIndex()
    happening = eval(event, {"Interval": Interval, "Point": Point})
    assert (index.add(expression) in index.match(happening)) == (outcome == "yes")
    assert matches(parse(expression), happening) == (outcome == "yes")


@pytest.mark.kernels
def test_the_boolean_example_runs_and_prints_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", (REPOSITORY / "docs/boolean.md").read_text(), re.DOTALL)
    exec(compile(example, "boolean.md", "exec"), {})
    printed = capsys.readouterr().out.splitlines()
    assert printed[:2] == re.findall(r"# (\[\d\])", example)
    assert printed[2].startswith("does not match")
