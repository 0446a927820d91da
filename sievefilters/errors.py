"""What can go wrong with filters beyond what the engines say themselves.

    ExtractorError (also a ValueError)     an extractor, or a prefix that extractors use, cannot be compiled

The errors of the engines (`XPathSyntaxError`, `BooleanSyntaxError`, `DocumentError`, `EventError`, …) pass through as
they are.
"""

from sievecore.errors import SieveError

__all__ = ["ExtractorError"]


class ExtractorError(SieveError, ValueError):
    """`field` (extractors.price, namespaces.q) is not what was expected; `column` tells where, if that is known."""

    def __init__(self, field: str, reason: str, column: int | None = None) -> None:
        super().__init__(field, reason, column)
        self.field = field
        self.reason = reason
        self.column = column

    def __str__(self) -> str:
        return f"{self.field}: {self.reason}"
