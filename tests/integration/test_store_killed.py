"""`kill -9` at any moment: what was said to be durable is there, positions and sequences have no gaps."""

import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from server.log.cursors import Cursors
from server.log.match_log import MatchLog
from server.store import open_store

CHILD = Path(__file__).parent / "append_for_ever.py"
N_KILLS = 6


def lines_until_killed(url: str, seed: int, n_lines: int) -> Iterator[list[str]]:
    """What the child said, all of it, when it was killed after it had said so many lines."""
    command = [sys.executable, str(CHILD), url, str(seed)]
    repository = CHILD.parent.parent.parent
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=repository) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        for said, line in enumerate(child.stdout):
            if said == n_lines:
                child.send_signal(signal.SIGKILL)
            if line.endswith("\n"):
                yield line.split()


class History:
    """What the children said, over all of them."""

    def __init__(self) -> None:
        self.appended: dict[int, list[int]] = {}
        self.floors: dict[int, int] = {}

    def note(self, line: list[str]) -> None:
        if line[0] == "appended":
            self.appended[int(line[1])] = [int(number) for number in line[2].split(",")]
        else:
            self.floors[int(line[1])] = int(line[2])


async def check(url: str, history: History) -> None:
    """Compare the store with the history, and the log with itself."""
    store = await open_store(url)
    log = await MatchLog.open(store)
    cursors = await Cursors.open(store, log, flush_interval=3600.0)
    numbers = np.array(sorted({number for wanted in history.appended.values() for number in wanted}), np.int64)
    records, position = [], 0
    while position < log.position:
        some, position = await log.read_from(numbers, position, 1000, 1 << 30)
        records += some
    positions = [record.position for record in records]
    assert positions == list(range(positions[0], log.position + 1)), "positions have a gap"
    assert max(history.appended) <= log.position
    for record in records:
        assert record.document.xml.decode() == repr(record.numbers.tolist())
        assert record.numbers.tolist() == history.appended.get(record.position, record.numbers.tolist())
    check_sequences(records, log)
    for number, floor in history.floors.items():
        assert cursors.floors[number] >= floor
    await cursors.close()
    await log.close()
    await store.close()


def check_sequences(records: list, log: MatchLog) -> None:
    """Within what retention has left, each number's sequences go up by one, and end at its head."""
    counts = Counter(int(number) for record in records for number in record.numbers)
    next_sequence = {number: int(log.heads[number]) - count + 1 for number, count in counts.items()}
    for record in records:
        for number, sequence in zip(record.numbers.tolist(), record.sequences.tolist(), strict=True):
            assert sequence == next_sequence[number]
            next_sequence[number] += 1


@pytest.mark.slow
async def test_what_was_durable_survives_kills_at_any_moment(store_url: str) -> None:
    chance = random.Random(store_url.partition(":")[0])
    history = History()
    for kill in range(N_KILLS):
        for line in lines_until_killed(store_url, seed=kill, n_lines=chance.randint(1, 1500)):
            history.note(line)
        await check(store_url, history)
    assert len(history.appended) > 100
