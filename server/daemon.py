"""The process around a daemon: signals in, an exit code out.

SIGTERM, SIGINT    drain, then stop; a second one stops at once; a third one kills
SIGHUP             read the token file again
"""

import asyncio
import logging
import signal
from collections.abc import Callable

from server.errors import ServerError
from server.lifecycle import Daemon
from server.logs import set_up_logging
from server.readiness import Progress
from server.settings import Settings
from server.token_file import TokenFileError

__all__ = ["Daemon", "serve"]

LOG = logging.getLogger("pathsieve.daemon")

STOPPED, FAILED = 0, 1


async def serve(
    settings: Settings,
    on_progress: Callable[[Progress], None] | None = None,
    on_ready: Callable[[Daemon], None] | None = None,
) -> int:
    """Serve until a signal comes; the exit code of the process. `on_ready` is called once, when it serves."""
    set_up_logging(settings.log)
    try:
        daemon = Daemon(settings, on_progress)
        await daemon.start()
    except (ServerError, TokenFileError) as error:
        LOG.error("cannot start: %s", error)
        return FAILED
    signals = Signals(daemon)
    try:
        return await _served(daemon, signals, on_ready or (lambda daemon: None))
    finally:
        await daemon.close()
        signals.let_go()


async def _served(daemon: Daemon, signals: "Signals", on_ready: Callable[[Daemon], None]) -> int:
    """Load, wait for a signal, drain."""
    if not await _loaded(daemon, signals):
        return FAILED
    if daemon.readiness.ready.is_set():
        on_ready(daemon)
    await signals.stop.wait()
    draining = asyncio.create_task(daemon.drain())
    forced = asyncio.create_task(signals.force.wait())
    done, _ = await asyncio.wait(
        [draining, forced], timeout=daemon.settings.drain_seconds, return_when=asyncio.FIRST_COMPLETED
    )
    if draining not in done:
        LOG.warning("stopping before everything in flight was finished")
    for task in (draining, forced):
        task.cancel()
    await asyncio.gather(draining, forced, return_exceptions=True)
    return STOPPED


async def _loaded(daemon: Daemon, signals: "Signals") -> bool:
    """Wait until it is ready, or told to stop before that; false if loading has failed."""
    loading = asyncio.create_task(daemon.ready())
    stopped = asyncio.create_task(signals.stop.wait())
    await asyncio.wait([loading, stopped], return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()
    if not loading.done():
        loading.cancel()
        return True
    error = loading.exception()
    if error is None:
        return True
    LOG.error("cannot start: %s", error, exc_info=None if isinstance(error, ServerError) else error)
    return False


class Signals:
    """What the process has been told so far."""

    def __init__(self, daemon: Daemon) -> None:
        self.stop = asyncio.Event()
        self.force = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            self._loop.add_signal_handler(number, self._stop, number)
        self._loop.add_signal_handler(signal.SIGHUP, daemon.reload_tokens)

    def let_go(self) -> None:
        """Have signals do again what they did before."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            self._loop.remove_signal_handler(number)

    def _stop(self, number: signal.Signals) -> None:
        LOG.info("%s: stopping", number.name)
        if self.stop.is_set():
            self.force.set()
            self.let_go()
        self.stop.set()
