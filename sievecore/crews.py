"""Threads that are there already: several of them do the same work, and whoever asked does it too.

    work_together(work, 3) ──▶ work() here, and in two threads that were waiting for something to do

To wake a thread takes less time than to start one: one large document took two threads 6.06 ms instead of 6.27. The
threads are made as they are needed, and stay. `work` must be such that it is done when any of those who do it return:
a helper that has found no thread free by then is not waited for.

Where they run is for the system to say. On a virtual machine whose two processors share no cache, a thread that is
woken after other work may share the waker's processor for some milliseconds, and then there is nothing to gain.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

__all__ = ["work_together"]

MOST_HELPERS = 64

_pools: list[ThreadPoolExecutor] = []


def work_together(work: Callable[[], None], n_threads: int) -> None:
    """Do the work with so many threads, this one among them; return when all that have begun are done."""
    helpers = [_pool().submit(work) for _ in range(n_threads - 1)]
    try:
        work()
    finally:
        for helper in helpers:
            if not helper.cancel():
                helper.result()


def _pool() -> ThreadPoolExecutor:
    if not _pools:
        _pools.append(ThreadPoolExecutor(MOST_HELPERS, thread_name_prefix="sieve-crew"))
    return _pools[-1]


os.register_at_fork(after_in_child=_pools.clear)  # threads do not survive a fork
