"""A process to be killed: it appends and acknowledges for ever, and says what it was told is durable.

python append_for_ever.py URL SEED

appended 17 3,9          the record at position 17, wanted by 3 and 9
acknowledged 3 5         flushed: of number 3 everything up to sequence 5
"""

import asyncio
import random
import sys
import time

import numpy as np

from server.documents import Document
from server.log.cursors import Cursors
from server.log.match_log import MatchLog, SegmentLimits
from server.store import open_store

NUMBERS = (1, 2, 3, 1500, 40_000)


async def main(url: str, seed: int) -> None:
    store = await open_store(url)
    log = await MatchLog.open(store, limits=SegmentLimits(records=7))
    cursors = await Cursors.open(store, log, flush_interval=0.005)
    for number in NUMBERS:
        log.ensure(number)
        cursors.ensure(number)
    print("ready", flush=True)
    appending = [append(log, random.Random(seed * 10 + place)) for place in range(4)]
    await asyncio.gather(*appending, acknowledge(cursors, log, random.Random(seed)), retain(log))


async def append(log: MatchLog, chance: random.Random) -> None:
    while True:
        batch = [sorted(chance.sample(NUMBERS, chance.randint(1, 3))) for _ in range(chance.randint(1, 3))]
        entries = [("default", document(numbers), np.array(numbers, np.int64)) for numbers in batch]
        records = await log.append(entries)
        for record in records:
            print("appended", record.position, ",".join(map(str, record.numbers)), flush=True)


def document(numbers: list[int]) -> Document:
    """One that says who wants it."""
    return Document("d", xml=repr(numbers).encode(), publish_time=time.time())


async def acknowledge(cursors: Cursors, log: MatchLog, chance: random.Random) -> None:
    while True:
        numbers = np.array(sorted(chance.sample(NUMBERS, 2)), np.int64)
        cursors.acknowledge(numbers, cursors.floors[numbers] + 1)
        await cursors.flush()
        for number in numbers.tolist():
            print("acknowledged", number, cursors.floors[number], flush=True)


async def retain(log: MatchLog) -> None:
    """Drop what is older than the last moments, now and then."""
    while True:
        await asyncio.sleep(0.05)
        await log.expire(time.time() - 0.5)


asyncio.run(main(sys.argv[1], int(sys.argv[2])))
