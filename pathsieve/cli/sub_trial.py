"""pathsieve sub test, sub explain: does a filter want a document, and why?"""

from collections.abc import Callable
from typing import Annotated

import typer

from pathsieve.cli.connection import Connection, connected
from pathsieve.cli.exits import REFUSED
from pathsieve.cli.facts import value_facts
from pathsieve.cli.filters import BooleanOption, NamespaceOption, XPathOption, filter_of
from pathsieve.cli.local import tried_locally
from pathsieve.cli.pairs import read_attributes
from pathsieve.cli.printing import Output, OutputOption, console, print_json
from pathsieve.cli.sources import STDIN, read_xml
from pathsieve.documents import Document
from pathsieve.results import Tested

__all__ = ["explain", "trial"]

DocumentArgument = Annotated[str, typer.Argument(help="A file; - is stdin.", show_default=False)]
SubscriptionOption = Annotated[str, typer.Option("--subscription", "-s", help="A stored one, by its id.")]
AttributeOption = Annotated[
    list[str], typer.Option("--attribute", "-a", metavar="KEY=VALUE", help="Of the document. Repeatable.")
]
LocalOption = Annotated[bool, typer.Option("--local", help="Without a server: the engines run here.")]


@connected
def trial(
    connection: Connection,
    document: DocumentArgument = STDIN,
    subscription: SubscriptionOption = "",
    xpath: XPathOption = "",
    boolean: BooleanOption = "",
    namespace: NamespaceOption = [],
    attribute: AttributeOption = [],
    local: LocalOption = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Would a filter want this document? Exit code 0 if it does, 1 if not.

    Nothing is stored or delivered.

      $ pathsieve sub test --xpath "//quote[price > 100]" quote.xml

      $ pathsieve sub test -s ibm quote.xml

      $ echo "<quote/>" | pathsieve sub test --local --boolean "price > 100 AND XPATH '//quote'" -a price=120
    """
    tested = _tested(connection, document, subscription, xpath, boolean, namespace, attribute, local)
    _end(tested, output, lambda: "matches" if tested else "does not match")


@connected
def explain(
    connection: Connection,
    document: DocumentArgument = STDIN,
    subscription: SubscriptionOption = "",
    xpath: XPathOption = "",
    boolean: BooleanOption = "",
    namespace: NamespaceOption = [],
    attribute: AttributeOption = [],
    local: LocalOption = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Like `test`, and say why: which parts of the filter held, which did not, and what attributes it saw.

    pathsieve sub explain -s ibm quote.xml

    pathsieve sub explain --local --xpath "//quote[@symbol='IBM' and price > 100]" quote.xml
    """
    tested = _tested(connection, document, subscription, xpath, boolean, namespace, attribute, local)
    _end(tested, output, lambda: "\n".join([tested.explanation, *_attribute_lines(tested)]))


def _tested(
    connection: Connection,
    document: str,
    subscription: str,
    xpath: str,
    boolean: str,
    namespace: list[str],
    attribute: list[str],
    local: bool,
) -> Tested:
    if subscription and (xpath or boolean or local):
        raise typer.BadParameter("a stored one goes with neither a filter nor --local", param_hint="--subscription")
    attributes = read_attributes("--attribute", attribute)
    chosen = None if subscription else filter_of(xpath, boolean, namespace)
    xml = read_xml(document)
    if local and chosen:
        return tried_locally(chosen, xml, attributes)
    with connection.open() as client:
        return client.test(chosen or subscription, Document(xml, attributes=attributes))


def _attribute_lines(tested: Tested) -> list[str]:
    return [f"  {name} = {value_facts(value)!r}" for name, value in tested.attributes.items()]


def _end(tested: Tested, output: Output, words: Callable[[], str]) -> None:
    if output is Output.JSON:
        attributes = {name: value_facts(value) for name, value in tested.attributes.items()}
        print_json({"matches": tested.matches, "explanation": tested.explanation, "attributes": attributes})
    else:
        console().print(words(), markup=False)
    if not tested:
        raise typer.Exit(REFUSED)
