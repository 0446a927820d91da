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

from sievecore.refusals import RefusedBatch, RefusedText, UnknownId, printable

__all__ = [
    "AddManyError",
    "DocumentError",
    "NamespaceError",
    "UnknownSubscription",
    "XPathFilterError",
    "XPathSyntaxError",
]


class XPathFilterError(Exception):
    """The root of all errors that xpathfilter raises of its own accord."""


class XPathSyntaxError(RefusedText, XPathFilterError, ValueError):
    """An expression was refused; `column` counts from 1.

    >>> print(XPathSyntaxError("//book/[price]", 8, "a node test"))
    expected a node test at column 8
      //book/[price]
             ^
    """


class AddManyError(RefusedBatch[XPathSyntaxError], XPathFilterError, ValueError):
    """Some expressions of a batch were refused: `errors` holds (position in the batch, error) pairs."""


class NamespaceError(XPathFilterError, ValueError):
    """A prefix → URI map was refused because of `prefix`; `reason` says why."""

    def __init__(self, prefix: str, reason: str) -> None:
        super().__init__(prefix, reason)
        self.prefix = prefix
        self.reason = reason

    def __str__(self) -> str:
        return f"namespace prefix '{printable(self.prefix)}': {self.reason}"


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
        return f"{printable(self.reason)}{place}{hint}"


class UnknownSubscription(UnknownId, XPathFilterError, KeyError):  # noqa: N818  a fact, not a fault
    """There is no subscription `subscription_id`: never was, or not any more."""
