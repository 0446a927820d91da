"""What every engine says when it refuses a text, a batch of texts or an id.

    expected a node test at column 8          RefusedText: what was expected, where, and a caret under it
      //book/[price]
             ^
    2 expressions were refused                RefusedBatch: the first few of them, and how many more
      at position 3: expected …
    there is no subscription 7                UnknownId

These are the common halves of the engines' errors: an engine inherits from one of them and from its own root
class. Facts are attributes, errors survive pickling, and text that someone else wrote is made printable first,
so that showing an error never fails.
"""

import unicodedata
from typing import Generic, TypeVar

__all__ = ["RefusedBatch", "RefusedText", "UnknownId", "point", "printable"]

WINDOW = 72
"""How many characters of a long expression are shown around the place an error points at."""

N_SHOWN = 5
"""How many refused expressions of a batch are shown; the rest is only counted."""

Refusal = TypeVar("Refusal", bound=Exception)


class RefusedText(Exception):  # noqa: N818  half of an error
    """An expression was refused; `column` counts from 1.

    >>> print(RefusedText("//book/[price]", 8, "a node test"))
    expected a node test at column 8
      //book/[price]
             ^
    """

    def __init__(self, text: str, column: int, expected: str, hint: str = "") -> None:
        super().__init__(text, column, expected, hint)
        self.text = text
        self.column = column
        self.expected = expected
        self.hint = hint

    def __str__(self) -> str:
        hint = f": {printable(self.hint)}" if self.hint else ""
        return f"expected {self.expected} at column {self.column}{hint}\n{point(self.text, self.column)}"


class RefusedBatch(Exception, Generic[Refusal]):  # noqa: N818  half of an error
    """Some expressions of a batch were refused: `errors` holds (position in the batch, error) pairs."""

    def __init__(self, errors: list[tuple[int, Refusal]]) -> None:
        super().__init__(errors)
        self.errors = errors

    def __str__(self) -> str:
        refused = "1 expression was" if len(self.errors) == 1 else f"{len(self.errors)} expressions were"
        lines = [f"{refused} refused"]
        for position, error in self.errors[:N_SHOWN]:
            lines += f"at position {position}: {error}".splitlines()
        if len(self.errors) > N_SHOWN:
            lines.append(f"and {len(self.errors) - N_SHOWN} more")
        return "\n  ".join(lines)


class UnknownId(Exception):  # noqa: N818  half of an error
    """There is no subscription `subscription_id`: never was, or not any more."""

    def __init__(self, subscription_id: int) -> None:
        super().__init__(subscription_id)
        self.subscription_id = subscription_id

    def __str__(self) -> str:
        return f"there is no subscription {self.subscription_id}"


def point(text: str, column: int) -> str:
    """Return the part of `text` around `column` on one line, and a caret under the column."""
    place = column - 1
    start = max(0, place - WINDOW // 2)
    stop = start + WINDOW
    before = ("…" if start else "") + printable(text[start:place])
    after = printable(text[place:stop]) + ("…" if stop < len(text) else "")
    return f"  {before}{after}\n  {' ' * _width(before)}^"


def printable(text: str) -> str:
    """Replace tabs, line ends, controls and lone surrogates by spaces, one for one."""
    return "".join(character if character.isprintable() else " " for character in text)


def _width(text: str) -> int:
    """Return how many terminal cells `text` takes: two for a wide character, none for a combining one."""
    return sum(0 if unicodedata.combining(c) else 1 + (unicodedata.east_asian_width(c) in "WF") for c in text)
