"""The flat document must say what lxml says, whichever way the tree was walked."""

import logging
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from xpathfilter import flat_document
from xpathfilter import flatten as module
from xpathfilter.document import parse_document
from xpathfilter.errors import DocumentError
from xpathfilter.flat_document import (
    ATTRIBUTE_BYTES,
    COUNTED_ARRAYS,
    N_ATTRIBUTES,
    N_ELEMENTS,
    N_LEVELS,
    N_NAMES,
    N_TEXT_NODES,
    TEXT_BYTES,
    FlatDocument,
    new_flat_document,
)
from xpathfilter.flatten import element_at, flatten, layout_is_proved
from xpathfilter.plain_walk import flatten_slowly

pytestmark = pytest.mark.kernels

Walk = Callable[[Any, FlatDocument], FlatDocument]
WALKS: dict[str, Walk] = {"c_walk": flatten, "plain_walk": flatten_slowly}

CHILDREN = etree.XPath("*")
TEXTS = etree.XPath("text()", smart_strings=False)
STRING = etree.XPath("string()", smart_strings=False)
ATTRIBUTE_VALUES = etree.XPath("@*", smart_strings=False)

DOCUMENTS = {
    "one_element": "<a/>",
    "mixed_content": "<a>1<b>2</b>3<c/>4</a>",
    "siblings_and_cousins": "<a><b><c/><c/></b><b><c><d/></c></b></a>",
    "attributes": "<a i='1' j=''><b j='2' i='&lt;&amp;&#233;'/></a>",
    "default_namespace": "<a xmlns='urn:x' i='1'><b/><c xmlns=''><d/></c></a>",
    "prefixes": "<p:a xmlns:p='urn:x' xmlns:q='urn:x' p:i='1'><q:a/><a/></p:a>",
    "one_uri_declared_many_times": "<a>" + "<b xmlns='urn:x'/>" * 50 + "</a>",
    "two_uris_for_one_name": "<a><b xmlns='urn:x'/><b xmlns='urn:xy'/><b/><b xmlns='urn:x'/></a>",
    "xml_attributes": "<a xml:lang='de' xml:id='x'/>",
    "comments_and_instructions": "<?x?><!-- 0 --><a>1<!-- 2 -->3<?y 4?>5</a><!-- 6 -->",
    "comments_only": "<a><!-- 1 --><b><!-- 2 --></b></a>",
    "cdata": "<a>1<![CDATA[<2>]]>3<b><![CDATA[]]></b></a>",
    "unknown_entities": "<!DOCTYPE a SYSTEM 'nowhere'><a i='1&e;2'>1&e;2<b>&e;</b>&e;</a>",
    "attributes_by_default": "<!DOCTYPE a [<!ATTLIST b i CDATA 'x'>]><a><b/><b i='y'/></a>",
    "characters_of_every_width": "<é ñ='€'>a¢€🌍<中/></é>",
    "blanks": "<a>\n  <b/>\t<c> </c>\r\n</a>",
    "a_long_text": "<a>" + "x" * 100_000 + "<b>y</b></a>",
    "many_names": "<a>" + "".join(f"<n{i} a{i}=''/>" for i in range(3000)) + "</a>",
    "deep": "<a>" * 900 + "x" + "</a>" * 900,
}


def names(flat: FlatDocument) -> list[str]:
    """The names of a flat document the way lxml writes them: {uri}local."""

    def part(start: int, end: int) -> str:
        return bytes(flat.name_text[start:end]).decode()

    return [
        ("{" + part(uri, uri_end) + "}" if uri_end > uri else "") + part(local, local_end)
        for uri, uri_end, local, local_end in flat.names[: flat.counts[N_NAMES]]
    ]


def chain(first: int, following: np.ndarray) -> Iterator[int]:
    while first != -1:
        yield first
        first = following[first]


def check_against_lxml(root: Any, flat: FlatDocument) -> None:
    """Compare every row with what lxml answers for the same node."""
    elements = list(root.iter("*"))
    number = {element: i for i, element in enumerate(elements)}
    known, text, depths = names(flat), bytes(flat.text), flat.elements["depth"]
    assert flat.counts[N_ELEMENTS] == len(elements)
    assert len(set(known)) == len(known)
    for i, element in enumerate(elements):
        row, parent = flat.elements[i], element.getparent()
        assert known[row["name"]] == element.tag
        assert row["parent"] == (number[parent] if i else -1)
        assert row["depth"] == (depths[number[parent]] + 1 if i else 0)
        children = chain(row["first_child"], flat.elements["next_sibling"])
        assert list(children) == [number[child] for child in CHILDREN(element)]
        assert text[row["text_start"] : row["text_end"]].decode() == STRING(element)
        text_nodes = list(chain(row["first_text"], flat.text_nodes["next"]))
        ranges = flat.text_nodes[text_nodes][["start", "end"]]
        assert [text[start:end].decode() for start, end in ranges] == TEXTS(element)
        assert row["last_text"] == (text_nodes[-1] if text_nodes else -1)
        check_attributes(element, row, flat, known)
    assert flat.counts[N_LEVELS] == max(depths[: len(elements)]) + 1
    assert flat.counts[N_TEXT_NODES] == root.xpath("count(//text())")
    assert flat.counts[TEXT_BYTES] == len(STRING(root).encode())


def check_attributes(element: Any, row: np.void, flat: FlatDocument, known: list[str]) -> None:
    attributes = flat.attributes[row["first_attribute"] :][: row["n_attributes"]]
    values = bytes(flat.attribute_text)
    assert [known[name] for name in attributes["name"]] == element.keys()
    assert [values[start:end].decode() for _, start, end in attributes] == ATTRIBUTE_VALUES(element)


def rows_of(flat: FlatDocument) -> dict[str, list[Any]]:
    """All that describes the document, without capacities, working memory and what older documents left."""
    rows = {array: getattr(flat, array)[: flat.counts[cell]].tolist() for cell, array in COUNTED_ARRAYS.items()}
    return rows | {"counts": flat.counts.tolist()}


@pytest.mark.parametrize("walk", WALKS.values(), ids=WALKS)
@pytest.mark.parametrize("document", DOCUMENTS.values(), ids=DOCUMENTS)
def test_a_flat_document_says_what_lxml_says(document: str, walk: Walk) -> None:
    root = parse_document(document)
    check_against_lxml(root, walk(root, new_flat_document()))


@pytest.mark.parametrize("document", DOCUMENTS.values(), ids=DOCUMENTS)
def test_both_walks_fill_the_same_arrays(document: str) -> None:
    root = parse_document(document)
    assert rows_of(flatten(root, new_flat_document())) == rows_of(flatten_slowly(root, new_flat_document()))


def test_the_worked_picture_is_true() -> None:
    flat = flatten(parse_document('<a i="1">x<b>yz</b><b/></a>'), new_flat_document())
    elements, text_nodes, attributes = flat.elements[:3], flat.text_nodes[:2], flat.attributes[:1]
    assert flat.counts[[N_ELEMENTS, N_TEXT_NODES, N_ATTRIBUTES]].tolist() == [3, 2, 1]
    assert elements["parent"].tolist() == [-1, 0, 0]
    assert elements["depth"].tolist() == [0, 1, 1]
    assert elements["first_child"].tolist() == [1, -1, -1]
    assert elements["next_sibling"].tolist() == [-1, 2, -1]
    assert elements["first_text"].tolist() == [0, 1, -1]
    assert elements["text_start"].tolist() == [0, 1, 3]
    assert elements["text_end"].tolist() == [3, 3, 3]
    assert text_nodes[["start", "end", "next"]].tolist() == [(0, 1, -1), (1, 3, -1)]
    assert elements["name"].tolist() == [0, 2, 2]
    assert attributes[["name", "start", "end"]].tolist() == [(1, 0, 1)]
    assert (bytes(flat.text[:3]), bytes(flat.attribute_text[:1]), names(flat)) == (
        b"xyz",
        b"1",
        ["a", "i", "b"],
    )


# Random trees -----------------------------------------------------------------------------------

CHARACTERS = st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"], exclude_characters="\ufffe\uffff")
plain_texts = st.text(CHARACTERS | st.sampled_from("ab<&>\"' \t\n"), max_size=6)
local_names = st.sampled_from(["a", "b", "c", "é", "long-name.with_all"])
prefixes = st.sampled_from(["", "p:", "q:"])
declarations = st.sampled_from(["", "", ' xmlns="urn:x"', ' xmlns=""', ' xmlns:p="urn:z"', ' xmlns:q="urn:p"'])
leaves = st.one_of(
    plain_texts.map(escape),
    plain_texts.map(lambda text: "".join(f"&#{ord(character)};" for character in text)),
    plain_texts.map(lambda text: f"<![CDATA[{text.replace(']', '')}]]>"),
    plain_texts.map(lambda text: f"<!--{text.replace('-', '')}-->"),
    st.just("<?target some data?>"),
)


def element_of(prefix: str, local: str, declaration: str, attributes: dict[str, str], content: list[str]) -> str:
    written = "".join(f" {name}={quoteattr(value)}" for name, value in attributes.items())
    return f"<{prefix}{local}{declaration}{written}>{''.join(content)}</{prefix}{local}>"


attribute_maps = st.dictionaries(st.sampled_from(["i", "j", "p:i", "xml:lang"]), plain_texts, max_size=3)
contents = st.recursive(
    leaves,
    lambda nodes: st.builds(
        element_of, prefixes, local_names, declarations, attribute_maps, st.lists(nodes, max_size=5)
    ),
    max_leaves=25,
)
documents = st.lists(contents, max_size=6).map(
    lambda content: f'<root xmlns:p="urn:p" xmlns:q="urn:q">{"".join(content)}</root>'
)
used_scratch = new_flat_document()


@given(documents)
def test_any_tree_is_flattened_as_lxml_sees_it_both_ways(document: str) -> None:
    root = parse_document(document)
    flat = flatten(root, used_scratch)
    check_against_lxml(root, flat)
    assert rows_of(flat) == rows_of(flatten_slowly(root, new_flat_document()))


@given(documents)
def test_sections_of_cdata_that_lxml_kept_apart_are_text_nodes_of_their_own(document: str) -> None:
    root = etree.fromstring(document, etree.XMLParser(strip_cdata=False))
    flat = flatten(root, new_flat_document())
    check_against_lxml(root, flat)
    assert rows_of(flat) == rows_of(flatten_slowly(root, new_flat_document()))


# Room -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("walk", WALKS.values(), ids=WALKS)
@pytest.mark.parametrize("document", DOCUMENTS.values(), ids=DOCUMENTS)
def test_scratch_grows_until_the_document_fits(document: str, walk: Walk) -> None:
    root = parse_document(document)
    flat = walk(root, new_flat_document(rows=1, text_bytes=1))
    assert rows_of(flat) == rows_of(flatten_slowly(root, new_flat_document()))


def test_scratch_that_fits_is_used_again() -> None:
    flat = new_flat_document()
    assert flatten(parse_document("<a>x</a>"), flat) is flat


@pytest.mark.parametrize(
    "room",
    [{"rows": 2 * flat_document.RETAINED_ROWS}, {"text_bytes": 2 * flat_document.RETAINED_TEXT_BYTES}],
    ids=["rows", "text"],
)
def test_scratch_of_a_huge_document_is_given_back(room: dict[str, int]) -> None:
    flat = flatten(parse_document("<a>x</a>"), new_flat_document(**room))
    assert flat.elements.size == new_flat_document().elements.size
    assert flat.text.size == new_flat_document().text.size


def test_more_rows_than_can_be_numbered_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flat_document, "MAX_ROWS", 64)
    with pytest.raises(DocumentError, match="too large"):
        flatten(parse_document("<a>" + "<b/>" * 100 + "</a>"), new_flat_document(rows=8))


def test_an_older_document_leaves_no_trace() -> None:
    flat = flatten(parse_document(DOCUMENTS["many_names"]), new_flat_document())
    root = parse_document("<n5 a7='x'>y</n5>")
    assert rows_of(flatten(root, flat)) == rows_of(flatten_slowly(root, new_flat_document()))
    assert flat.counts[[N_ELEMENTS, N_ATTRIBUTES, N_NAMES, ATTRIBUTE_BYTES]].tolist() == [1, 1, 2, 1]


# Depth ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("walk", [flatten, flatten_slowly], ids=WALKS)
def test_just_the_allowed_levels_are_walked(walk: Any) -> None:
    root = parse_document("<a><b><c/></b></a>")
    assert walk(root, new_flat_document(), max_depth=3).counts[N_LEVELS] == 3
    with pytest.raises(DocumentError, match="more than 2 levels"):
        walk(root, new_flat_document(), max_depth=2)


def test_an_element_is_found_by_its_number() -> None:
    root = parse_document(DOCUMENTS["siblings_and_cousins"])
    assert [element_at(root, i) for i in range(7)] == list(root.iter("*"))


# Threads ----------------------------------------------------------------------------------------


def test_threads_flatten_different_documents_at_the_same_time() -> None:
    def flatten_often(thread: int) -> list[bool]:
        scratch = new_flat_document(rows=4, text_bytes=16)
        texts = [f"<t{thread} i='{n}'>{'<b>x</b>' * (n + thread)}</t{thread}>" for n in range(60)]
        answers = []
        for text in texts:
            root = parse_document(text)
            scratch = flatten(root, scratch)
            answers.append(rows_of(scratch) == rows_of(flatten_slowly(root, new_flat_document())))
        return answers

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(flatten_often, range(4))) == [[True] * 60] * 4


# The proof --------------------------------------------------------------------------------------


def test_the_layout_is_proved_here() -> None:
    """Not a matter of course, but all other tests of the C walk would test the plain one twice."""
    assert layout_is_proved


def refuses(caplog: pytest.LogCaptureFixture) -> bool:
    with caplog.at_level(logging.WARNING, "pathsieve.xpathfilter"):
        return not module.prove_layout() and "unknown memory layout" in caplog.text


@pytest.mark.parametrize("version", [(2, 9, 14), (2, 16, 0), (3, 0, 0)], ids=repr)
def test_an_unknown_libxml2_is_not_walked(
    version: tuple[int, ...], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(etree, "LIBXML_VERSION", version)
    monkeypatch.setattr(module, "flatten_tree", None)
    assert refuses(caplog)


def test_an_element_laid_out_otherwise_is_not_walked(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "ELEMENT_DOCUMENT", 24)
    monkeypatch.setattr(module, "flatten_tree", None)
    assert refuses(caplog)


COLUMNS = {
    f"{array}.{column}" if column else array: (array, column or ...)
    for array in ("counts", *COUNTED_ARRAYS.values())
    for column in getattr(new_flat_document(), array).dtype.names or [None]
}


@pytest.mark.parametrize("array, column", COLUMNS.values(), ids=COLUMNS)
def test_a_walk_that_differs_in_one_cell_proves_nothing(
    array: str, column: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    true_walk = module.flatten_tree

    def wrong_walk(address: int, flat: FlatDocument, max_depth: int) -> int:
        full = true_walk(address, flat, max_depth)
        getattr(flat, array)[column][0] += 1
        return int(full)

    monkeypatch.setattr(module, "flatten_tree", wrong_walk)
    assert refuses(caplog)


def test_without_a_proof_the_plain_walk_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "layout_is_proved", False)
    monkeypatch.setattr(module, "flatten_tree", None)
    root = parse_document(DOCUMENTS["mixed_content"])
    check_against_lxml(root, flatten(root, new_flat_document()))


@pytest.mark.parametrize("variable", ["PATHSIEVE_PLAIN_WALK", "NUMBA_DISABLE_JIT"])
def test_an_environment_variable_forces_the_plain_walk(variable: str, repository: Path) -> None:
    script = "from xpathfilter.flatten import layout_is_proved; raise SystemExit(layout_is_proved)"
    environment = os.environ | {variable: "1", "PYTHONPATH": str(repository)}
    assert subprocess.run([sys.executable, "-c", script], env=environment, check=False).returncode == 0
