"""What can go wrong with a subscription or a document.

    XPathFilterError
    ├── XPathSyntaxError     (a ValueError)   an expression is not XPath 1.0: what was expected, and where
    ├── AddManyError         (a ValueError)   some expressions of a batch were refused
    ├── NamespaceError       (a ValueError)   a prefix → URI map cannot be used
    ├── DocumentError        (a ValueError)   a document cannot be read
    └── UnknownSubscription  (a KeyError)     no subscription has this id

Every error carries its facts as attributes, says them in `str()`, and survives pickling. Text that
someone else wrote is made printable first, so that showing an error never fails.
"""

import unicodedata

__all__ = [
    "AddManyError",
    "DocumentError",
    "NamespaceError",
    "UnknownSubscription",
    "XPathFilterError",
    "XPathSyntaxError",
]

WINDOW = 72
"""How many characters of a long expression are shown around the place an error points at."""

N_SHOWN = 5
"""How many refused expressions of a batch are shown; the rest is only counted."""


class XPathFilterError(Exception):
    """The root of all errors that xpathfilter raises of its own accord."""


class XPathSyntaxError(XPathFilterError, ValueError):
    """An expression was refused; `column` counts from 1.

    >>> print(XPathSyntaxError("//book/[price]", 8, "a node test"))
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
        hint = f": {_printable(self.hint)}" if self.hint else ""
        return f"expected {self.expected} at column {self.column}{hint}\n{_point(self.text, self.column)}"


class AddManyError(XPathFilterError, ValueError):
    """Some expressions of a batch were refused: `errors` holds (position in the batch, error) pairs."""

    def __init__(self, errors: list[tuple[int, XPathSyntaxError]]) -> None:
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


class NamespaceError(XPathFilterError, ValueError):
    """A prefix → URI map was refused because of `prefix`; `reason` says why."""

    def __init__(self, prefix: str, reason: str) -> None:
        super().__init__(prefix, reason)
        self.prefix = prefix
        self.reason = reason

    def __str__(self) -> str:
        return f"namespace prefix '{_printable(self.prefix)}': {self.reason}"


class DocumentError(XPathFilterError, ValueError):
    """A document was refused; where that is known, it has a place, counted from 1. `hint` says what to do.

    >>> print(DocumentError("the document declares entities", 3, 7, "write out what they stand for"))
    the document declares entities at line 3, column 7; write out what they stand for
    """

    def __init__(self, reason: str, line: int | None = None, column: int | None = None, hint: str = "") -> None:
        super().__init__(reason, line, column, hint)
        self.reason = reason
        self.line = line
        self.column = column
        self.hint = hint

    def __str__(self) -> str:
        column = "" if self.column is None else f", column {self.column}"
        place = "" if self.line is None else f" at line {self.line}{column}"
        hint = f"; {self.hint}" if self.hint else ""
        return f"{_printable(self.reason)}{place}{hint}"


class UnknownSubscription(XPathFilterError, KeyError):  # noqa: N818  a fact, not a fault
    """There is no subscription `subscription_id`: never was, or not any more."""

    def __init__(self, subscription_id: int) -> None:
        super().__init__(subscription_id)
        self.subscription_id = subscription_id

    def __str__(self) -> str:
        return f"there is no subscription {self.subscription_id}"


def _point(text: str, column: int) -> str:
    """Return the part of `text` around `column` on one line, and a caret under the column."""
    place = column - 1
    start = max(0, place - WINDOW // 2)
    stop = start + WINDOW
    before = ("…" if start else "") + _printable(text[start:place])
    after = _printable(text[place:stop]) + ("…" if stop < len(text) else "")
    return f"  {before}{after}\n  {' ' * _width(before)}^"


def _printable(text: str) -> str:
    """Replace tabs, line ends, controls and lone surrogates by spaces, one for one."""
    return "".join(character if character.isprintable() else " " for character in text)


def _width(text: str) -> int:
    """Return how many terminal cells `text` takes: two for a wide character, none for a combining one."""
    return sum(0 if unicodedata.combining(c) else 1 + (unicodedata.east_asian_width(c) in "WF") for c in text)
