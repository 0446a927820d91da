"""pathsieve bench: what a running server can take, seen from here.

    throughput     many documents over one stream
    publish        one document at a time: sent, matched, durable, answered
    notify         one at a time: from publishing it to receiving it on an attached stream

The documents are generated, from one seed. The filter that receives them lives as long as the command, so that nothing
is left behind but what the server's own subscriptions want.
"""

import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Annotated
from uuid import uuid4

import typer

from pathsieve.cli.connection import Connection, connected
from pathsieve.cli.printing import Output, OutputOption, print_json, print_table, progress_bar
from pathsieve.client import Client
from pathsieve.documents import Document
from pathsieve.subscriptions import Filter

__all__ = ["bench", "generate_documents", "percentile"]

SEED = 20
SYMBOLS = ["KOVA", "IBM", "ELIN", "TARN", "OSMA", "VERO", "HALD", "MIRE"]
WAIT = 10.0
STEP = 500


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the outcome: times are in milliseconds."""

    what: str
    n_documents: int
    per_second: float
    p50: float
    p90: float
    p99: float


@connected
def bench(
    connection: Connection,
    documents: Annotated[int, typer.Option(help="Documents over the stream.", min=1)] = 20_000,
    size: Annotated[int, typer.Option(help="Bytes of a document, about.", min=100)] = 4096,
    singles: Annotated[int, typer.Option(help="Documents one at a time.", min=1)] = 200,
    output: OutputOption = Output.TABLE,
) -> None:
    """Measure a running server from here: documents a second, and how long one takes.

    The documents are generated quotes. They meet the subscriptions that the server has.

      $ pathsieve bench

      $ pathsieve bench --documents 100000 --size 1000 -o json
    """
    run = uuid4().hex[:8]
    pool = list(islice(generate_documents(run, size), min(documents, 1000)))
    with connection.open() as client:
        figures = [
            _throughput(client, pool, documents, run),
            _single(client, pool, singles, run),
            _notified(client, pool, singles, run),
        ]
    if output is Output.JSON:
        for figure in figures:
            print_json(asdict(figure))
        return
    columns = ["", "documents", "a second", "p50 ms", "p90 ms", "p99 ms"]
    rows = [
        (one.what, f"{one.n_documents:,}", f"{one.per_second:,.0f}", *map(_shown, (one.p50, one.p90, one.p99)))
        for one in figures
    ]
    print_table(columns, rows, numbers=columns[1:])


def generate_documents(run: str, size: int) -> Iterator[bytes]:
    """Quotes, as many as one wants; the attribute `run` tells ours from others'."""
    chance = random.Random(SEED)
    while True:
        quotes: list[str] = []
        while sum(map(len, quotes)) < size - 50:
            symbol, price = chance.choice(SYMBOLS), chance.uniform(1, 500)
            quotes.append(
                f'<quote symbol="{symbol}" change="{chance.gauss(0, 2):.2f}"><price>{price:.2f}</price></quote>'
            )
        yield f'<quotes run="{run}">{"".join(quotes)}</quotes>'.encode()


def percentile(seconds: Sequence[float], share: float) -> float:
    """The time that so many do not exceed, in milliseconds; 0 if there are none.

    >>> percentile([0.001, 0.002, 0.003, 0.004], 0.5)
    2.0
    """
    ordered = sorted(seconds)
    return ordered[max(0, round(len(ordered) * share) - 1)] * 1000 if ordered else 0.0


def _figure(what: str, times: Sequence[float], seconds: float, n_documents: int) -> Figure:
    p50, p90, p99 = (percentile(times, share) for share in (0.5, 0.9, 0.99))
    return Figure(what, n_documents, n_documents / seconds, p50, p90, p99)


def _shown(milliseconds: float) -> str:
    return f"{milliseconds:,.2f}" if milliseconds else "–"


def _throughput(client: Client, pool: Sequence[bytes], n_documents: int, run: str) -> Figure:
    stream = (Document(pool[n % len(pool)], id=f"{run}-{n}", source="bench") for n in range(n_documents))
    started = time.perf_counter()
    with progress_bar("Publishing") as progress:
        bar = progress.add_task("", total=n_documents, said="")
        for n_results, result in enumerate(client.publish_many(stream), start=1):
            if result.error:
                raise result.error
            if n_results % STEP == 0:
                progress.update(bar, completed=n_results)
    return _figure("throughput", (), time.perf_counter() - started, n_documents)


def _single(client: Client, pool: Sequence[bytes], n_documents: int, run: str) -> Figure:
    times = []
    for n in range(n_documents):
        started = time.perf_counter()
        client.publish(Document(pool[n % len(pool)], id=f"{run}-single-{n}", source="bench"))
        times.append(time.perf_counter() - started)
    return _figure("publish", times, sum(times), n_documents)


def _notified(client: Client, pool: Sequence[bytes], n_documents: int, run: str) -> Figure:
    times = []
    with client.attach(ephemeral=Filter(f"/quotes[@run='{run}']")) as messages:
        for n in range(n_documents):
            started = time.perf_counter()
            client.publish(Document(pool[n % len(pool)], id=f"{run}-notify-{n}", source="bench"))
            if messages.receive(WAIT) is None:
                raise TimeoutError(f"no notification of a published document within {WAIT:g} s")
            times.append(time.perf_counter() - started)
    return _figure("notify", times, sum(times), n_documents)
