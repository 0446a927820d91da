"""What is tied to a process ends with it, even if that is killed, and leaves nothing on the disk."""

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from server.tether import Tether

SLEEP = [sys.executable, "-I", "-c", "import time; time.sleep(600)"]
SOMEBODY = f"""
import subprocess, sys, time
from pathlib import Path
from server.tether import Tether
tether = Tether(folder=Path(sys.argv[1]))
sleeping = subprocess.Popen({SLEEP!r}, process_group=tether.group)
print(sleeping.pid, flush=True)
time.sleep(600)
"""


def until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def is_there(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except FileNotFoundError:
        return False


def test_closing_it_ends_the_group_and_deletes_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "scratch"
    folder.mkdir()
    with Tether(folder=folder) as tether:
        sleeping = subprocess.Popen(SLEEP, process_group=tether.group)
        assert sleeping.poll() is None
    assert sleeping.wait(30) == -signal.SIGKILL
    assert not folder.exists()


def test_what_stands_still_ends_too() -> None:
    with Tether() as tether:
        sleeping = subprocess.Popen(SLEEP, process_group=tether.group)
        sleeping.send_signal(signal.SIGSTOP)
    assert sleeping.wait(30) == -signal.SIGKILL


def test_a_postmaster_is_told_to_quit(tmp_path: Path) -> None:
    minded = partial(signal.signal, signal.SIGQUIT, signal.SIG_DFL)  # what a shell starts with & would ignore it
    sleeping = subprocess.Popen(SLEEP, preexec_fn=minded)
    pid_file = tmp_path / "postmaster.pid"
    pid_file.write_text(f"{sleeping.pid}\n/data\n")
    tether = Tether([pid_file, tmp_path / "none.pid"])
    closing = threading.Thread(target=tether.close)
    closing.start()
    assert sleeping.wait(30) == -signal.SIGQUIT  # until somebody has waited for it, it is still there
    closing.join()


def test_whoever_is_killed_leaves_nothing_behind(tmp_path: Path, repository: Path) -> None:
    folder = tmp_path / "scratch"
    folder.mkdir()
    somebody = subprocess.Popen(
        [sys.executable, "-c", SOMEBODY, str(folder)], cwd=repository, stdout=subprocess.PIPE, text=True
    )
    assert somebody.stdout is not None
    with somebody.stdout as told:
        sleeping = int(told.readline())
    assert is_there(sleeping)
    somebody.kill()
    somebody.wait()
    until(lambda: not is_there(sleeping) and not folder.exists())
