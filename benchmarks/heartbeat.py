"""Does the machine itself stand still? A second process that does nothing notes how late it wakes up.

    with Heartbeat() as heart: …          heart.longest_gap    seconds beyond the millisecond it slept

A pause that an idle process feels too is no pause of ours.
"""

import subprocess
import sys
import threading
from time import perf_counter, sleep
from types import TracebackType

__all__ = ["Heartbeat"]

BEAT_SECONDS = 1e-3


class Heartbeat:
    """Runs beside a block; afterwards, `longest_gap` says how long the machine kept an idle process waiting."""

    longest_gap: float

    def __enter__(self) -> "Heartbeat":
        command = [sys.executable, "-m", "benchmarks.heartbeat"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self._process.stdout.readline()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        answer, _ = self._process.communicate()
        self.longest_gap = float(answer)


def _beat() -> float:
    """The longest gap until standard input ends."""
    waiting = threading.Thread(target=sys.stdin.read, daemon=True)
    waiting.start()
    longest, last = 0.0, perf_counter()
    while waiting.is_alive():
        sleep(BEAT_SECONDS)
        now = perf_counter()
        longest, last = max(longest, now - last - BEAT_SECONDS), now
    return longest


if __name__ == "__main__":
    print("beating", flush=True)
    print(_beat())
