"""What can go wrong with a Boolean subscription or an event.

    BooleanMatchError
    ├── BooleanSyntaxError   (a ValueError)   an expression is not in the language: what was expected, and where
    ├── AddManyError         (a ValueError)   some expressions of a batch were refused
    ├── EventError           (a ValueError)   an event holds a value that cannot be matched
    ├── UndecidedAtomError   (a ValueError)   an XPATH atom, and nobody to decide it
    └── UnknownSubscription  (a KeyError)     no subscription has this id

Every error carries its facts as attributes, says them in `str()`, and survives pickling. Text that
someone else wrote is made printable first, so that showing an error never fails.
"""

from sievecore.refusals import RefusedBatch, RefusedText, UnknownId, point, printable

__all__ = [
    "AddManyError",
    "BooleanMatchError",
    "BooleanSyntaxError",
    "EventError",
    "UndecidedAtomError",
    "UnknownSubscription",
]


class BooleanMatchError(Exception):
    """The root of all errors that boolmatch raises of its own accord."""


class BooleanSyntaxError(RefusedText, BooleanMatchError, ValueError):
    """An expression was refused; `column` counts from 1.

    >>> print(BooleanSyntaxError("price >", 8, "a constant"))
    expected a constant at column 8
      price >
             ^
    """


class UndecidedAtomError(BooleanMatchError, ValueError):
    """The expression `text` has an XPATH atom at `column`, and the index has no decider to ask.

    >>> print(UndecidedAtomError("XPATH '//a'", 8))
    the XPATH at column 8 needs a decider
      XPATH '//a'
             ^
    """

    def __init__(self, text: str, column: int) -> None:
        super().__init__(text, column)
        self.text = text
        self.column = column

    def __str__(self) -> str:
        return f"the XPATH at column {self.column} needs a decider\n{point(self.text, self.column)}"


class AddManyError(RefusedBatch[BooleanSyntaxError | UndecidedAtomError], BooleanMatchError, ValueError):
    """Some expressions of a batch were refused: `errors` holds (position in the batch, error) pairs."""


class EventError(BooleanMatchError, ValueError):
    """An event was refused because of `attribute`; in a batch, `position` says which event.

    >>> print(EventError("price", "NaN is no number to compare with", "leave the attribute out", position=3))
    event 3, attribute 'price': NaN is no number to compare with; leave the attribute out
    """

    def __init__(self, attribute: str, reason: str, hint: str = "", position: int | None = None) -> None:
        super().__init__(attribute, reason, hint, position)
        self.attribute = attribute
        self.reason = reason
        self.hint = hint
        self.position = position

    def __str__(self) -> str:
        event = [] if self.position is None else [f"event {self.position}"]
        attribute = [f"attribute '{printable(self.attribute)}'"] if self.attribute else []
        place = ", ".join(event + attribute)
        hint = f"; {self.hint}" if self.hint else ""
        return f"{place}{': ' if place else ''}{printable(self.reason)}{hint}"


class UnknownSubscription(UnknownId, BooleanMatchError, KeyError):  # noqa: N818  a fact, not a fault
    """There is no subscription `subscription_id`: never was, or not any more."""
