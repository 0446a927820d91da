"""pathsieve publish: files, folders, pipes; how many want each document, and which were refused."""

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Annotated, Any

import typer

from pathsieve.cli.connection import Connection, connected
from pathsieve.cli.exits import REFUSED, USAGE
from pathsieve.cli.pairs import read_attributes, read_pairs
from pathsieve.cli.printing import Output, OutputOption, complain, counted, note, print_json, progress_bar
from pathsieve.cli.sources import Source, find_sources, id_of
from pathsieve.documents import Document
from pathsieve.results import Published

__all__ = ["publish"]

SHOWN = 20
STEP = 100


@dataclass
class Reader:
    """Turns sources into documents as they are asked for; those that cannot be read are noted."""

    source: str
    attributes: dict[str, Any]
    headers: dict[str, str]
    id: str = ""
    names: list[str] = field(default_factory=list)
    unreadable: list[tuple[str, str]] = field(default_factory=list)

    def documents(self, sources: Iterable[Source]) -> Iterator[Document]:
        for source in sources:
            try:
                xml = source.read()
            except OSError as error:
                self.unreadable.append((source.name, error.strerror or str(error)))
                continue
            self.names.append(source.name)
            name = self.id or id_of(source, xml)
            yield Document(xml, id=name, source=self.source, attributes=self.attributes, headers=self.headers)


@connected
def publish(
    connection: Connection,
    paths: Annotated[list[str], typer.Argument(help="Files, folders, patterns; - is stdin.")],
    source: Annotated[str, typer.Option(help="Who publishes; ids are unique within a source.")] = "",
    id: Annotated[str, typer.Option(help="Id of a single document; else its file's name and a hash.")] = "",
    attribute: Annotated[
        list[str], typer.Option("--attribute", "-a", metavar="KEY=VALUE", help="Of every document. Repeatable.")
    ] = [],
    header: Annotated[
        list[str], typer.Option(metavar="KEY=VALUE", help="Carried along, never matched. Repeatable.")
    ] = [],
    pattern: Annotated[str, typer.Option(help="Which files of a folder.")] = "*.xml",
    lines: Annotated[bool, typer.Option("--lines", help="Each line of stdin is a document.")] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Publish documents, and say how many subscriptions want each.

    Files keep their ids, so doing it again is harmless: the server knows them, and delivers nothing twice. A document
    that is refused does not stop the others; then the exit code is 1.

      $ pathsieve publish quote.xml

      $ pathsieve publish inbox/ "feeds/*.xml" --source desk -a priority=3

      $ tail -f quotes.log | pathsieve publish - --lines -o json
    """
    reader = Reader(source, read_attributes("--attribute", attribute), read_pairs("--header", header), id)
    sources: Iterable[Source] = find_sources(paths, pattern, lines)
    if not lines:
        sources = list(sources)
        _check(sources, paths, id)
    totals, started = Totals(), time.perf_counter()
    with connection.open() as client, progress_bar("Publishing") as progress:
        total = len(sources) if isinstance(sources, list) else None
        bar = progress.add_task("", total=total, said="")
        for place, result in enumerate(client.publish_many(reader.documents(sources))):
            totals.count(reader.names[place], result)
            if output is Output.JSON:
                _print_result(reader.names[place], result)
            if (place + 1) % STEP == 0:
                progress.update(bar, completed=place + 1, said=counted(totals.n_matches, "match"))
    _end(totals, reader, time.perf_counter() - started, output)


def _check(sources: list[Source], paths: list[str], id: str) -> None:
    if not sources:
        complain(f"no documents in {', '.join(paths)}", "--pattern says which files of a folder are meant.")
        raise typer.Exit(USAGE)
    if id and len(sources) > 1:
        raise typer.BadParameter(f"one id for {len(sources)} documents", param_hint="--id")


@dataclass
class Totals:
    """What has become of documents."""

    n_published: int = 0
    n_matches: int = 0
    n_duplicates: int = 0
    refused: list[tuple[str, str]] = field(default_factory=list)

    def count(self, name: str, result: Published) -> None:
        if result.error:
            self.refused.append((name, str(result.error)))
            return
        self.n_published += 1
        self.n_matches += result.matches
        self.n_duplicates += result.duplicate


def _print_result(name: str, result: Published) -> None:
    facts: dict[str, Any] = {"file": name, "id": result.id}
    if result.error:
        facts |= {"error": str(result.error), **result.error.facts}
    else:
        facts |= {"matches": result.matches, "duplicate": result.duplicate}
    print_json(facts)


def _end(totals: Totals, reader: Reader, seconds: float, output: Output) -> None:
    if output is Output.TABLE:
        n_new = totals.n_published - totals.n_duplicates
        repeated = f"; {totals.n_duplicates:,} had been published before" if totals.n_duplicates else ""
        matches = counted(totals.n_matches, "match")
        note(f"published {counted(n_new, 'document')} in {seconds:.1f} s; {matches}{repeated}")
    refused = [*reader.unreadable, *(totals.refused if output is Output.TABLE else [])]
    for name, problem in refused[:SHOWN]:
        complain(f"{name}: {problem}")
    if len(refused) > SHOWN:
        note(f"and {len(refused) - SHOWN:,} more; -o json lists all of them")
    if reader.unreadable or totals.refused:
        raise typer.Exit(REFUSED)
