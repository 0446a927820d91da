"""Atomic cells are exact under contention: threads run kernels without the GIL on the same arrays."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from numba.core import config
from numba.core.errors import TypingError

from sievecore.atomics import atomic_load, atomic_or, atomic_store, compare_and_swap, fetch_add
from sievecore.jit import kernel

pytestmark = pytest.mark.kernels

N_THREADS = 4
CELL_TYPES = [np.int32, np.int64, np.uint32, np.uint64]


def in_threads(function: Callable[..., Any], arguments: list[tuple[Any, ...]]) -> list[Any]:
    """Call once on copies, so that compiling is over, then on every thread at the same time."""
    function(*(a.copy() if isinstance(a, np.ndarray) else a for a in arguments[0]))
    with ThreadPoolExecutor(len(arguments)) as pool:
        return [future.result() for future in [pool.submit(function, *each) for each in arguments]]


@kernel
def swap_once(cells, i, expected, new):
    return compare_and_swap(cells, i, expected, new)


@kernel
def add_once(cells, i, delta):
    return fetch_add(cells, i, delta)


@kernel
def or_once(cells, i, bits):
    return atomic_or(cells, i, bits)


@kernel
def store_and_load(cells, i, value):
    atomic_store(cells, i, value)
    return atomic_load(cells, i)


@kernel
def count_up(cells, n_times):
    for _ in range(n_times):
        fetch_add(cells, 1, 1)


@kernel
def draw_tickets(counter, tickets):
    for k in range(tickets.size):
        tickets[k] = fetch_add(counter, 0, 1)


@kernel
def set_bits(words, first, step):
    for bit in range(first, 64 * words.size, step):
        atomic_or(words, bit // 64, np.uint64(1) << np.uint64(bit % 64))


@kernel
def count_under_lock(lock, counter, n_times):
    """`counter` is changed by plain reads and writes; only the lock keeps them apart."""
    for _ in range(n_times):
        while not compare_and_swap(lock, 0, 0, 1):
            pass
        counter[0] += 1
        counter[1] -= 1
        atomic_store(lock, 0, 0)


@kernel
def send(mailbox, full, n_messages):
    for message in range(n_messages):
        while atomic_load(full, 0) != 0:
            pass
        mailbox[0] = message
        atomic_store(full, 0, 1)
    return n_messages


@kernel
def receive_in_order(mailbox, full, n_messages):
    n_in_order = 0
    for message in range(n_messages):
        while atomic_load(full, 0) != 1:
            pass
        n_in_order += mailbox[0] == message
        atomic_store(full, 0, 0)
    return n_in_order


@pytest.mark.parametrize("cell_type", CELL_TYPES)
def test_a_swap_happens_only_when_the_cell_holds_what_is_expected(cell_type: Any) -> None:
    cells = np.array([5, 6, 7], cell_type)
    assert swap_once(cells, 1, 6, 9) is True
    assert swap_once(cells, 1, 6, 8) is False
    assert cells.tolist() == [5, 9, 7]


@pytest.mark.parametrize("cell_type", CELL_TYPES)
def test_add_or_and_store_return_and_leave_the_right_values(cell_type: Any) -> None:
    cells = np.array([5, 6, 7], cell_type)
    assert add_once(cells, 0, 3) == 5
    assert or_once(cells, 1, 9) == 6
    assert store_and_load(cells, 2, 11) == 11
    assert cells.tolist() == [8, 15, 11]


def test_all_64_bits_take_part() -> None:
    words = np.array([2**64 - 1, 0], np.uint64)
    assert swap_once(words, 0, np.uint64(2**64 - 1), np.uint64(2**63)) is True
    assert or_once(words, 1, np.uint64(2**63)) == 0
    assert words.tolist() == [2**63, 2**63]


def test_cells_of_a_strided_view_are_found() -> None:
    numbers = np.zeros(6, np.int64)
    assert add_once(numbers[::2], 2, 7) == 0
    assert numbers.tolist() == [0, 0, 0, 0, 7, 0]


@pytest.mark.parametrize("cell_type", CELL_TYPES)
def test_no_addition_is_lost(cell_type: Any) -> None:
    cells = np.zeros(3, cell_type)
    in_threads(count_up, [(cells, 100_000)] * N_THREADS)
    assert cells.tolist() == [0, N_THREADS * 100_000, 0]


def test_every_ticket_is_drawn_exactly_once() -> None:
    counter = np.zeros(1, np.int64)
    tickets = np.zeros((N_THREADS, 50_000), np.int64)
    in_threads(draw_tickets, [(counter, row) for row in tickets])
    assert np.array_equal(np.sort(tickets, axis=None), np.arange(tickets.size))


def test_no_bit_set_by_another_thread_is_lost() -> None:
    words = np.zeros(2_000, np.uint64)
    in_threads(set_bits, [(words, first, N_THREADS) for first in range(N_THREADS)])
    assert (words == np.uint64(2**64 - 1)).all()


def test_a_spin_lock_protects_a_plain_counter() -> None:
    lock, counter = np.zeros(1, np.int32), np.zeros(2, np.int64)
    in_threads(count_under_lock, [(lock, counter, 20_000)] * N_THREADS)
    assert counter.tolist() == [N_THREADS * 20_000, -N_THREADS * 20_000]


def test_what_was_written_before_a_store_is_seen_after_the_load() -> None:
    mailbox, full = np.zeros(1, np.int64), np.zeros(1, np.int64)
    with ThreadPoolExecutor(2) as pool:
        sent = pool.submit(send, mailbox, full, 500)
        received = pool.submit(receive_in_order, mailbox, full, 500)
    assert (sent.result(), received.result()) == (500, 500)


UNSUITABLE = {
    "floats": np.zeros(2),
    "two_dimensions": np.zeros((2, 2), np.int64),
    "small_integers": np.zeros(2, np.int8),
}


@pytest.mark.parametrize("cells", UNSUITABLE.values(), ids=UNSUITABLE)
def test_other_arrays_are_refused_when_compiling(cells: Any) -> None:
    with pytest.raises(TypingError, match="32- or 64-bit integers"):
        add_once(cells, 0, 1)


def test_read_only_arrays_are_refused_when_compiling() -> None:
    cells = np.zeros(2, np.int64)
    cells.flags.writeable = False
    with pytest.raises(TypingError, match="writable"):
        add_once(cells, 0, 1)


@pytest.mark.skipif(not config.BOUNDSCHECK, reason="indexes are checked with NUMBA_BOUNDSCHECK=1 only")
@pytest.mark.parametrize("i", [2, -1])
def test_an_index_outside_is_an_error_with_bounds_checks(i: int) -> None:
    with pytest.raises(IndexError):
        add_once(np.zeros(2, np.int64), i, 1)
