"""pathsieve cluster: who owns what, as it changes, and have a replica hand over."""

import time
from collections import Counter
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from pathsieve.cli.connection import Connection, connected
from pathsieve.cli.help_texts import help_of
from pathsieve.cli.printing import Output, OutputOption, console, counted, note, print_json, print_table
from pathsieve.client import Client
from pathsieve.cluster import Cluster
from pathsieve.errors import NotFound

__all__ = ["app"]

KINDS = ("matching", "notifying")
TOKEN_FACTS = ("kind", "token", "owner", "generation", "since", "subscriptions")
LOOK = 0.2

app = typer.Typer(no_args_is_help=True, help="Several servers as one: who owns what, and who is to hand over.")


@connected
def status(
    connection: Connection,
    tokens: Annotated[bool, typer.Option("--tokens", help="Each token, and since when its owner has it.")] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show the replicas and what they own, as one of them sees it.

    $ pathsieve cluster status

    $ pathsieve cluster status --tokens -o json
    """
    with connection.open() as client:
        cluster = client.cluster()
    if tokens:
        _print_tokens(cluster, output)
    elif output is Output.JSON:
        for facts in _replicas(cluster):
            print_json(facts)
    else:
        columns = ("replica", "address", "weight", "state", *KINDS, "subscriptions")
        rows = [tuple((facts | {"weight": f"{facts['weight']:g}"}).values()) for facts in _replicas(cluster)]
        print_table(columns, rows, numbers=("weight", *KINDS, "subscriptions"))
        note(_summary(cluster))


@connected
def watch(
    connection: Connection,
    count: Annotated[int, typer.Option(help="Leave after so many looks; 0: never.")] = 0,
    output: OutputOption = Output.TABLE,
) -> None:
    """Print what changes hands, until you press Ctrl-C.

    $ pathsieve cluster watch
    """
    with connection.open() as client:
        before: Cluster | None = None
        for place, cluster in enumerate(client.watch_cluster(), 1):
            for facts in _changes(before, cluster):
                if output is Output.JSON:
                    print_json(facts)
                else:
                    console().print(facts["what"], markup=False)
            before = cluster
            if place == count:
                break


@connected
def drain(
    connection: Connection,
    replica: Annotated[str, typer.Argument(help="Its name, as `status` shows it.")],
    undo: Annotated[bool, typer.Option("--undo", help="Let it take its share again.")] = False,
    until_done: Annotated[bool, typer.Option("--until-done", help="Return when it owns nothing any more.")] = False,
) -> None:
    """Have a replica hand over all that it owns. It serves calls until it is stopped.

    $ pathsieve cluster drain replica-2 --until-done
    """
    with connection.open() as client:
        if replica not in {one.name for one in client.cluster().replicas}:
            known = ", ".join(one.name for one in client.cluster().replicas)
            raise NotFound(f"there is no replica {replica}; there are {known}", {"name": replica})
        client.drain(replica, undo=undo)
        if until_done and not undo:
            _wait_until_empty(client, replica)
    note(f"{replica} {'takes its share again' if undo else 'owns nothing' if until_done else 'hands over'}")


for command in (status, watch, drain):
    app.command(help=help_of(command))(command)


def _wait_until_empty(client: Client, replica: str) -> None:
    while any(token.owner == replica for token in client.cluster().tokens):
        time.sleep(LOOK)


def _replicas(cluster: Cluster) -> Iterator[dict[str, Any]]:
    owned, loads = {kind: cluster.owned(kind) for kind in KINDS}, cluster.loads("matching")
    for replica in cluster.replicas:
        yield {
            "replica": replica.name,
            "address": replica.address,
            "weight": replica.weight,
            "state": "draining" if replica.draining else "there",
            **{kind: owned[kind].get(replica.name, 0) for kind in KINDS},
            "subscriptions": loads.get(replica.name, 0),
        }


def _summary(cluster: Cluster) -> str:
    nobody = {kind: cluster.owned(kind).get("", 0) for kind in KINDS}
    free = ", ".join(f"{counted(n_tokens, kind + ' token')} of nobody" for kind, n_tokens in nobody.items() if n_tokens)
    seen = f"as {cluster.replica} sees it, whose session with ZooKeeper is {cluster.session}"
    return f"{free or 'every token has an owner'}, {seen}"


def _print_tokens(cluster: Cluster, output: Output) -> None:
    if output is Output.JSON:
        for token in cluster.tokens:
            print_json({name: getattr(token, name) for name in TOKEN_FACTS})
        return
    rows = [
        (one.kind, one.token, one.owner or "–", one.generation, one.since and f"{one.since:%F %T}", one.subscriptions)
        for one in cluster.tokens
    ]
    print_table(TOKEN_FACTS, rows, numbers=("token", "generation", "subscriptions"))


def _changes(before: Cluster | None, now: Cluster) -> Iterator[dict[str, Any]]:
    """What is there at first, and then what has changed: replicas, and tokens by the dozen."""
    known = {replica.name: replica for replica in before.replicas} if before else {}
    there = {replica.name: replica for replica in now.replicas}
    for name in sorted(there.keys() - known.keys()):
        yield {"replica": name, "change": "there", "what": f"{name} is there, at {there[name].address}"}
    for name in sorted(known.keys() - there.keys()):
        yield {"replica": name, "change": "gone", "what": f"{name} is gone"}
    for name in sorted(there.keys() & known.keys()):
        if there[name].draining != known[name].draining:
            change = "draining" if there[name].draining else "back"
            yield {"replica": name, "change": change, "what": f"{name} is {change}"}
    if before:
        yield from _moves(before, now)


def _moves(before: Cluster, now: Cluster) -> Iterator[dict[str, Any]]:
    moves = Counter(
        (new.kind, old.owner, new.owner)
        for old, new in zip(before.tokens, now.tokens, strict=True)
        if old.owner != new.owner
    )
    for (kind, old, new), n_tokens in sorted(moves.items()):
        what = f"{counted(n_tokens, kind + ' token')}: {old or 'nobody'} → {new or 'nobody'}"
        yield {"kind": kind, "tokens": n_tokens, "from": old, "to": new, "what": what}
