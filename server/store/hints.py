"""What other replicas have changed, heard at once: PostgreSQL's NOTIFY.

    a transaction of some replica ── committed ──▶ NOTIFY topic ──▶ this thread ──▶ on_hint(topic), on the loop

A hint, and no more: it may be lost with a connection, so whoever acts on it reads the store, and looks by itself now
and then. After each connection every topic is hinted at once.
"""

import asyncio
import logging
import threading
from collections.abc import Callable

import psycopg

from server.store.postgres import CHANNEL, CONNECT_SECONDS, connected

__all__ = ["LOG", "SUBSCRIPTIONS", "Hints"]

logger = logging.getLogger("pathsieve.store")

LOG, SUBSCRIPTIONS = "log", "subscriptions"
PAUSE = 0.5


class Hints:
    """Listens from `start` to `stop`, in a thread of its own."""

    def __init__(self, url: str, on_hint: Callable[[str], None]) -> None:
        self._url = url
        self._on_hint = on_hint
        self._stopping = threading.Event()
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._listen_for_ever, name="pathsieve-hints", daemon=True)

    @property
    def is_started(self) -> bool:
        return self._thread.ident is not None

    def start(self) -> None:
        self._thread.start()

    async def stop(self) -> None:
        self._stopping.set()
        await asyncio.to_thread(self._thread.join, CONNECT_SECONDS)

    def _listen_for_ever(self) -> None:
        while not self._stopping.is_set():
            try:
                self._listen()
            except psycopg.Error as error:
                logger.info("no hints from the store for a moment: %s", error)
                self._stopping.wait(PAUSE)

    def _listen(self) -> None:
        with connected(self._url, "pathsieve hints") as connection:
            connection.execute(f"LISTEN {CHANNEL}")
            for topic in (LOG, SUBSCRIPTIONS):
                self._pass_on(topic)
            while not self._stopping.is_set():
                for hint in connection.notifies(timeout=PAUSE):
                    self._pass_on(hint.payload)

    def _pass_on(self, topic: str) -> None:
        if not self._stopping.is_set():
            self._loop.call_soon_threadsafe(self._on_hint, topic)
