"""A first taste of the server: start it, subscribe, publish, receive; then leave it running.

    python -m pathsieve.taste

Five subscribers with names are durable and are kept in the server's store; forty thousand more are ephemeral, and live
as long as the taste.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pathsieve.attachment import Attachment
from pathsieve.client import Client
from pathsieve.errors import AlreadyExists
from pathsieve.messages import Message
from pathsieve.subscriptions import Filter
from xpathfilter.taste import NAMED, generate_documents, generate_subscriptions

__all__ = ["main", "taste"]

N_SUBSCRIPTIONS, N_DOCUMENTS = 40_000, 3_000
START_SECONDS = 120.0
WIDTH = 92


def main() -> int:
    """Taste, then serve until the server is stopped; its exit code."""
    with server() as (process, address):
        if not address:
            return process.wait()
        taste(address)
        print(GOODBYE.format(address=address))
        try:
            return process.wait()
        except KeyboardInterrupt:
            process.send_signal(signal.SIGINT)
            return process.wait()


GOODBYE = """
The server goes on at {address}. In another terminal:

    source .venv/bin/activate
    pathsieve sub list
    pathsieve sub add --id strikes --xpath "//keyword[. = 'city strike']"
    echo "<news><keyword>city strike</keyword></news>" | pathsieve publish -
    pathsieve attach strikes --count 1
    pathsieve top

Ctrl-C stops it."""


@contextmanager
def server() -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """`pathsieve serve` in a process of its own; no address if it ended at once."""
    with tempfile.TemporaryDirectory() as folder:
        ready = Path(folder) / "ready.json"
        environment = os.environ | {"PATHSIEVE_LISTEN__READY_FILE": str(ready)}
        process = subprocess.Popen([sys.executable, "-m", "pathsieve.cli", "serve"], env=environment)
        try:
            yield process, _address(process, ready)
        finally:
            process.terminate()
            process.wait()


def _address(process: subprocess.Popen[bytes], ready: Path) -> str:
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until and process.poll() is None:
        if ready.exists():
            return str(json.loads(ready.read_text())["grpc"])
        time.sleep(0.05)
    return ""


def taste(address: str, n_subscriptions: int = N_SUBSCRIPTIONS, n_documents: int = N_DOCUMENTS) -> None:
    """Show what a server does with subscriptions and documents."""
    documents = generate_documents(n_documents)
    with Client(address) as client:
        _subscribe(client)
        filters = [Filter(xpath=text) for text in generate_subscriptions(n_subscriptions)]
        with client.attach(ephemeral=filters, credit=10 * n_documents, credit_bytes=1 << 30) as stream:
            stream.ready()
            print(f"\n{n_subscriptions:,} more, on one stream, for as long as it is open.")
            _publish(client, documents)
            delivered = list(_all(stream))
            n_matches = sum(message.n_matches for message in delivered)
            print(f"  {len(delivered):,} documents came back over that stream, wanted {n_matches:,} times")
        _show_named(client)


def _subscribe(client: Client) -> None:
    print("Five subscribers, kept for good:")
    for name, expression in NAMED.items():
        try:
            client.subscribe(id=name.lower(), xpath=expression)
        except AlreadyExists:
            client.seek(name.lower(), sequence=client.get(name.lower()).progress.head + 1)
        print(f"  {name:<5} {expression}")


def _publish(client: Client, documents: Sequence[str]) -> None:
    started = time.perf_counter()
    refused = [result.error for result in client.publish_many(documents) if result.error is not None]
    seconds = time.perf_counter() - started
    print(f"  {len(documents):,} documents published in {seconds:.1f} s, {len(documents) / seconds:,.0f} a second")
    if refused:
        print(f"  {len(refused):,} were refused, the first because: {refused[0]}")


def _all(stream: Attachment) -> Iterator[Message]:
    """What is delivered until it is quiet for a while."""
    while (message := stream.receive(timeout=1.0)) is not None:
        yield message


def _show_named(client: Client) -> None:
    """What waits for the five, acknowledged as it is looked at."""
    n_wanted: Counter[str] = Counter()
    examples: dict[str, Message] = {}
    with client.attach([name.lower() for name in NAMED]) as stream:
        for message in _all(stream):
            for name, _ in message.matches:
                n_wanted[name] += 1
                examples.setdefault(name, message)
            message.ack()
    print("\nWhat waited for the five, durable and numbered:")
    for name, message in sorted(examples.items()):
        sequence = dict(message.matches)[name]
        text = textwrap.shorten(message.xml.decode(), WIDTH - 24, placeholder=" …")
        print(f"  {name.removeprefix('subscriptions/'):<5} {n_wanted[name]:>4} × first as {sequence:>5}: {text}")


if __name__ == "__main__":
    sys.exit(main())
