"""A process whose disk is full: it appends until that fails, gets more room, and goes on.

python fill_the_disk.py URL          says how many were appended, what was said then, and what is there at the end
"""

import asyncio
import json
import resource
import sys

import numpy as np

from server.documents import Document
from server.errors import StoreUnavailable
from server.log.match_log import MatchLog
from server.store import open_store

ROOM = 1 << 20
PLENTY = resource.RLIM_INFINITY


def entry(name: str) -> tuple[str, Document, np.ndarray]:
    return "default", Document(name, xml=b"x" * 20_000, publish_time=1.0), np.array([1])


async def main(url: str) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (ROOM, PLENTY))
    store = await open_store(url, deadline=1.0)
    log = await MatchLog.open(store)
    error = None
    while error is None:
        try:
            await log.append([entry(f"{log.position}")])
        except StoreUnavailable as unavailable:
            error = unavailable
    n_appended = log.position
    resource.setrlimit(resource.RLIMIT_FSIZE, (PLENTY, PLENTY))
    await store.settled()
    await log.append([entry("after")])
    ids = [document.id for _, document in await log.read(1, 1, 1000, 1 << 30)]
    print(json.dumps({"appended": n_appended, "error": str(error), "ids": ids, "heads": int(log.heads[1])}))
    await log.close()
    await store.close()


asyncio.run(main(sys.argv[1]))
