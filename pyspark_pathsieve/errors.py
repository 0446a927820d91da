"""What can go wrong between Spark and a server.

    ConnectorError
    ├── OptionError          an option is unknown, missing or not what was expected: `option`, `given`
    ├── ColumnError          a column is not there, or has a type that cannot be used: `option`, `column`, `found`
    ├── CannotConnect        no server answers, or it refuses who asks: `endpoint`
    ├── MalformedDocument    a document was refused: `document_id`, `partition`, `row`, `line`, `column`
    ├── UnknownSubscription  the server has no subscription of this name: `subscription`
    ├── DataLost             what comes next is past retention: `subscription`, `first`, `dropped`
    ├── BatchLost            what was staged of a batch is not there any more: `query`, `batch`
    └── UnknownSpark         this Spark does not tell what the connector needs to know: `version`

`facts` has all of them by name. Errors survive pickling. Spark itself passes on only their text: what a user catches
is Spark's own exception, with the name of the class and these words in it.
"""

from collections.abc import Mapping
from typing import Any

__all__ = [
    "BatchLost",
    "CannotConnect",
    "ColumnError",
    "ConnectorError",
    "DataLost",
    "MalformedDocument",
    "OptionError",
    "UnknownSpark",
    "UnknownSubscription",
]


class ConnectorError(Exception):
    """The root of all errors of the connector. `facts` are for programs, `str()` for people."""

    def __init__(self, message: str, facts: Mapping[str, Any] | None = None) -> None:
        super().__init__(message, dict(facts or {}))
        self.message = message
        self.facts: dict[str, Any] = dict(facts or {})

    def __str__(self) -> str:
        return self.message


def _fact(name: str, doc: str) -> Any:
    return property(lambda error: error.facts.get(name), doc=doc)


class OptionError(ConnectorError):
    """An option is unknown, missing or not what was expected."""

    option: str = _fact("option", "Its name.")
    given: str | None = _fact("given", "What it was set to, if it was set.")


class ColumnError(ConnectorError):
    """A column is not there, or has a type that cannot be used."""

    option: str = _fact("option", "Which option names the column.")
    column: str = _fact("column", "The name of the column.")
    found: str | None = _fact("found", "The type it has, if it is there.")


class CannotConnect(ConnectorError):
    """No server answers, or it refuses who asks."""

    endpoint: str = _fact("endpoint", "Who was asked.")


class MalformedDocument(ConnectorError):
    """A document was refused."""

    document_id: str | None = _fact("document_id", "Its id, if it has one.")
    partition: int = _fact("partition", "The partition of the data frame that it is in.")
    row: int = _fact("row", "Which row of the partition, counted from 0.")
    line: int | None = _fact("line", "Where in the document, counted from 1, if that is known.")
    column: int | None = _fact("column", "Where in the line, counted from 1, if that is known.")


class UnknownSubscription(ConnectorError):
    """The server has no subscription of this name, or it is another tenant's."""

    subscription: str = _fact("subscription", "Its id.")


class DataLost(ConnectorError):
    """What comes next is not there: retention has dropped it, or the subscription is a new one of the same name."""

    subscription: str = _fact("subscription", "Its id; - is all of the tenant.")
    first: int = _fact("first", "What comes next: a sequence, or a position.")
    dropped: int = _fact("dropped", "The newest that was dropped.")


class BatchLost(ConnectorError):
    """What was staged of a batch is not there any more, so nothing of it was published."""

    query: str = _fact("query", "The query or transaction.")
    batch: int = _fact("batch", "Which batch of it.")


class UnknownSpark(ConnectorError):
    """This Spark does not tell what the connector needs to know."""

    version: str = _fact("version", "Of Spark.")
