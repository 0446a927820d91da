"""Several threads do the same work, and nobody waits for one that never began."""

import os
import threading

import pytest

from sievecore import crews
from sievecore.crews import work_together


def test_as_many_threads_work_as_were_asked_for() -> None:
    together = threading.Barrier(3)
    seen: set[int] = set()

    def work() -> None:
        seen.add(threading.get_ident())
        together.wait(timeout=20)

    work_together(work, 3)
    assert len(seen) == 3
    assert threading.get_ident() in seen


def test_one_thread_is_the_callers_own() -> None:
    seen: list[int] = []
    work_together(lambda: seen.append(threading.get_ident()), 1)
    assert seen == [threading.get_ident()]


def test_who_finds_no_thread_free_is_not_waited_for() -> None:
    done = threading.Event()
    busy = [crews._pool().submit(done.wait, 20) for _ in range(crews.MOST_HELPERS)]
    work_together(lambda: None, 2)
    assert not any(one.done() for one in busy)
    done.set()
    assert all(one.result() for one in busy)


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # it has threads, and that is the point
def test_a_fork_has_threads_of_its_own() -> None:
    work_together(lambda: None, 2)
    child = os.fork()
    if child == 0:
        together = threading.Barrier(2)
        work_together(lambda: together.wait(timeout=10) and None, 2)
        os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
