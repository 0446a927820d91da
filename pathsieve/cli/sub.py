"""pathsieve sub: add, list, get and remove subscriptions; `sub_import` and `sub_trial` have the other commands."""

from collections.abc import Iterator
from itertools import islice
from typing import Annotated

import typer

from pathsieve.cli.connection import Connection, connected
from pathsieve.cli.facts import subscription_facts
from pathsieve.cli.filters import BooleanOption, NamespaceOption, XPathOption, filter_of
from pathsieve.cli.help_texts import help_of
from pathsieve.cli.pairs import read_pairs
from pathsieve.cli.printing import Output, OutputOption, counted, note, print_json, print_table
from pathsieve.cli.sub_import import import_
from pathsieve.cli.sub_trial import explain, trial
from pathsieve.subscriptions import DeliveryPolicy, Email, Schedule, Subscription, Webhook
from pathsieve.wishes import Wish

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, help="Subscriptions: which documents, delivered how.")

NONE = "no subscriptions; `pathsieve sub add --help` has examples"
SHOWN = 60
"""Characters of an expression in a list."""


@connected
def add(
    connection: Connection,
    xpath: XPathOption = "",
    boolean: BooleanOption = "",
    namespace: NamespaceOption = [],
    id: Annotated[str, typer.Option(help="How it is called; the server makes one up if it is left out.")] = "",
    label: Annotated[list[str], typer.Option(metavar="KEY=VALUE", help="For yourself. Repeatable.")] = [],
    webhook: Annotated[str, typer.Option(help="POST notifications to this URL.")] = "",
    webhook_secret: Annotated[str, typer.Option(envvar="PATHSIEVE_WEBHOOK_SECRET", help="Signs them.")] = "",
    email: Annotated[
        list[str], typer.Option(metavar="ADDRESS", help="Mail notifications to this address. Repeatable.")
    ] = [],
    subject: Annotated[str, typer.Option(help="Subject of the mails.")] = "",
    every: Annotated[
        float,
        typer.Option(metavar="SECONDS", show_default=False, help="At most once in so many seconds, all together."),
    ] = 0.0,
    cron: Annotated[str, typer.Option(help="At the times of a cron expression (UTC), all together.")] = "",
    ack_deadline: Annotated[
        float, typer.Option(metavar="SECONDS", show_default=False, help="When an unacknowledged message comes again.")
    ] = 0.0,
    max_attempts: Annotated[
        int, typer.Option(show_default=False, help="Attempts until it goes to the dead letters.")
    ] = 0,
    output: OutputOption = Output.TABLE,
) -> None:
    """Create a subscription.

    Every document that is published from then on meets it.

      $ pathsieve sub add --id ibm --xpath "//quote[@symbol='IBM' and price > 100]"

      $ pathsieve sub add --boolean "price BETWEEN 10 AND 20 AND NOT XPATH '//halted'"

      $ pathsieve sub add --xpath //invoice --email desk@example.org --cron "0 8 * * *"
    """
    chosen = filter_of(xpath, boolean, namespace)
    wish: Wish = {"namespaces": chosen.namespaces, "labels": read_pairs("--label", label)}
    wish |= {"xpath": xpath} if xpath else {"boolean": boolean}
    wish |= {"id": id} if id else {}
    wish |= {"delivery": DeliveryPolicy(ack_deadline, max_attempts)} if ack_deadline or max_attempts else {}
    wish |= {"schedule": Schedule(every, cron)} if every or cron else {}
    wish |= {"webhook": Webhook(webhook, webhook_secret)} if webhook else {}
    wish |= {"email": Email(tuple(email), subject)} if email else {}
    with connection.open() as client:
        _show(client.subscribe(**wish), output)


@connected
def list_(
    connection: Connection,
    limit: Annotated[int, typer.Option(help="Show at most so many; 0: all.")] = 0,
    output: OutputOption = Output.TABLE,
) -> None:
    """List subscriptions, in the order of their names.

    `-o json` prints what `pathsieve sub import` reads:

      $ pathsieve sub list -o json > subscriptions.jsonl
    """
    with connection.open() as client:
        found = islice(client.list(), limit or None)
        if output is Output.JSON:
            for subscription in found:
                print_json(subscription_facts(subscription))
            return
        rows = list(_rows(found))
        if rows:
            print_table(["id", "kind", "expression", "delivery", "labels"], rows)
        note(f"{len(rows):,} of {counted(client.count(), 'subscription')}" if rows else NONE)


def _rows(subscriptions: Iterator[Subscription]) -> Iterator[tuple[object, ...]]:
    for subscription in subscriptions:
        expression = subscription.filter.expression
        shown = expression if len(expression) <= SHOWN else expression[: SHOWN - 1] + "…"
        labels = ", ".join(f"{key}={value}" for key, value in subscription.labels.items())
        yield subscription.id, subscription.filter.kind, shown, _delivery(subscription), labels


def _delivery(subscription: Subscription) -> str:
    match subscription.push:
        case Webhook(url):
            where = url
        case Email(to):
            where = ", ".join(to)
        case _:
            where = "when asked"
    schedule = subscription.schedule
    when = f" every {schedule.every:g} s" if schedule.every else f" at {schedule.cron}" if schedule.cron else ""
    return where + when


@connected
def get(
    connection: Connection,
    name: Annotated[str, typer.Argument(help="Its id, or subscriptions/id.")],
    output: OutputOption = Output.TABLE,
) -> None:
    """Show one subscription, and how far its delivery has come."""
    with connection.open() as client:
        _show(client.get(name), output)


def _show(subscription: Subscription, output: Output) -> None:
    if output is Output.JSON:
        print_json(subscription_facts(subscription))
        return
    progress, delivery = subscription.progress, subscription.delivery
    rows: dict[str, object] = {
        "id": subscription.id,
        subscription.filter.kind: subscription.filter.expression,
        "namespaces": ", ".join(f"{prefix}={uri}" for prefix, uri in subscription.filter.namespaces.items()),
        "labels": ", ".join(f"{key}={value}" for key, value in subscription.labels.items()),
        "delivery": _delivery(subscription),
        "ack deadline": f"{delivery.ack_deadline:g} s" if delivery.ack_deadline else "",
        "max attempts": delivery.max_attempts or "",
        "notified": f"{progress.head:,}, of which {progress.backlog:,} wait" if progress.head else "never",
        "attached": "now" if progress.attached else "",
        "dead letters": f"{progress.dead_letters:,}" if progress.dead_letters else "",
        "created": f"{subscription.create_time:%Y-%m-%d %H:%M:%S} UTC" if subscription.create_time else "",
        "etag": subscription.etag,
    }
    print_table(["subscription", ""], [(key, value) for key, value in rows.items() if value != ""])


@connected
def rm(
    connection: Connection,
    names: Annotated[list[str], typer.Argument(help="Ids, or subscriptions/id.")],
    etag: Annotated[str, typer.Option(help="Only if nobody has changed it since it had this etag.")] = "",
) -> None:
    """Delete subscriptions, and the notifications that wait for them."""
    with connection.open() as client:
        for name in names:
            client.delete(name, etag)
            note(f"deleted {name}")


COMMANDS = {"add": add, "import": import_, "list": list_, "get": get, "rm": rm, "test": trial, "explain": explain}
for name, command in COMMANDS.items():
    app.command(name, help=help_of(command))(command)
