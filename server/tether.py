"""Processes that end with the one that started them, however that ends.

    we ──pipe──▶ tether ──▶ leader of a process group: sleeps
     └── start ──▶ servers, ZooKeepers, …   members of that group, so Ctrl-C in the terminal does not reach them

The pipe ends when we close it, and also when we are killed and can put nothing in order. Then the tether kills the
group, has PostgreSQL stop, which leaves every group that it is started in, and deletes the folder. A parent-death
signal would need a hook between fork and exec, which programs with threads must not have, and exists on Linux alone.
"""

import argparse
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

__all__ = ["Tether"]

SECONDS = 30.0


class Tether:
    """Start processes with `process_group=tether.group`. `pid_files` are of postmasters; `folder` is deleted."""

    def __init__(self, pid_files: Sequence[Path] = (), folder: Path | None = None) -> None:
        arguments = [f"--quit={path}" for path in pid_files] + ([f"--remove={folder}"] if folder else [])
        self._process = subprocess.Popen(
            [sys.executable, "-I", __file__, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            process_group=0,
        )
        assert self._process.stdout is not None
        with self._process.stdout as told:
            self.group = int(told.readline())

    def close(self) -> None:
        """End what is still there, and wait for that."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(SECONDS)

    def __enter__(self) -> "Tether":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def main() -> None:
    """The tether's own process: lead a group, wait, clean up."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--quit", type=Path, action="append", default=[])
    parser.add_argument("--remove", type=Path)
    options = parser.parse_args()
    leader = _sleeper()
    print(leader, flush=True)
    sys.stdin.read()
    os.killpg(leader, signal.SIGKILL)
    os.waitpid(leader, 0)
    for path in options.quit:
        _quit(path)
    if options.remove:
        shutil.rmtree(options.remove, ignore_errors=True)


def _sleeper() -> int:
    """A process that does nothing but keep its group in being; it does not hold our pipe."""
    leader = os.fork()
    if not leader:
        os.setpgid(0, 0)
        os.closerange(0, 3)
        while True:
            signal.pause()
    with contextlib.suppress(PermissionError):
        os.setpgid(leader, leader)
    return leader


def _quit(pid_file: Path) -> None:
    """Have a PostgreSQL stop at once, if it is there, and wait until it is gone."""
    try:
        pid = int(pid_file.read_text().split()[0])
        os.kill(pid, signal.SIGQUIT)
        until = time.monotonic() + SECONDS / 2
        while time.monotonic() < until:
            os.kill(pid, 0)
            time.sleep(0.01)
        os.kill(pid, signal.SIGKILL)
    except (OSError, ValueError, IndexError):
        return


if __name__ == "__main__":
    main()
