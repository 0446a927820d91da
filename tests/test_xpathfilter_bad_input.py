"""What is not XPath and what is not XML is refused by name and place, and harms nobody else."""

from typing import Any

import pytest

from xpathfilter import (
    AddManyError,
    DocumentError,
    DocumentLimits,
    NamespaceError,
    UnknownSubscription,
    XPathFilterError,
    XPathIndex,
    XPathSyntaxError,
)

BAD_EXPRESSIONS = {
    "a_predicate_without_a_step": ("//book/[price]", 8, "a node test"),
    "an_open_bracket": ("//a[b", 6, "an operator or ']'"),
    "nothing": ("", 1, "an expression"),
    "an_undeclared_prefix": ("//a/p:b", 5, "a declared prefix"),
    "an_unknown_function": ("//a[lower-case(b) = 'x']", 5, "a function of XPath 1.0"),
    "a_variable": ("//a[@x = $x]", 10, "an expression"),
    "an_argument_of_the_wrong_type": ("count('a')", 7, "a node-set"),
    "a_path_from_a_literal": ("//a = 'x'/b", 7, "a node-set"),
    "a_path_from_a_number": ("/a = 1/b", 6, "a node-set"),
    "a_path_from_a_truth": ("boolean(/a)/b", 1, "a node-set"),
    "a_control_character": ("//a[. = '\x01']", 10, "a character that XML allows"),
    "an_end_of_text": ("//a\x00/b", 4, "a character that XML allows"),
    "half_a_character": ("//a[. = '\ud800']", 10, "a character that XML allows"),
}


@pytest.fixture
def index() -> XPathIndex:
    """Two good subscriptions that must survive what follows."""
    index = XPathIndex()
    index.add_many(["//a", "count(//a) = 1"])
    return index


@pytest.mark.parametrize("text, column, expected", BAD_EXPRESSIONS.values(), ids=BAD_EXPRESSIONS)
def test_an_error_says_what_was_expected_and_points(index: XPathIndex, text: str, column: int, expected: str) -> None:
    with pytest.raises(XPathSyntaxError) as caught:
        index.add(text)
    error = caught.value
    assert (error.text, error.column, error.expected) == (text, column, expected)
    first, _, caret = str(error).split("\n")
    assert first.startswith(f"expected {expected} at column {column}")
    assert caret == " " * (column + 1) + "^"
    assert index.match("<a/>").tolist() == [1, 2]


def test_an_error_is_drawn_as_promised(index: XPathIndex) -> None:
    with pytest.raises(XPathSyntaxError) as caught:
        index.add("//book/[price]")
    assert str(caught.value) == "expected a node test at column 8\n  //book/[price]\n         ^"


@pytest.mark.parametrize("text, column, expected", BAD_EXPRESSIONS.values(), ids=BAD_EXPRESSIONS)
def test_add_many_refuses_what_add_refuses(index: XPathIndex, text: str, column: int, expected: str) -> None:
    with pytest.raises(AddManyError) as caught:
        index.add_many(["//a", text, "//b"])
    ((position, error),) = caught.value.errors
    assert (position, error.text, error.column, error.expected) == (1, text, column, expected)
    assert isinstance(caught.value, XPathFilterError)


def test_add_many_reports_every_bad_one_and_loads_none(index: XPathIndex) -> None:
    with pytest.raises(AddManyError) as caught:
        index.add_many(["//a", "a[", "//b", "//", "f()", "//c"])
    assert [position for position, _ in caught.value.errors] == [1, 3, 4]
    assert [error.text for _, error in caught.value.errors] == ["a[", "//", "f()"]
    assert "3 expressions were refused" in str(caught.value)
    assert len(index) == 2
    assert index.match("<a/>").tolist() == [1, 2]


def test_add_many_can_load_the_good_ones(index: XPathIndex) -> None:
    errors: list[Any] = [(99, "kept")]
    ids = index.add_many(["//a", "a[", "//b", "//", "not(//c)"], errors=errors).tolist()
    assert [number < 0 for number in ids] == [False, True, False, True, False]
    assert ids[1] == ids[3] == -1
    assert [position for position, _ in errors] == [99, 1, 3]
    assert all(isinstance(error, XPathSyntaxError) for _, error in errors[1:])
    assert index.match("<a/>").tolist() == [1, 2, ids[0], ids[4]]


def test_add_many_may_find_nothing_good(index: XPathIndex) -> None:
    errors: list[Any] = []
    assert index.add_many(["a[", "b["], errors=errors).tolist() == [-1, -1]
    assert len(errors) == 2
    assert len(index) == 2


def test_a_large_batch_keeps_its_positions(index: XPathIndex) -> None:
    texts = [f"//a{number}/b[" if number % 1000 == 7 else f"//a{number}/b" for number in range(40_000)]
    errors: list[Any] = []
    ids = index.add_many(texts, errors=errors)
    assert [position for position, _ in errors] == list(range(7, 40_000, 1000))
    assert (ids < 0).sum() == 40
    assert index.match("<a39999><b/></a39999>").tolist() == [ids[39_999]]


BAD_NAMESPACES: dict[str, tuple[dict[Any, Any], type[Exception]]] = {
    "an_empty_prefix": ({"": "urn:p"}, NamespaceError),
    "an_empty_uri": ({"p": ""}, NamespaceError),
    "xml_elsewhere": ({"xml": "urn:p"}, NamespaceError),
    "no_text": ({"p": 7}, TypeError),
}


@pytest.mark.parametrize("namespaces, error", BAD_NAMESPACES.values(), ids=BAD_NAMESPACES)
@pytest.mark.parametrize("text", ["//p:a", "//a", "a["])
def test_a_useless_namespace_map_is_refused(
    index: XPathIndex, namespaces: dict[Any, Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error):
        index.add(text, namespaces)
    with pytest.raises(error):
        index.add_many(["//a", text], namespaces)
    with pytest.raises(error):
        index.add_many([text], namespaces, errors=[])
    assert len(index) == 2


@pytest.mark.parametrize("text", [b"//a", None, 7])
def test_an_expression_must_be_text(index: XPathIndex, text: Any) -> None:
    with pytest.raises(TypeError):
        index.add(text)
    with pytest.raises(TypeError):
        index.add_many(["//a", text])
    assert len(index) == 2


def test_a_single_text_is_not_many_expressions(index: XPathIndex) -> None:
    with pytest.raises(TypeError):
        index.add_many("//a")
    assert len(index) == 2


BAD_DOCUMENTS = {
    "not_closed": ("<a>", 1, "Premature end"),
    "two_roots": ("<a/><b/>", 1, "content"),
    "not_xml": ("{}", 1, "expected '<'"),
    "empty": ("", None, "empty document"),
    "undeclared_prefix": ("<p:a/>", 1, "(?i)prefix p"),
    "entities": ("<!DOCTYPE a [<!ENTITY e 'x'>]><a>&e;</a>", 1, "declares entities"),
    "bad_bytes": (b"<a>\xff</a>", 1, "(?i)encod|utf"),
    "too_deep": ("<a>" * 2000 + "</a>" * 2000, 1, "too deep"),
}


@pytest.mark.parametrize("algorithm", ["suffix", "delta"])
@pytest.mark.parametrize("document, line, reason", BAD_DOCUMENTS.values(), ids=BAD_DOCUMENTS)
def test_a_bad_document_is_refused_with_its_place(
    document: bytes | str, line: int | None, reason: str, algorithm: str
) -> None:
    index = XPathIndex(algorithm=algorithm)
    subscription = index.add("//a")
    for ask in (index.match, lambda text: index.explain(subscription, text)):
        with pytest.raises(DocumentError, match=reason) as caught:
            ask(document)
        assert caught.value.line == line
    assert index.match("<a/>").tolist() == [subscription]


def test_limits_are_the_indexs_own() -> None:
    small = XPathIndex(limits=DocumentLimits(max_bytes=20, max_depth=2))
    small.add("//b")
    assert small.match("<a><b/></a>").tolist() == [1]
    with pytest.raises(DocumentError, match="too large: 27 bytes"):
        small.match("<a><b>and twelve</b>more</a>"[:27])
    with pytest.raises(DocumentError, match="too deep"):
        small.match("<a><b><c/></b></a>")
    assert isinstance(small.match_many(["<a><b/></a>", "<a><b><c/></b></a>"])[1], DocumentError)


def test_entities_can_be_allowed() -> None:
    index = XPathIndex(limits=DocumentLimits(allow_entities=True))
    index.add("/a[. = 'x']/b")
    index.add("string-length(/a) = 1")
    assert index.match("<!DOCTYPE a [<!ENTITY e '<b>x</b>'>]><a>&e;</a>").tolist() == [1, 2]


@pytest.mark.parametrize("document", [None, 7, ["<a/>"]])
def test_a_document_must_be_bytes_or_text(index: XPathIndex, document: Any) -> None:
    with pytest.raises(TypeError):
        index.match(document)


def test_an_unknown_subscription_cannot_be_removed(index: XPathIndex) -> None:
    index.remove(1)
    for unknown in (1, 3, 0, -1, 2**62):
        with pytest.raises(UnknownSubscription) as caught:
            index.remove(unknown)
        assert caught.value.subscription_id == unknown
    assert index.match("<a/>").tolist() == [2]


def test_an_unknown_algorithm_is_refused() -> None:
    with pytest.raises(ValueError, match="suffix"):
        XPathIndex(algorithm="prefix")
