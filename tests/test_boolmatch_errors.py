"""Errors carry facts, point at the place, and can be shown and sent anywhere."""

import pickle

import pytest

from boolmatch.errors import (
    AddManyError,
    BooleanMatchError,
    BooleanSyntaxError,
    EventError,
    UndecidedAtomError,
    UnknownSubscription,
)

SYNTAX_ERROR = BooleanSyntaxError("price >", 8, "a constant")

ERRORS = {
    "syntax": (SYNTAX_ERROR, ValueError, ["text", "column", "expected", "hint"]),
    "batch": (AddManyError([(3, SYNTAX_ERROR)]), ValueError, []),
    "event": (EventError("a", "is bad", "mend it", 7), ValueError, ["attribute", "reason", "hint", "position"]),
    "undecided": (UndecidedAtomError("XPATH '//a'", 8), ValueError, ["text", "column"]),
    "unknown_subscription": (UnknownSubscription(7), KeyError, ["subscription_id"]),
}

MESSAGES = {
    "a_caret_stands_under_the_column": (SYNTAX_ERROR, "expected a constant at column 8\n  price >\n         ^"),
    "a_hint_follows_the_column": (
        BooleanSyntaxError("a = b", 5, "a constant", "two attributes"),
        "expected a constant at column 5: two attributes\n  a = b\n      ^",
    ),
    "controls_and_surrogates_are_not_printed": (
        BooleanSyntaxError("\x00\ud800]", 3, "a condition", "\ud800"),
        "expected a condition at column 3:  \n    ]\n    ^",
    ),
    "an_event": (EventError("a", "is bad"), "attribute 'a': is bad"),
    "an_event_of_a_batch": (EventError("a", "is bad", position=0), "event 0, attribute 'a': is bad"),
    "an_event_without_an_attribute": (EventError("", "is bad", "mend it"), "is bad; mend it"),
    "an_event_with_strange_text": (EventError("\ud800", "is \x07"), "attribute ' ': is  "),
    "nobody_decides": (
        UndecidedAtomError("a AND XPATH '//a'", 14),
        "the XPATH at column 14 needs a decider\n  a AND XPATH '//a'\n               ^",
    ),
    "an_unknown_id_is_a_plain_sentence": (UnknownSubscription(7), "there is no subscription 7"),
    "a_batch": (
        AddManyError([(3, SYNTAX_ERROR), (5, UndecidedAtomError("XPATH ''", 8))]),
        "2 expressions were refused\n  at position 3: expected a constant at column 8\n    price >\n           ^\n"
        "  at position 5: the XPATH at column 8 needs a decider\n    XPATH ''\n           ^",
    ),
}


@pytest.mark.parametrize("error, message", MESSAGES.values(), ids=MESSAGES)
def test_the_message_of(error: BooleanMatchError, message: str) -> None:
    assert str(error) == message


@pytest.mark.parametrize("error, builtin, facts", ERRORS.values(), ids=ERRORS)
def test_every_error_has_the_root_class_and_survives_pickling(
    error: BooleanMatchError, builtin: type[Exception], facts: list[str]
) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert isinstance(error, BooleanMatchError)
    assert isinstance(error, builtin)
    assert type(copy) is type(error)
    assert str(copy) == str(error)
    assert [getattr(copy, fact) for fact in facts] == [getattr(error, fact) for fact in facts]
