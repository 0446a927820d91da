"""Working memory is lent to one at a time, used again, and dropped after an exception."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from sievecore.scratch import ScratchPool


class Scratch:
    """Notes who uses it."""

    def __init__(self) -> None:
        self.in_use = False


def test_an_idle_scratch_is_used_again() -> None:
    pool = ScratchPool(Scratch)
    with pool.lend() as first:
        pass
    with pool.lend() as second:
        assert second is first


def test_scratches_in_use_at_once_are_different() -> None:
    pool = ScratchPool(Scratch)
    taken = [pool.take() for _ in range(5)]
    assert len({id(scratch) for scratch in taken}) == 5
    for scratch in taken:
        pool.give_back(scratch)
    assert {id(pool.take()) for _ in range(5)} == {id(scratch) for scratch in taken}


def test_a_scratch_that_an_exception_passed_by_is_dropped() -> None:
    pool = ScratchPool(Scratch)
    with pytest.raises(ZeroDivisionError), pool.lend() as broken:
        raise ZeroDivisionError
    with pool.lend() as fresh:
        assert fresh is not broken


def test_no_two_threads_have_one_scratch() -> None:
    pool, shared = ScratchPool(Scratch), threading.Event()

    def use() -> None:
        for _ in range(2000):
            with pool.lend() as scratch:
                if scratch.in_use:
                    shared.set()
                scratch.in_use = True
                scratch.in_use = False

    with ThreadPoolExecutor(4) as threads:
        for future in [threads.submit(use) for _ in range(4)]:
            future.result()
    assert not shared.is_set()
