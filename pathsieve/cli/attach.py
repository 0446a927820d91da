"""pathsieve attach: notifications as they come."""

from typing import Annotated

import typer

from pathsieve.attachment import Attachment
from pathsieve.cli.connection import Connection, connected
from pathsieve.cli.facts import message_facts
from pathsieve.cli.filters import BooleanOption, NamespaceOption, XPathOption, filter_of
from pathsieve.cli.printing import Output, OutputOption, console, counted, note, print_json
from pathsieve.client import Client
from pathsieve.delivery_calls import EXCLUSIVE, SHARED
from pathsieve.messages import Message

__all__ = ["attach"]

SHOWN = 100
"""Characters of a document on a line."""


@connected
def attach(
    connection: Connection,
    names: Annotated[list[str] | None, typer.Argument(help="Ids of subscriptions; - is all of them.")] = None,
    ephemeral: Annotated[
        bool, typer.Option("--ephemeral", help="A filter that lives as long as this command, and keeps nothing.")
    ] = False,
    xpath: XPathOption = "",
    boolean: BooleanOption = "",
    namespace: NamespaceOption = [],
    ack: Annotated[bool, typer.Option("--ack/--no-ack", help="Acknowledge what is printed.")] = True,
    count: Annotated[int, typer.Option(help="Leave after so many messages; 0: never.")] = 0,
    idle: Annotated[float, typer.Option(help="Leave when nothing has come for so many seconds; 0: never.")] = 0.0,
    shared: Annotated[bool, typer.Option("--shared", help="Share the messages with other consumers.")] = False,
    consumer: Annotated[str, typer.Option(help="Your name: who comes back under it takes over.")] = "",
    output: OutputOption = Output.TABLE,
) -> None:
    """Print notifications as they come, until you press Ctrl-C.

    What was printed is acknowledged; with --no-ack it stays, and comes again. After a broken connection it goes on
    by itself. -o json prints a whole document on each line.

      $ pathsieve attach ibm

      $ pathsieve attach - -o json | jq .document.xml

      $ pathsieve attach --ephemeral --xpath "//quote[price > 100]" --count 10
    """
    if ephemeral == bool(names):
        raise typer.BadParameter("expected names of subscriptions, or --ephemeral with a filter", param_hint="NAMES")
    with connection.open() as client:
        mode = SHARED if shared else EXCLUSIVE
        if ephemeral:
            attachment = client.attach(ephemeral=filter_of(xpath, boolean, namespace))
        else:
            attachment = client.attach(names or [], mode=mode, consumer=consumer, credit=_credit(count))
        _follow(client, attachment, ack, count, idle, output)


def _credit(count: int) -> int:
    """Not to take more from others than is printed."""
    return min(count, 1000) or 1000


def _follow(client: Client, attachment: Attachment, ack: bool, count: int, idle: float, output: Output) -> None:
    n_messages = 0
    try:
        with attachment:
            while message := attachment.receive(idle or None):
                _print(message, output)
                n_messages += 1
                if ack:
                    message.ack()
                if n_messages == count:
                    break
    except KeyboardInterrupt:
        pass
    finally:
        breaks = f", over {attachment.n_breaks + 1} connections" if attachment.n_breaks else ""
        note(counted(n_messages, "message") + breaks)


def _print(message: Message, output: Output) -> None:
    if output is Output.JSON:
        print_json(message_facts(message))
        return
    name, sequence = message.matches[0]
    others = f" and {message.n_matches - 1:,} more" if message.n_matches > 1 else ""
    again = f" (attempt {message.attempt})" if message.attempt > 1 else ""
    place = f"{name.removeprefix('subscriptions/')} {sequence or ''}".strip()
    screen = console()
    line = f"{place}{others}  {message.document.id}{again}  {_shown(message)}"
    screen.print(line[: screen.width], markup=False, soft_wrap=True)


def _shown(message: Message) -> str:
    """The beginning of a document on one line; its attributes if it has no XML."""
    text = " ".join(message.xml.decode(errors="replace").split())
    text = text or ", ".join(f"{name}={value}" for name, value in message.document.attributes.items())
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"
