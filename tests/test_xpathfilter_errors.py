"""Errors carry facts, point at the place, and can be shown and sent anywhere."""

import pickle

import pytest

from xpathfilter.errors import (
    AddManyError,
    DocumentError,
    NamespaceError,
    UnknownSubscription,
    XPathFilterError,
    XPathSyntaxError,
)

SYNTAX_ERROR = XPathSyntaxError("//book/[price]", 8, "a node test")

ERRORS = {
    "syntax": (SYNTAX_ERROR, ValueError, ["text", "column", "expected", "hint"]),
    "batch": (AddManyError([(3, SYNTAX_ERROR)]), ValueError, []),
    "namespace": (NamespaceError("p", "is bad"), ValueError, ["prefix", "reason"]),
    "document": (
        DocumentError("no end tag", 3, 7, "add it"),
        ValueError,
        ["reason", "line", "column", "hint"],
    ),
    "unknown_subscription": (UnknownSubscription(7), KeyError, ["subscription_id"]),
}

MESSAGES = {
    "a_caret_stands_under_the_column": (
        SYNTAX_ERROR,
        "expected a node test at column 8\n  //book/[price]\n         ^",
    ),
    "a_hint_follows_the_column": (
        XPathSyntaxError("f()", 1, "a function", "'f' is none"),
        "expected a function at column 1: 'f' is none\n  f()\n  ^",
    ),
    "tabs_and_line_ends_take_one_cell": (
        XPathSyntaxError("a\t\n/]", 5, "a node test"),
        "expected a node test at column 5\n  a  /]\n      ^",
    ),
    "controls_and_surrogates_are_not_printed": (
        XPathSyntaxError("\x00\ud800]", 3, "an expression"),
        "expected an expression at column 3\n    ]\n    ^",
    ),
    "wide_and_combining_characters_keep_the_caret_in_place": (
        XPathSyntaxError("名e\u0301]", 4, "an operator"),
        "expected an operator at column 4\n  名e\u0301]\n     ^",
    ),
    "the_caret_may_stand_behind_the_text": (
        XPathSyntaxError("(a", 3, "')'"),
        "expected ')' at column 3\n  (a\n    ^",
    ),
    "a_place_in_a_document": (DocumentError("no end tag", 3, 7), "no end tag at line 3, column 7"),
    "a_line_without_a_column": (DocumentError("no end tag", 3), "no end tag at line 3"),
    "a_hint_follows_the_place": (
        DocumentError("it declares entities", 3, 7, "write them out"),
        "it declares entities at line 3, column 7; write them out",
    ),
    "a_hint_without_a_place": (DocumentError("too large", hint="send parts"), "too large; send parts"),
    "a_document_refused_as_a_whole": (DocumentError("it declares entities"), "it declares entities"),
    "what_a_document_said_is_made_printable": (DocumentError("a \ud800\x07", 1), "a    at line 1"),
    "an_unknown_id_is_a_plain_sentence": (UnknownSubscription(7), "there is no subscription 7"),
    "a_prefix_is_named": (NamespaceError("p", "is bad"), "namespace prefix 'p': is bad"),
}


@pytest.mark.parametrize("error, message", MESSAGES.values(), ids=MESSAGES)
def test_the_message_of(error: XPathFilterError, message: str) -> None:
    assert str(error) == message


@pytest.mark.parametrize("error, builtin, facts", ERRORS.values(), ids=ERRORS)
def test_every_error_has_the_root_class_and_survives_pickling(
    error: XPathFilterError, builtin: type[Exception], facts: list[str]
) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert isinstance(error, XPathFilterError)
    assert isinstance(error, builtin)
    assert type(copy) is type(error)
    assert str(copy) == str(error)
    assert [getattr(copy, fact) for fact in facts] == [getattr(error, fact) for fact in facts]


@pytest.mark.parametrize("column", [1, 37, 38, 500, 962, 1000, 1001])
def test_a_long_expression_is_shown_around_the_column(column: int) -> None:
    text = "".join(chr(ord("a") + place % 26) for place in range(1000))
    _, shown, caret = str(XPathSyntaxError(text, column, "x")).split("\n")
    pointed_at = shown[caret.index("^") :][:1]
    assert len(shown) < 80
    assert pointed_at == text[column - 1 : column]
    assert shown.startswith("  …") == (column > 37)


def test_a_batch_shows_its_first_five_errors_and_counts_the_rest() -> None:
    errors = [(position, XPathSyntaxError("a]", 2, f"reason-{position}")) for position in range(10, 18)]
    message = str(AddManyError(errors))
    assert message.startswith("8 expressions were refused\n")
    assert "\n  at position 10: expected reason-10 at column 2\n    a]\n     ^\n" in message
    assert "reason-14" in message
    assert "reason-15" not in message
    assert message.endswith("\n  and 3 more")


def test_a_batch_with_one_error_says_so() -> None:
    assert str(AddManyError([(0, SYNTAX_ERROR)])).startswith("1 expression was refused\n  at position 0: ")
