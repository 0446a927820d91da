"""The options that say which filter is meant."""

from typing import Annotated

import typer
from rich.markup import escape

from pathsieve.cli.pairs import read_pairs
from pathsieve.subscriptions import Filter

__all__ = ["BooleanOption", "NamespaceOption", "XPathOption", "filter_of"]

XPathOption = Annotated[
    str, typer.Option("--xpath", help=escape("An XPath 1.0 expression, such as //quote[@symbol='IBM']."))
]
BooleanOption = Annotated[
    str, typer.Option("--boolean", help="A condition on attributes, such as price > 100; may hold XPATH '…'.")
]
NamespaceOption = Annotated[
    list[str], typer.Option("--namespace", "--ns", metavar="PREFIX=URI", help="Of the XPath expressions. Repeatable.")
]


def filter_of(xpath: str, boolean: str, namespaces: list[str]) -> Filter:
    """The filter that the options describe."""
    if bool(xpath) == bool(boolean):
        raise typer.BadParameter("expected one of the two", param_hint="--xpath / --boolean")
    return Filter(xpath, boolean, read_pairs("--namespace", namespaces))
